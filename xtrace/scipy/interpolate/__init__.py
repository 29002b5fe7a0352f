"""Interpolation of samples on grids (``jax.scipy.interpolate``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.interpolate.regular_grid import RegularGridInterpolator

__all__ = ["RegularGridInterpolator"]

_make_public(globals(), __all__)
