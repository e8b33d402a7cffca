"""Privacy core: what a mechanism costs, what was spent, and the one door through which noise
enters."""
