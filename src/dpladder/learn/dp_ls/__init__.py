"""Least squares from noised second moments."""
