"""The numbers of `n` trials that have each of several outcomes, of probabilities `p`."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.api.promotion import common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.reductions import sum
from xtrace.numpy.ufuncs import exp
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammaln, promoted

__all__ = ["logpmf", "pmf"]


@inline_jit(public=True)
def logpmf(x: Any, n: Any, p: Any) -> Array:
    """The logarithm of the probability of the numbers `x`; -inf where their sum is not `n`.

    Outcomes are along the last axis of `x` and `p`; other axes, and those of `n`, broadcast. ValueError where `x` or
    `n` are no integers.
    """
    (counts, trials), dtype, _ = common_dtype("multinomial.logpmf", (x, n))
    if not dtypes.is_integer(dtype):
        raise ValueError(
            "multinomial.logpmf: x and n must be of integer type; got dtypes "
            f"{counts.dtype.name} and {trials.dtype.name}"
        )
    (p,) = promoted("multinomial.logpmf", p)
    x, n = converted(to_array(x), dtype), converted(to_array(n), dtype)
    fits = sum(x, -1) == n
    x, n = converted(x, p.dtype), converted(n, p.dtype)
    found = gammaln(n + 1) + sum(xlogy(x, p) - gammaln(x + 1), -1)
    return converted(choose(fits, found, -math.inf), p.dtype)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the numbers `x`; arguments and errors as in `logpmf`."""
    return exp(logpmf(x, n, p))


_make_public(globals(), __all__)
