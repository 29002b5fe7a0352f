"""Dirichlet's distribution of concentrations `alpha`, over positive numbers whose sum is 1."""

from __future__ import annotations

import math

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import abs, exp
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.operands import cast_to
from xtrace.numpy.reductions.reductions import all, sum
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammaln

__all__ = ["logpdf", "pdf"]

# The largest difference of a point's sum from 1.
_TOLERANCE = 1e-6


@inline_jit
def _log_density(x: Array, alpha: Array) -> Array:
    count = alpha.shape[0]
    if x.shape[0] == count - 1:
        x = concatenate([x, 1 - sum(x, 0, keepdims=True)], 0)
    column = alpha.reshape((count,) + (1,) * (x.ndim - 1))
    logarithm = sum(xlogy(column - 1, x), 0) - (sum(gammaln(alpha)) - gammaln(sum(alpha)))
    return select_where(all(x > 0, 0) & (abs(sum(x, 0) - 1) < _TOLERANCE), logarithm, -math.inf)


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the logarithm of the density of the Dirichlet distribution.

    Args:
        x: an array of points, with their parts along the first axis; the last part may be left out.
        alpha: a vector of positive numbers.

    Returns:
        An array of the other axes; -inf unless all parts are positive and their sum is 1.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the number of parts does not agree, or `alpha` is not a vector.

    Example:
        >>> scipy.stats.dirichlet.logpdf(jnp.array([0.5, 0.5]), jnp.ones(2))
        Array(-9.536743e-07, dtype=float32)
    """
    (own, concentrations), dtype, _ = common_dtype((x, alpha), as_inexact)
    if concentrations.ndim != 1:
        raise ValueError(f"dirichlet.logpdf: `alpha` must be one-dimensional; got shape {concentrations.shape}")
    count = concentrations.shape[0]
    if not own.shape or own.shape[0] not in (count, count - 1):
        raise ValueError(
            "dirichlet.logpdf: `x` must have either the same number of entries as `alpha` along its first axis or one "
            f"entry fewer; got shapes {own.shape} and {concentrations.shape}"
        )
    return _log_density(cast_to(x, own, dtype), cast_to(alpha, concentrations, dtype))


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the density of the Dirichlet distribution.

    Args:
        x: an array of points, with their parts along the first axis; the last part may be left out.
        alpha: a vector of positive numbers.

    Returns:
        An array of the other axes; 0 unless all parts are positive and their sum is 1.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the number of parts does not agree, or `alpha` is not a vector.

    Example:
        >>> scipy.stats.dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.ones(2))
        Array(0.99999905, dtype=float32)
    """
    return exp(logpdf(x, alpha))


_make_public(globals(), __all__)
