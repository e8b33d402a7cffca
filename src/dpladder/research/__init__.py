"""Public data to train and test on as often as one likes; imported by jobs of research alone."""
