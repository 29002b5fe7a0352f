"""The distribution of one trial that succeeds with probability `p`."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import exp
from xtrace.scipy.special.entropies import xlog1py, xlogy
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@inline_jit(public=True)
@with_strong_results
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, p, loc = promoted("bernoulli.logpmf", k, p, loc)
    n = k - loc
    return choose((n < 0) | (n > 1), -math.inf, xlogy(n, p) + xlog1py(1 - n, -p))


@inline_jit(public=True)
def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return exp(logpmf(k, p, loc))


@inline_jit(public=True)
@with_strong_results
def cdf(k: Any, p: Any) -> Any:
    """The probability of a value up to k."""
    k, p = promoted("bernoulli.cdf", k, p)
    wrong = (p < 0) | (p > 1) | (p != p) | (k != k)
    return choose(wrong, math.nan, choose(k < 0, 0.0, choose(k < 1, 1 - p, 1.0)))


@inline_jit(public=True)
@with_strong_results
def ppf(q: Any, p: Any) -> Any:
    """The smallest value whose `cdf` is at least q."""
    q, p = promoted("bernoulli.ppf", q, p)
    wrong = (p < 0) | (p > 1) | (p != p) | (q < 0) | (q > 1) | (q != q)
    return converted(choose(wrong, math.nan, choose(q <= 1 - p, 0.0, 1.0)), p.dtype, p.aval.weak_type)


_make_public(globals(), __all__)
