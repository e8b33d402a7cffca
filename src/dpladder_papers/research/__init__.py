"""Contests on public data: learners and searches against each other."""
