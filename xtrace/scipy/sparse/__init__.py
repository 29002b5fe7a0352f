"""Methods for matrices that are known by what they do to vectors, as ``jax.scipy.sparse`` has them."""

from xtrace.scipy.sparse import linalg

__all__ = ["linalg"]
