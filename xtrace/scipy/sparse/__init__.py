"""Solvers for linear operators (``jax.scipy.sparse``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.sparse import linalg

__all__ = ["linalg"]

_make_public(globals(), __all__)
