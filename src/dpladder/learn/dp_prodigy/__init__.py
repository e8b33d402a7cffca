"""Descent whose step sizes follow from the noised gradients."""
