"""The chi-squared distribution of `df` degrees of freedom: a gamma distribution."""

from __future__ import annotations

from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.late import make_public as _make_public
from xtrace.scipy.stats import gamma
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

distribution = Distribution("chi2", "1.0, 3.0", df="the degrees of freedom.")


@distribution.defines("-1.4189389")
def logpdf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@distribution.defines("0.24197064", strong=False)
def pdf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the density."""
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@distribution.defines("0.19874799")
def cdf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@distribution.defines("-1.6157176")
def logcdf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `cdf`."""
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@distribution.defines("0.801252")
def sf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value above `x`, 1 - `cdf`."""
    return gamma.sf(x, df / 2, loc, 2 * scale)


@distribution.defines("-0.22157978")
def logsf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `sf`."""
    return gamma.logsf(x, df / 2, loc, 2 * scale)


_make_public(globals(), __all__)
