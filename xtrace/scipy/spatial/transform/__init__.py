"""Rotations in three dimensions (``jax.scipy.spatial.transform``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.spatial.transform.interpolation import Slerp
from xtrace.scipy.spatial.transform.rotations import Rotation

__all__ = ["Rotation", "Slerp"]

_make_public(globals(), __all__)
