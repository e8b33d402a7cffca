"""What mechanisms cost: closed forms, events, their composition, and what is left of a total."""
