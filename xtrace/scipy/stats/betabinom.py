"""The number of successes in `n` trials, whose probability has the beta distribution of shapes `a` and `b`."""

from __future__ import annotations

import math

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.rounding import floor
from xtrace.numpy.elementwise.ufuncs import log1p
from xtrace.scipy.special.factorials import betaln
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["logpmf", "pmf"]

distribution = Distribution(
    "betabinom", "2, 5, 2.0, 3.0", n="the number of trials.", a="the first shape, positive.",
    b="the second shape, positive.",
)


@distribution.defines("-1.4350841")
def logpmf(k: RealLike, n: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0) -> Array:
    """Return the logarithm of the probability of floor(k - loc).

    It is NaN where `n` is negative, and unless `a` and `b` are positive.
    """
    weak = all(aval.weak_type or not aval.ndim for aval in map(aval_of, (k, n, a, b, loc)))
    m = floor(k - loc)
    outside = (m < 0) | (m > n)
    # The unselected branch must have a finite derivative.
    m = select_where(outside, 0.0, m)
    ways = -log1p(n) - betaln(n - m + 1, m + 1)
    logarithm = select_where(outside, -math.inf, ways + betaln(m + a, n - m + b) - betaln(a, b))
    logarithm = select_where((n < 0) | (a <= 0) | (b <= 0), math.nan, logarithm)
    # As in JAX, an array of whole numbers makes the result strongly typed.
    return convert_to(logarithm, logarithm.dtype, aval_of(logarithm).weak_type and weak)


pmf = distribution.exponential(logpmf, "0.23809534")


_make_public(globals(), __all__)
