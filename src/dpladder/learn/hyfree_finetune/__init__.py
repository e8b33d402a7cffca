"""Fine-tuning of the public network itself, with step sizes from noised losses."""
