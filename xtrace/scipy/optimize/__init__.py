"""Minimization (``jax.scipy.optimize``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.optimize.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

_make_public(globals(), __all__)
