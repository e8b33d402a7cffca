"""Runs until a coin says stop (Liu & Talwar 2019)."""
