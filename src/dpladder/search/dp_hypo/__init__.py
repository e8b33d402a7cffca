"""Private selection whose runs look where earlier ones did well (Wang et al. 2023)."""
