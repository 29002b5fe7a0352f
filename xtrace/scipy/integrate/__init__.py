"""Integrals of samples (``jax.scipy.integrate``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.reductions.differences import trapezoid

__all__ = ["trapezoid"]

_make_public(globals(), __all__)
