"""Private selection on a secret subset (Koskela & Kulkarni 2023)."""
