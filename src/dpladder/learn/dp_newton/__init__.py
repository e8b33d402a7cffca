"""Newton steps from noised gradients and Hessians."""
