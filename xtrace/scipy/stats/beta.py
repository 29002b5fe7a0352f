"""The beta distribution of shapes `a` and `b`, on [loc, loc + scale]."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import clip, log
from xtrace.scipy.special.entropies import xlog1py, xlogy
from xtrace.scipy.special.factorials import betaln
from xtrace.scipy.special.primitive import betainc
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

distribution = Distribution("beta", "0.5, 2.0, 3.0", a="the first shape, positive.", b="the second shape, positive.")


@distribution.defines("0.40546584")
def logpdf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density, NaN unless `a`, `b` and `scale` are positive."""
    outside = (x < loc) | (x > loc + scale)
    # The unselected branch must have a finite derivative.
    z = select_where(outside, 0.5, (x - loc) / scale)
    logarithm = xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b) - log(scale)
    return select_where((a <= 0) | (b <= 0) | (scale <= 0), math.nan, select_where(outside, -math.inf, logarithm))


pdf = distribution.exponential(logpdf, "1.5000011")


@distribution.defines("0.6875")
def cdf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    return betainc(a, b, clip((x - loc) / scale, 0, 1))


logcdf = distribution.logarithm(cdf, "-0.37469345")


@distribution.defines("0.3125")
def sf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value above `x`, 1 - `cdf`."""
    return betainc(b, a, clip(1 - (x - loc) / scale, 0, 1))


logsf = distribution.logarithm(sf, "-1.1631508")


_make_public(globals(), __all__)
