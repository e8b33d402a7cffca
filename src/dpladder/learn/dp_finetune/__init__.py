"""Fine-tuning of the public network itself."""
