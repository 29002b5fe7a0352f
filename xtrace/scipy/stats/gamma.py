"""The gamma distribution of shape `a`."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import log
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammainc, gammaincc, gammaln
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

distribution = Distribution("gamma", "1.0, 2.0", a="the shape, positive.")


@distribution.defines("-1.")
def logpdf(x: RealLike, a: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    below = x < loc
    # The unselected branch must have a finite derivative.
    z = select_where(below, 1.0, (x - loc) / scale)
    return select_where(below, -math.inf, xlogy(a - 1, z) - z - gammaln(a) - log(scale))


pdf = distribution.exponential(logpdf, "0.36787945")


@distribution.defines("0.26424113")
def cdf(x: RealLike, a: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    z = (x - loc) / scale
    return gammainc(a, select_where(z < 0, 0.0, z))


logcdf = distribution.logarithm(cdf, "-1.3308933")


@distribution.defines("0.7357589", strong=False)
def sf(x: RealLike, a: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value above `x`, 1 - `cdf`."""
    z = (x - loc) / scale
    return gammaincc(a, select_where(z < 0, 0.0, z))


logsf = distribution.logarithm(sf, "-0.30685282")


_make_public(globals(), __all__)
