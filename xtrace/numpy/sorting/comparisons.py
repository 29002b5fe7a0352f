"""Comparisons of whole arrays: equal, equivalent, or close."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import equal
from xtrace._src.api.operators.promotion import find_common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace.numpy.arrays.conversion import array, asarray
from xtrace.numpy.elementwise.floating_point import isclose
from xtrace.numpy.manipulation.broadcasting import broadcast_arrays
from xtrace.numpy.reductions import reductions


@inline_jit
def _all_close(a: ArrayLike, b: ArrayLike, rtol: Any, atol: Any, *, equal_nan: bool) -> Array:
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


@inline_jit(static=("equal_nan",), public=True)
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Return whether `isclose` holds for all elements.

    Args:
        a, b: arrays or scalars of numbers whose shapes broadcast.
        rtol: the tolerance relative to `b`, a number.
        atol: the absolute tolerance, a number.
        equal_nan: whether two NaN are close.

    Returns:
        An array of rank 0 and dtype bool.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0 + 1e-6]))
        Array(True, dtype=bool)
    """
    for i, x in enumerate((a, b, rtol, atol)):
        operand_aval(x, i)
    return _all_close(a, b, rtol, atol, equal_nan=bool(equal_nan))


@inline_jit
def _all_equal(a: Array, b: Array, *, equal_nan: bool) -> Array:
    same = equal(a, b)
    if equal_nan:
        same = same | ((a != a) & (b != b))
    return reductions.all(same)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Return whether two arrays have one shape and equal elements.

    Args:
        a1, a2: arrays, scalars or nested lists of numbers.
        equal_nan: whether NaN equals NaN.

    Returns:
        An array of rank 0 and dtype bool.

    Raises:
        TypeError: an operand does not convert to an array.

    Example:
        >>> jnp.array_equal(jnp.array([1, 2]), [1, 2])
        Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return array(False)
    both = dtypes.is_inexact(a1.dtype) and dtypes.is_inexact(a2.dtype)
    return _all_equal(a1, a2, equal_nan=bool(equal_nan) and both)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Return whether two arrays broadcast against each other and then have equal elements.

    Args:
        a1, a2: arrays, scalars or nested lists of numbers.

    Returns:
        An array of rank 0 and dtype bool.

    Raises:
        TypeError: an operand does not convert to an array.

    Example:
        >>> jnp.array_equiv(jnp.array([1, 1]), 1)
        Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    ranks = min(a1.ndim, a2.ndim)
    ends = zip(a1.shape[a1.ndim - ranks :], a2.shape[a2.ndim - ranks :], strict=True)
    if not all(m == n or 1 in (m, n) for m, n in ends):
        return array(False)
    return _compare_all(a1, a2)


@inline_jit
def _compare_all(a: Array, b: Array) -> Array:
    dtype = find_common_dtype(a, b)
    return reductions.all(equal(*broadcast_arrays(convert_to(a, dtype), convert_to(b, dtype))))
