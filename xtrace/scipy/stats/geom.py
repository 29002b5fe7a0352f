"""The distribution of the number of trials up to the first success, of probability `p` each."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import exp, log
from xtrace.scipy.special.entropies import xlog1py
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["logpmf", "pmf"]


@inline_jit(public=True)
@with_strong_results
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, p, loc = promoted("geom.logpmf", k, p, loc)
    n = k - loc
    return choose(n <= 0, -math.inf, xlog1py(n - 1, -p) + log(p))


@inline_jit(public=True)
def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return exp(logpmf(k, p, loc))


_make_public(globals(), __all__)
