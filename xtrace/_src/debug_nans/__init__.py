"""The settings ``jax_debug_nans`` and ``jax_debug_infs``: name the operation that made a NaN or an infinity."""
