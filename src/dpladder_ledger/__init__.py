"""The ledger for mechanisms that are not dpladder's own: Opacus, JAX-Privacy, TensorFlow Privacy,
one's own loop."""
