"""Pareto's distribution with exponent `b`, from loc + scale on."""

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

distribution = Distribution("pareto", "2.0, 3.0", b="the exponent, positive.")


@distribution.defines("-1.6739764")
def logpdf(x: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    below = x < loc + scale
    # The unselected branch must have a finite derivative.
    logarithm = log(b) - log(scale) - (b + 1) * log(select_where(below, 1.0, (x - loc) / scale))
    return select_where(below, -math.inf, logarithm)


pdf = distribution.exponential(logpdf, "0.1875")


def _log_survival(x: RealLike, b: RealLike, loc: RealLike, scale: RealLike) -> Array:
    below = x < loc + scale
    return select_where(below, 0.0, -b * log(select_where(below, 1.0, (x - loc) / scale)))


@distribution.defines("-2.0794415")
def logsf(x: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `sf`."""
    return _log_survival(x, b, loc, scale)


sf = distribution.exponential(logsf, "0.125")


@distribution.defines("0.875")
def cdf(x: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    return -expm1(logsf(x, b, loc, scale))


@distribution.defines("-0.13353139", strong=False)
def logcdf(x: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `cdf`."""
    return log1mexp(-_log_survival(x, b, loc, scale))


@distribution.defines("1.1006424", "0.25, 3.0")
def ppf(q: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `q`."""
    return select_where((q < 0) | (q > 1), math.nan, loc + scale * exp(-log1p(-q) / b))


_make_public(globals(), __all__)
