"""Gumbel's distribution of smallest values."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.nn.activations import log1mexp
from xtrace.numpy.elementwise.ufuncs import exp, expm1, log, log1p
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

distribution = Distribution("gumbel_l", "0.5", p="probabilities; an array of numbers from 0 to 1.")


@distribution.defines("-1.1487212", strong=False)
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    z = (x - loc) / scale
    return select_where(scale > 0, z - exp(z) - log(scale), math.nan)


pdf = distribution.exponential(logpdf, "0.31704193")


@distribution.defines("-1.6487212", strong=False)
def logsf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `sf`."""
    return select_where(scale > 0, -exp((x - loc) / scale), math.nan)


sf = distribution.exponential(logsf, "0.19229566")


@distribution.defines("0.8077043", strong=False)
def cdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    return -expm1(logsf(x, loc, scale))


@distribution.defines("-0.2135592", strong=False)
def logcdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `cdf`."""
    return log1mexp(-logsf(x, loc, scale))


@distribution.defines("-1.2458994", "0.25", strong=False)
def ppf(p: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `p`."""
    return select_where(scale > 0, loc + scale * log(-log1p(-p)), math.nan)


_make_public(globals(), __all__)
