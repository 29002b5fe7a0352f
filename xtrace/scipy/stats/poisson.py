"""Poisson's distribution of mean `mu`."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose, spread
from xtrace._src.api.promotion import check_broadcast
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.creation import arange
from xtrace.numpy.reductions import sum
from xtrace.numpy.ufuncs import exp, floor, log
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammaincc, gammaln, promoted, with_strong_results

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@inline_jit(public=True)
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, mu, loc = promoted("poisson.logpmf", k, mu, loc)
    n = k - loc
    return choose((n < 0) | (floor(n) < n), -math.inf, xlogy(n, mu) - gammaln(n + 1) - mu)


@inline_jit(public=True)
def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return exp(logpmf(k, mu, loc))


@inline_jit(public=True)
@with_strong_results
def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of a value up to k."""
    k, mu, loc = promoted("poisson.cdf", k, mu, loc)
    n = k - loc
    return choose(n < 0, 0.0, gammaincc(floor(choose(n < 0, 0.0, n) + 1), mu))


# Below this mean the entropy is a sum over so many counts, which leaves out nothing that shows; above, a series.
_LARGE_MEAN, _COUNTS = 100, 250


@inline_jit(public=True)
def entropy(mu: Any, loc: Any = 0) -> Any:
    """The entropy; for means from 100 on by the first terms of its series in 1 / mu (Evans and Boersma 1988).

    `loc` changes its shape only. NaN for negative means.
    """
    mu, loc = promoted("poisson.entropy", mu, loc)
    mu = spread(mu, check_broadcast("poisson.entropy", [mu.shape, loc.shape]))
    large, none = mu >= _LARGE_MEAN, mu == 0
    # What is not used must have a finite derivative.
    small = choose(large | none, 1.0, mu)[..., None]
    counts = arange(_COUNTS, dtype=mu.dtype)
    logarithms = counts * log(small) - gammaln(counts + 1) - small
    summed = -sum(exp(logarithms) * logarithms, -1)
    mean = choose(large, mu, float(_LARGE_MEAN))
    series = log(2 * math.pi * math.e * mean) / 2 - 1 / (12 * mean)
    return converted(choose(none, 0.0, choose(large, series, summed)), mu.dtype)


_make_public(globals(), __all__)
