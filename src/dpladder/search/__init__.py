"""Hyperparameter search: where trials look, how the best is chosen, how r is carried to the final
budget."""
