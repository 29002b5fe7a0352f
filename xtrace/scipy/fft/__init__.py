"""Cosine transforms (``jax.scipy.fft``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.fft.cosine import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]

_make_public(globals(), __all__)
