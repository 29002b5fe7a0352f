"""Settings, under JAX's names."""
