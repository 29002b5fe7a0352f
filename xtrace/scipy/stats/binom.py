"""The distribution of the number of successes in `n` trials, of probability `p` each."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import exp
from xtrace.scipy.special.entropies import xlog1py, xlogy
from xtrace.scipy.special.primitive import gammaln, promoted

__all__ = ["logpmf", "pmf"]


@inline_jit(public=True)
def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, n, p, loc = promoted("binom.logpmf", k, n, p, loc)
    m = k - loc
    outside = (m < 0) | (m > n)
    # What is not used must have a finite derivative.
    m = choose(outside, 0.0, m)
    ways = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return choose(outside, -math.inf, ways + xlogy(m, p) + xlog1py(n - m, -p))


@inline_jit(public=True)
def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return exp(logpmf(k, n, p, loc))


_make_public(globals(), __all__)
