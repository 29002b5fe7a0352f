"""The distribution of one trial that succeeds with probability `p`."""

from __future__ import annotations

import math

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.special.entropies import xlog1py, xlogy
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

distribution = Distribution("bernoulli", "1, 0.25", p="the probability of success.")


@distribution.defines("-1.3862944")
def logpmf(k: RealLike, p: RealLike, loc: RealLike = 0) -> Array:
    """Return the logarithm of the probability of `k`."""
    n = k - loc
    return select_where((n < 0) | (n > 1), -math.inf, xlogy(n, p) + xlog1py(1 - n, -p))


pmf = distribution.exponential(logpmf, "0.25")


@distribution.defines("1.")
def cdf(k: RealLike, p: RealLike) -> Array:
    """Return the probability of a value up to `k`."""
    wrong = (p < 0) | (p > 1) | (p != p) | (k != k)
    return select_where(wrong, math.nan, select_where(k < 0, 0.0, select_where(k < 1, 1 - p, 1.0)))


@distribution.defines("0.", "0.25, 0.25")
def ppf(q: RealLike, p: RealLike) -> Array:
    """Return the smallest value whose `cdf` is at least `q`."""
    own = aval_of(p)
    wrong = (p < 0) | (p > 1) | (p != p) | (q < 0) | (q > 1) | (q != q)
    return convert_to(select_where(wrong, math.nan, select_where(q <= 1 - p, 0.0, 1.0)), own.dtype, own.weak_type)


_make_public(globals(), __all__)
