"""Cauchy's distribution."""

from __future__ import annotations

import math

from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import arctan, log, log1p, tan
from xtrace.scipy.stats.distribution import Distribution, from_standard

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

distribution = Distribution("cauchy", "0.5")


@distribution.defines("-1.3678734")
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    ratio = (x - loc) / scale
    # The product replaces a square, whose derivative 2 x may overflow.
    return -math.log(math.pi) - log(scale) - log1p(ratio * ratio)


pdf = distribution.exponential(logpdf, "0.2546479")


def _lower_tail(z: RealLike) -> Array:
    return 0.5 + arctan(z) / math.pi


cdf = distribution.standard("cdf", _lower_tail, "0.6475836")
sf = distribution.standard("sf", _lower_tail, "0.3524164", mirrored=True)
logcdf = distribution.logarithm(cdf, "-0.43450737")
logsf = distribution.logarithm(sf, "-1.0429418")


@distribution.defines("-1.", "0.25")
def ppf(q: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `q`."""
    return from_standard(tan(math.pi * (q - 0.5)), loc, scale)


@distribution.defines("1.", "0.25")
def isf(q: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `sf` maps to `q`."""
    return from_standard(tan(math.pi * (0.5 - q)), loc, scale)


_make_public(globals(), __all__)
