"""Adam on a linear head."""
