"""Poisson's distribution of mean `mu`."""

from __future__ import annotations

import math

from xtrace._src.algebra.vector_space import check_broadcast, convert_to
from xtrace._src.api.operators.operators import broadcast_to_shape, select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.elementwise.rounding import floor
from xtrace.numpy.elementwise.ufuncs import exp, log
from xtrace.numpy.reductions.reductions import sum
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammaincc, gammaln
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

distribution = Distribution("poisson", "2, 3.0", mu="the mean.")


@distribution.defines("-1.4959228", strong=False)
def logpmf(k: RealLike, mu: RealLike, loc: RealLike = 0) -> Array:
    """Return the logarithm of the probability of `k`."""
    n = k - loc
    return select_where((n < 0) | (floor(n) < n), -math.inf, xlogy(n, mu) - gammaln(n + 1) - mu)


pmf = distribution.exponential(logpmf, "0.22404176")


@distribution.defines("0.42319003")
def cdf(k: RealLike, mu: RealLike, loc: RealLike = 0) -> Array:
    """Return the probability of a value up to `k`."""
    n = k - loc
    return select_where(n < 0, 0.0, gammaincc(floor(select_where(n < 0, 0.0, n) + 1), mu))


# Below this mean the entropy is a sum over the first counts, exact to rounding; above it, a series.
_LARGE_MEAN, _COUNTS = 100, 250


@distribution.defines("Array(1.9314696, dtype=float32)", "3.0", strong=False)
def entropy(mu: RealLike, loc: RealLike = 0) -> Array:
    """Return the entropy, NaN for negative means; `loc` changes its shape only.

    For means from 100 on it is the sum of the first terms of its series in 1 / mu (Evans and Boersma 1988).
    """
    own = aval_of(mu)
    mu = broadcast_to_shape(mu, check_broadcast([own.shape, aval_of(loc).shape]))
    large, none = mu >= _LARGE_MEAN, mu == 0
    # The unselected branch must have a finite derivative.
    small = select_where(large | none, 1.0, mu)[..., None]
    counts = arange(_COUNTS, dtype=own.dtype)
    logarithms = counts * log(small) - gammaln(counts + 1) - small
    summed = -sum(exp(logarithms) * logarithms, -1)
    mean = select_where(large, mu, float(_LARGE_MEAN))
    series = log(2 * math.pi * math.e * mean) / 2 - 1 / (12 * mean)
    return convert_to(select_where(none, 0.0, select_where(large, series, summed)), own.dtype)


_make_public(globals(), __all__)
