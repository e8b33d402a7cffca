"""Attacks on what the workflow runs: its rules, its searches, and a whole training."""
