"""Functions with batched forms of the user's own, as ``jax.custom_batching`` has them."""

from xtrace.api.custom_batching import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
