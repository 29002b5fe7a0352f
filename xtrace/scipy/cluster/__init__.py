"""Clustering (``jax.scipy.cluster``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.cluster import vq

__all__ = ["vq"]

_make_public(globals(), __all__)
