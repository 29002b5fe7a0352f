"""Poisson's distribution of mean `mu`."""

from __future__ import annotations

import math
from typing import Any

from xtrace.api.operators import choose
from xtrace.numpy.ufuncs import exp, floor
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammaincc, gammaln, inlined, promoted


@inlined
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, mu, loc = promoted("poisson.logpmf", k, mu, loc)
    n = k - loc
    return choose((n < 0) | (floor(n) != n), -math.inf, xlogy(n, mu) - gammaln(n + 1) - mu)


@inlined
def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return exp(logpmf(k, mu, loc))


@inlined
def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of a value up to k."""
    k, mu, loc = promoted("poisson.cdf", k, mu, loc)
    n = k - loc
    return choose(n < 0, 0.0, gammaincc(floor(choose(n < 0, 0.0, n) + 1), mu))
