"""The multinomial distribution: the counts of the outcomes, of probabilities `p`, in `n` trials."""

from __future__ import annotations

import math

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufuncs import exp
from xtrace.numpy.reductions.reductions import sum
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammaln, promote_operands

__all__ = ["logpmf", "pmf"]


@inline_jit(public=True)
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the logarithm of the probability of counts under the multinomial distribution.

    Args:
        x: an integer array of counts, with outcomes along the last axis.
        n: an integer array, the number of trials.
        p: an array of probabilities, with outcomes along the last axis.

    Returns:
        An array of the broadcast other axes; -inf where the counts do not add up to `n`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `x` or `n` are not integers, or the shapes do not broadcast.

    Example:
        >>> scipy.stats.multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
        Array(-0.69314694, dtype=float32)
    """
    (counts, trials), dtype, _ = common_dtype((x, n))
    if not dtypes.is_integer(dtype):
        raise ValueError(
            "multinomial.logpmf: x and n must be of integer type; got dtypes "
            f"{counts.dtype.name} and {trials.dtype.name}"
        )
    (p,) = promote_operands(p)
    x, n = convert_to(to_array(x), dtype), convert_to(to_array(n), dtype)
    fits = sum(x, -1) == n
    x, n = convert_to(x, p.dtype), convert_to(n, p.dtype)
    logarithm = gammaln(n + 1) + sum(xlogy(x, p) - gammaln(x + 1), -1)
    return convert_to(select_where(fits, logarithm, -math.inf), p.dtype)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the probability of counts under the multinomial distribution.

    Args:
        x: an integer array of counts, with outcomes along the last axis.
        n: an integer array, the number of trials.
        p: an array of probabilities, with outcomes along the last axis.

    Returns:
        An array of the broadcast other axes; 0 where the counts do not add up to `n`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `x` or `n` are not integers, or the shapes do not broadcast.

    Example:
        >>> scipy.stats.multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
        Array(0.5000001, dtype=float32)
    """
    return exp(logpmf(x, n, p))


_make_public(globals(), __all__)
