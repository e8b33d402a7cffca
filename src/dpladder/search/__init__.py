"""Hyperparameter search: where trials look, how a rung's best is chosen, how r is carried to the final budget."""
