"""One training at a random r."""
