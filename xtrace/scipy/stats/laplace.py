"""Laplace's distribution: exponential on both sides of `loc`."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import abs, exp, log
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logpdf", "pdf"]

distribution = Distribution("laplace", "0.5")


@distribution.defines("-1.1931472")
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    return -abs(x - loc) / scale - log(scale) - math.log(2)


pdf = distribution.exponential(logpdf, "0.30326533")


@distribution.defines("0.69673467")
def cdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    distance = (x - loc) / scale
    below = distance <= 0
    half = 0.5 * exp(select_where(below, distance, -distance))
    return select_where(below, half, 1 - half)


_make_public(globals(), __all__)
