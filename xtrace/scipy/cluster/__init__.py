"""Clustering, as ``jax.scipy.cluster`` has it."""

from xtrace.scipy.cluster import vq

__all__ = ["vq"]
