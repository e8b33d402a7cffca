"""The class whose noised mean is nearest wins."""
