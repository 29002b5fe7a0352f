"""Gumbel's distribution of largest values."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.nn.activations import log1mexp
from xtrace.numpy.elementwise.ufuncs import exp, expm1, log
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

distribution = Distribution("gumbel_r", "0.5", p="probabilities; an array of numbers from 0 to 1.")


@distribution.defines("-1.1065307", strong=False)
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    z = (x - loc) / scale
    return select_where(scale > 0, -z - exp(-z) - log(scale), math.nan)


pdf = distribution.exponential(logpdf, "0.3307043")


@distribution.defines("-0.60653067", strong=False)
def logcdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `cdf`."""
    return select_where(scale > 0, -exp((loc - x) / scale), math.nan)


cdf = distribution.exponential(logcdf, "0.5452392")


@distribution.defines("0.4547608")
def sf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value above `x`, 1 - `cdf`."""
    return -expm1(logcdf(x, loc, scale))


@distribution.defines("-0.7879837", strong=False)
def logsf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `sf`."""
    return log1mexp(-logcdf(x, loc, scale))


@distribution.defines("-0.32663426", "0.25", strong=False)
def ppf(p: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `p`."""
    return select_where(scale > 0, loc - scale * log(-log(p)), math.nan)


_make_public(globals(), __all__)
