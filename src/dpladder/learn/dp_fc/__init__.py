"""Descent preconditioned by the noised feature covariance."""
