"""Types for annotations (``jax.typing``)."""

from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["ArrayLike", "DTypeLike"]

_make_public(globals(), __all__)
