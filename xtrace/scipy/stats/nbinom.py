"""The distribution of the number of failures before `n` successes, of probability `p` each."""

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

distribution = Distribution(
    "nbinom", "2, 5, 0.25", n="the number of successes that end the trials.", p="the probability of success."
)


@distribution.defines("-4.798785")
def logpmf(k: RealLike, n: RealLike, p: RealLike, loc: RealLike = 0) -> Array:
    """Return the logarithm of the probability of `k`."""
    m = k - loc
    below = m < 0
    # The unselected branch must have a finite derivative.
    m = select_where(below, 0.0, m)
    ways = gammaln(m + n) - gammaln(n) - gammaln(m + 1)
    return select_where(below, -math.inf, ways + xlogy(n, p) + xlog1py(m, -p))


pmf = distribution.exponential(logpmf, "0.00823975")


_make_public(globals(), __all__)
