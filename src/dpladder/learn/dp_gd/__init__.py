"""Gradient descent with momentum on a linear head: the default."""
