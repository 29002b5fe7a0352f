"""The exponential distribution of mean `scale`, from `loc` on."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.nn.activations import log1mexp
from xtrace.numpy.elementwise.ufuncs import expm1, log, log1p
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

distribution = Distribution("expon", "0.5")


@distribution.defines("-0.5", strong=False)
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    return select_where(x < loc, -math.inf, (loc - x) / scale - log(scale))


pdf = distribution.exponential(logpdf, "0.60653067")


@distribution.defines("0.39346933", strong=False)
def cdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    return select_where(x < loc, 0.0, -expm1((loc - x) / scale))


@distribution.defines("-0.93275213", strong=False)
def logcdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `cdf`."""
    below = x <= loc
    # The unselected branch must have a finite derivative.
    return select_where(below, -math.inf, log1mexp(select_where(below, 1.0, (x - loc) / scale)))


@distribution.defines("-0.5", strong=False)
def logsf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `sf`."""
    return select_where(x < loc, 0.0, (loc - x) / scale)


sf = distribution.exponential(logsf, "0.60653067")


@distribution.defines("0.28768206", "0.25", strong=False)
def ppf(q: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `q`."""
    return select_where((q < 0) | (q > 1), math.nan, loc - scale * log1p(-q))


_make_public(globals(), __all__)
