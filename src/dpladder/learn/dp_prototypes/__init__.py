"""A noised mean of each class."""
