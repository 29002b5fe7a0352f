"""Positions of nonzero elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.core.sizes import bit_length
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, lt, ne
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions import cumulative
from xtrace._src.runtime.transfer import committed_device
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.indexing.indexing import CLIPPED, gather_elements
from xtrace.numpy.operands import broadcast_operand_to, scalar_of


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """Return the positions of nonzero elements.

    Args:
        a: an array of at least one axis.
        size: the number of positions, required for a traced array: further ones are dropped, missing ones filled.
        fill_value: the number that fills missing positions, or a tuple with one for each axis; None for 0.

    Returns:
        A tuple of vectors of integers, one for each axis.

    Raises:
        ConcretizationTypeError: `a` is traced and `size` is not given.
        TypeError: `a` is not an array.
        ValueError: `a` is a scalar, `size` is negative, or `fill_value` does not fit.

    Example:
        >>> jnp.nonzero(jnp.array([0, 3, 0, 4]))
        (Array([1, 3], dtype=int32),)
    """
    a = to_array_operand(a)
    if a.ndim == 0:
        raise ValueError("nonzero: a scalar has no axes; use nonzero(atleast_1d(x))")
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * a.ndim
    if len(fills) != a.ndim or any(np.shape(f) for f in fills):
        raise ValueError(
            f"nonzero: fill_value must be a number or a tuple of {a.ndim} of them, got {abbreviate(fill_value)}"
        )
    if size is None:
        if isinstance(a, Tracer):
            raise explain.concretization(a, "numpy.nonzero without size=")
        if fill_value is not None:
            # The dtype is the same as with a size.
            return tuple(_find_nonzero(a, *fills, size=int(np.count_nonzero(np.asarray(a)))))
        dtype = dtypes.default_int(config.enable_x64.value)
        device = committed_device(a)
        return tuple([asarray(result.astype(dtype), device=device) for result in np.nonzero(np.asarray(a))])
    count = to_integer("size", size)
    if count < 0:
        raise ValueError(f"nonzero: size must not be negative, got {size}")
    return tuple(_find_nonzero(a, *fills, size=count))


@inline_jit
def _find_nonzero(a: Array, *fills: ArrayLike, size: int) -> list[Any]:
    dtype = dtypes.default_int(config.enable_x64.value)
    flat = ne(reshape(a, (a.size,)), scalar_of(0, a.dtype))
    place, exists = find_nth_elements(flat, size, dtype)
    if not a.size or not size:
        # As in JAX, for every fill value.
        return [zeros((size,), dtype)] * a.ndim
    coordinates = []
    for axis, fill in enumerate(fills):
        later = scalar_of(math.prod(a.shape[axis + 1 :]) or 1, dtype)
        at = elementwise.rem(elementwise.div(place, later), scalar_of(max(a.shape[axis], 1), dtype))
        filled, at = promote(fill, at)
        coordinates.append(select_n(exists, broadcast_operand_to(filled, (), (size,)), at))
    return coordinates


def find_nth_elements(numbers: Any, size: int, dtype: DTypeLike) -> tuple[Any, Any]:
    """Return the first positions where the cumulative sum reaches 1, 2 … `size`, and whether they exist.

    For a mask, these are the positions of its first, second … true element.
    """
    length = numbers.size
    order = elementwise.add(iota(dtype, size), scalar_of(1, dtype))
    low = broadcast_in_dim(scalar_of(0, dtype), (size,), ())
    if not length or not size:
        return low, lt(low, low)
    counts = cumulative.cumsum(convert_to(numbers, dtype), 0)
    high = broadcast_in_dim(scalar_of(length, dtype), (size,), ())

    # One binary search finds all positions together.
    def step(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = state
        middle = elementwise.div(elementwise.add(low, high), scalar_of(2, dtype))
        few = lt(gather_elements(counts, [middle], (0,), 0, CLIPPED), order)
        searching = lt(low, high)
        low = select_n(bitwise_and(few, searching), low, elementwise.add(middle, scalar_of(1, dtype)))
        return low, select_n(few, middle, high)

    low, _ = fori_loop(0, bit_length(length), step, (low, high))
    return low, lt(low, scalar_of(length, dtype))


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Return the positions of nonzero elements in the flattened array.

    Args:
        a: an array or a scalar.
        size: the number of positions, required for a traced array: further ones are dropped, missing ones filled.
        fill_value: the number that fills missing positions; None for 0.

    Returns:
        A vector of integers.

    Raises:
        ConcretizationTypeError: `a` is traced and `size` is not given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `size` is negative.

    Example:
        >>> jnp.flatnonzero(jnp.array([[0, 3], [0, 4]]))
        Array([1, 3], dtype=int32)
    """
    a = to_array_operand(a)
    return nonzero(reshape(a, (a.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Return the positions of nonzero elements, one in each row.

    Args:
        a: an array or a scalar.
        size: the number of positions, required for a traced array: further ones are dropped, missing ones filled.
        fill_value: the number that fills missing positions; None for 0.

    Returns:
        A matrix of integers with a column for each axis.

    Raises:
        ConcretizationTypeError: `a` is traced and `size` is not given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `size` is negative.

    Example:
        >>> jnp.argwhere(jnp.array([[0, 3], [0, 4]]))
        Array([[0, 1],
               [1, 1]], dtype=int32)
    """
    a = to_array_operand(a)
    if a.ndim == 0:
        coordinates = nonzero(reshape(a, (1,)), size=size, fill_value=fill_value)[0]
        return zeros((coordinates.size, 0), coordinates.dtype)
    columns = promote(*nonzero(a, size=size, fill_value=fill_value))
    table = concatenate([expand_dims(x, (1,)) for x in columns], 1)
    return convert_to(table, table.dtype) if is_newer() else table
