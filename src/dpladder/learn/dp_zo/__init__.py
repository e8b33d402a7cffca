"""One noised number a step, along public directions."""
