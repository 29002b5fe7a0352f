"""Cauchy's distribution wrapped around the circle, of concentration `c` between 0 and 1."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import cos, exp, log
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["logpdf", "pdf"]

distribution = Distribution("wrapcauchy", "0.5, 0.25", c="the concentration, between 0 and 1.")


@distribution.defines("-1.4303436", strong=False)
def logpdf(x: RealLike, c: RealLike) -> Array:
    """Return the logarithm of the density on [0, 2 pi], NaN unless 0 < c < 1."""
    logarithm = log(1 - c * c) - math.log(2 * math.pi) - log(1 + c * c - 2 * c * cos(x))
    return select_where((c > 0) & (c < 1), select_where((x >= 0) & (x <= 2 * math.pi), logarithm, -math.inf), math.nan)


@distribution.defines("0.2392267", strong=False)
def pdf(x: RealLike, c: RealLike) -> Array:
    """Return the density."""
    return select_where((c > 0) & (c < 1), exp(logpdf(x, c)), math.nan)


_make_public(globals(), __all__)
