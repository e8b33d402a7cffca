"""Tune and train differentially private models, with every epsilon on the books."""
