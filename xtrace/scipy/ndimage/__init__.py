"""Interpolation of images (``jax.scipy.ndimage``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.ndimage.interpolation import map_coordinates

__all__ = ["map_coordinates"]

_make_public(globals(), __all__)
