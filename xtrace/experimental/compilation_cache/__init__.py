"""Compiled programs that are kept on disk, as ``jax.experimental.compilation_cache`` has them."""
