"""Associated Legendre functions of all degrees and orders up to one, by recurrences (DLMF 14.10.3, 14.10.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.arrays.shape import broadcast
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.reductions.cumulative import cumprod
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufuncs import sqrt


def _diagonal_factors(degree: int, normalized: bool) -> np.ndarray[Any, Any]:
    """Return P(m, m) without the power of the sine, divided by P(m - 1, m - 1), for each order m."""
    order = np.arange(1, degree + 1)
    first = 0.5 / np.sqrt(np.pi) if normalized else 1.0
    return np.concatenate([[first], -np.sqrt((2 * order + 1) / (2 * order)) if normalized else 1.0 - 2 * order])


def _recurrence(degree: int, normalized: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the factors of z P(n - 1, m) and of P(n - 2, m) in P(n, m), for each degree n and each order m < n."""
    n, m = np.meshgrid(np.arange(degree + 1), np.arange(degree + 1), indexing="ij")
    inside = m < n
    if not normalized:
        below = np.where(inside, n - m, 1)
        return np.where(inside, (2 * n - 1) / below, 0.0), np.where(inside, (n + m - 1) / below, 0.0)
    one = np.sqrt((4 * n * n - 1) / np.where(inside, n * n - m * m, 1), where=inside, out=np.zeros(n.shape))
    two = np.sqrt(((n - 1) ** 2 - m * m) / (4 * (n - 1) ** 2 - 1), where=m < n - 1, out=np.zeros(n.shape))
    return one, one * two


@inline_jit
def _tabulate(z: Array, *, degree: int, normalized: bool, derivative: bool) -> tuple[Array, ...]:
    """Return P(n, m) at each z, as an array of the axes m, n and z; with `derivative`, also its derivatives."""
    dtype, count = z.dtype, degree + 1
    order = np.arange(count)[:, None]
    one, two = (x.astype(dtype)[:, :, None] for x in _recurrence(degree, normalized))
    factors = np.cumprod(_diagonal_factors(degree, normalized)).astype(dtype)[:, None]
    sine = sqrt(1 - z * z)
    powers = cumprod(select_where(order == 0, np.ones((), dtype), broadcast(sine, (count,))))
    diagonal = factors * powers
    # The derivative of the power m of the sine is -m z times its power m - 2.
    slope = -order.astype(dtype) * factors * z * powers[np.maximum(order[:, 0] - 2, 0)]
    zero = np.zeros((count, *z.shape), dtype)

    def step(state: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, Any]:
        (before, d_before), (earlier, d_earlier) = state
        degree_of_row, a, b = row

        def choose(on_diagonal: Any, below: Any) -> Any:
            return select_where(order < degree_of_row, below, select_where(order == degree_of_row, on_diagonal, 0.0))

        value = choose(diagonal, a * z * before - b * earlier)
        change = choose(slope, a * (before + z * d_before) - b * d_earlier) if derivative else zero
        return ((value, change), (before, d_before)), (value, change)

    _, (values, changes) = scan(step, ((zero, zero), (zero, zero)), (np.arange(count, dtype=np.int32), one, two))
    values = values.swapaxes(0, 1)
    if not derivative:
        return (values,)
    changes = changes.swapaxes(0, 1)
    if degree:
        # The recurrence of order 1 would subtract infinities where z is 1 or -1.
        n = np.arange(count, dtype=dtype)[:, None]
        second = values[2] if degree > 1 else values[0] * 0
        first = select_where(n == 0, 0.0, (n * (n + 1) * values[0] - second) / (2 * sine))
        changes = changes.at[1].set(first)
    return values, changes


def _check(function: str, m: Any, n: Any, z: Any) -> tuple[Array, int]:
    aval, orders, degree = operand_aval(z, "z"), to_integer("m", m), to_integer("n", n)
    if aval.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"{function}: z must be float32 or float64, got {aval.dtype.name}; convert it")
    if aval.ndim != 1:
        raise ValueError(f"{function}: z must be an array of one axis, got {aval.str_short()}; write z.ravel()")
    if orders != degree:
        raise NotImplementedError(
            f"{function}: m and n must be equal, got m={orders} and n={degree}; pass the larger one twice, and slice"
        )
    if degree < 0:
        raise ValueError(f"{function}: m and n must be 0 or more, got {degree}")
    return to_array(z), degree


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Return the associated Legendre functions of the first kind and their derivatives, at each point.

    Args:
        m: the largest order.
        n: the largest degree; equal to `m`.
        z: an array of float32 or float64 with one axis.

    Returns:
        The values, with the Condon-Shortley phase, and the derivatives: arrays of the axes order, degree and point.

    Raises:
        NotImplementedError: `m` and `n` differ.
        TypeError: `z` has another dtype.
        ValueError: `z` has not one axis, or `n` is negative.

    Example:
        >>> scipy.special.lpmn(1, 1, jnp.array([0.6]))[0][:, :, 0]
        Array([[ 1.        ,  0.6       ],
               [ 0.        , -0.79999995]], dtype=float32)
    """
    z, degree = _check("lpmn", m, n, z)
    values, derivatives = _tabulate(z, degree=degree, normalized=False, derivative=True)
    return values, derivatives


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Return the associated Legendre functions of the first kind, at each point.

    Args:
        m: the largest order.
        n: the largest degree; equal to `m`.
        z: an array of float32 or float64 with one axis.
        is_normalized: whether they are scaled as in spherical harmonics, which are orthonormal on the sphere.

    Returns:
        The values, with the Condon-Shortley phase: an array of the axes order, degree and point.

    Raises:
        NotImplementedError: `m` and `n` differ.
        TypeError: `z` has another dtype.
        ValueError: `z` has not one axis, or `n` is negative.

    Example:
        >>> scipy.special.lpmn_values(1, 1, jnp.array([0.6]), True)[:, :, 0]
        Array([[ 0.28209478,  0.29316154],
               [ 0.        , -0.27639532]], dtype=float32)
    """
    z, degree = _check("lpmn_values", m, n, z)
    return _tabulate(z, degree=degree, normalized=bool(is_normalized), derivative=False)[0]
