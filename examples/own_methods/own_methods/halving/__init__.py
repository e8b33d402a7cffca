"""Rounds of trainings, of which the better half goes on with twice the budget."""
