"""The same with one hidden layer."""
