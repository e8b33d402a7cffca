"""Public networks, whole and cut."""
