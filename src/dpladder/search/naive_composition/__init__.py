"""The best of trainings of equal budgets."""
