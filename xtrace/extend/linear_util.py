"""Functions with transformations around them (``jax.extend.linear_util``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.linear_functions import (
    StoreException,
    WrappedFun,
    cache,
    merge_linear_aux,
    transformation,
    transformation2,
    transformation_with_aux,
    transformation_with_aux2,
    wrap_init,
)

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]

_make_public(globals(), __all__)
