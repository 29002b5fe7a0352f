"""References, which are mutable arrays, and the functions that read and write them (``jax.ref``)."""

from xtrace._src.core.avals import AbstractRef as AbstractRef
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.references.reference import (
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]

_make_public(globals(), __all__)
