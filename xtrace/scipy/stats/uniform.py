"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import log
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

distribution = Distribution("uniform", "0.5")


@distribution.defines("-0.", strong=False)
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    return select_where((x < loc) | (x > loc + scale), -math.inf, -log(scale))


pdf = distribution.exponential(logpdf, "1.")


@distribution.defines("0.5")
def cdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`."""
    return select_where(x < loc, 0.0, select_where(x > loc + scale, 1.0, (x - loc) / scale))


@distribution.defines("0.25", "0.25", strong=False)
def ppf(q: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `q`."""
    return select_where((q < 0) | (q > 1), math.nan, loc + q * scale)


_make_public(globals(), __all__)
