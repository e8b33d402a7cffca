"""The jobs of contests, one module per rule (workflow/rules/baselines.smk)."""
