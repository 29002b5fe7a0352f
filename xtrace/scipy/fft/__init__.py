"""Cosine transforms, as ``jax.scipy.fft`` has them."""

from xtrace.scipy.fft.cosine import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]
