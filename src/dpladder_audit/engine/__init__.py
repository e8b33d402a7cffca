"""How an attack works: neighbours, events, bounds, and trainings of small data."""
