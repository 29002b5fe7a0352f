"""Integrals of samples, as ``jax.scipy.integrate`` has them."""

from xtrace.numpy.differences import trapezoid

__all__ = ["trapezoid"]
