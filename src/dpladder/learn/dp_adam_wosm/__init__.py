"""Adam whose second moment is its public noise level."""
