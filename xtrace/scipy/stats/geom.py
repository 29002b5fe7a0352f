"""The distribution of the number of trials up to the first success, of probability `p` each."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import log
from xtrace.scipy.special.entropies import xlog1py
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["logpmf", "pmf"]

distribution = Distribution("geom", "3, 0.25", p="the probability of success.")


@distribution.defines("-1.9616585")
def logpmf(k: RealLike, p: RealLike, loc: RealLike = 0) -> Array:
    """Return the logarithm of the probability of `k`."""
    n = k - loc
    return select_where(n <= 0, -math.inf, xlog1py(n - 1, -p) + log(p))


pmf = distribution.exponential(logpmf, "0.140625")


_make_public(globals(), __all__)
