"""Functions with batched forms of the user's own (``jax.custom_batching``)."""

from xtrace._src.api.custom_rules.custom_vmap import custom_vmap, sequential_vmap
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["custom_vmap", "sequential_vmap"]

_make_public(globals(), __all__)
