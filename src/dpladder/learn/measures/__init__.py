"""What a test counts of its records, and the figures that follow from noised counts."""
