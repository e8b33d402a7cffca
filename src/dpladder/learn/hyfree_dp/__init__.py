"""Step sizes from noised losses."""
