"""The distribution of the number of successes in `n` trials, of probability `p` each."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.special.entropies import xlog1py, xlogy
from xtrace.scipy.special.primitive import gammaln
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["logpmf", "pmf"]

distribution = Distribution("binom", "2, 5, 0.25", n="the number of trials.", p="the probability of success.")


@distribution.defines("-1.3330503", strong=False)
def logpmf(k: RealLike, n: RealLike, p: RealLike, loc: RealLike = 0) -> Array:
    """Return the logarithm of the probability of `k`."""
    m = k - loc
    outside = (m < 0) | (m > n)
    # The unselected branch must have a finite derivative.
    m = select_where(outside, 0.0, m)
    ways = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return select_where(outside, -math.inf, ways + xlogy(m, p) + xlog1py(n - m, -p))


pmf = distribution.exponential(logpmf, "0.26367176")


_make_public(globals(), __all__)
