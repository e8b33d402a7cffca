"""Learners of the literature, a folder each."""
