"""A single step."""
