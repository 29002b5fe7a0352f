"""The setting ``jax_debug_key_reuse``: random keys are used once."""
