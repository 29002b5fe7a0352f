"""The settings ``jax_debug_nans`` and ``jax_debug_infs``: which operation made a bad number."""
