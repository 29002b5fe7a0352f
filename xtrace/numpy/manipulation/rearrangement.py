"""Elements in other places: repeated, flipped, rotated, rolled, on a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, canonical_shape, convert_to, operand_aval
from xtrace._src.algebra.vector_space import reshape as set_shape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import remainder
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.sizes import is_symbolic, to_size
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays import concatenation, slicing
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.reductions import reductions
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import diagonal_mask, zeros
from xtrace.numpy.indexing.indexing import DEFAULT, gather_elements, take
from xtrace.numpy.indexing.nonzero_elements import find_nth_elements
from xtrace.numpy.manipulation.joins_and_splits import stack
from xtrace.numpy.manipulation.shapes import moveaxis, ravel, swapaxes
from xtrace.numpy.operands import (
    axes_of,
    broadcast_operand_to,
    cast_to,
    is_sequence_of_axes,
    scalar_of,
    select_or_fill,
    store_axes,
    to_known_integer,
)


@inline_jit(static=("reps",), public=True)
def tile(A: ArrayLike, reps: object) -> Any:
    """Return an array repeated along each axis.

    Args:
        A: an array or a scalar.
        reps: the number of repetitions, or one for each axis; missing leading axes of `A`, and missing leading
            numbers, count as 1.

    Returns:
        An array of the dtype of `A`.

    Raises:
        TypeError: `A` is neither an array nor a scalar, or a number is not an integer.

    Example:
        >>> jnp.tile(jnp.array([1, 2]), 2)
        Array([1, 2, 1, 2], dtype=int32)
    """
    A = to_array_operand(A)
    counts = canonical_shape(reps)
    counts = (1,) * (A.ndim - len(counts)) + counts
    A = shapes.expand_dims(A, range(len(counts) - A.ndim))
    return A if all(n == 1 for n in counts) else concatenation.tile(A, counts)


def repeat(
    a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
    out_sharding: object = None,
) -> Array:
    """Return `a` with each element repeated along an axis.

    Args:
        a: an array or a scalar.
        repeats: the number of repetitions, an integer, or a vector with one for each element.
        axis: the axis; None for the flattened array.
        total_repeat_length: the length of the result, required for traced `repeats`; the result is cut, or padded
            with the last element.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the dtype of `a`.

    Raises:
        ConcretizationTypeError: `repeats` is traced and `total_repeat_length` is not given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `repeats` has another length than the axis, or `a` has no such axis.

    Example:
        >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]))
        Array([1, 1, 2], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(repeat, out_sharding, a, repeats, axis, total_repeat_length=total_repeat_length)
    a = to_array_operand(a)
    if axis is None or not a.ndim:
        a, along = ravel(a), 0
    else:
        along = canonical_axis(axis, a.ndim)
    aval, length = operand_aval(repeats, 1), a.shape[along]
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"repeat: repeats must be integers, got dtype {aval.dtype.name}")
    if aval.shape not in ((), (1,), (length,)):
        raise ValueError(f"repeat: repeats of shape {aval.shape} do not fit axis {along} of length {length}")
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            raise explain.concretization(repeats, "repeat argument repeats (without total_repeat_length)")
        total = to_known_integer("total_repeat_length", total_repeat_length)
        return take(a, _find_repeat_positions(repeats, length=length, total=total), along, mode="clip")
    if is_symbolic(repeats) and total_repeat_length is None:
        return _repeat(a, count=repeats, axis=along)
    counts = np.asarray(repeats)
    if (counts < 0).any():
        raise ValueError(f"repeat: repeats cannot be negative, got {repeats}")
    if not length:
        return a
    if counts.size == 1 and total_repeat_length is None:
        return _repeat(a, count=int(counts.reshape(())), axis=along)
    positions = np.repeat(np.arange(length), counts)
    if total_repeat_length is not None:
        total = to_known_integer("total_repeat_length", total_repeat_length)
        missing = np.full(max(total - positions.size, 0), length - 1)
        positions = np.concatenate([positions[:total], missing])
    return take(a, positions.astype(np.int32), along, mode="clip")


@inline_jit
def _find_repeat_positions(repeats: Any, *, length: int, total: int) -> Any:
    repeats = broadcast_operand_to(repeats, repeats.shape, (length,))
    return find_nth_elements(repeats, total, dtypes.int32)[0]


@inline_jit
def _repeat(a: Array, *, count: int, axis: int) -> Array:
    own = a.shape
    expanded = (*own[: axis + 1], count, *own[axis + 1 :])
    copies = broadcast_in_dim(a, expanded, [i for i in range(len(expanded)) if i != axis + 1])
    return set_shape(copies, (*own[:axis], own[axis] * count, *own[axis + 1 :]))


@inline_jit(static=("axis",), public=True)
def flip(m: Any, axis: Axes = None) -> Array:
    """Return the elements in reverse order.

    Args:
        m: an array.
        axis: the axis or axes to reverse; None for all.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `m` has no such axis.

    Example:
        >>> jnp.flip(jnp.array([1, 2, 3]))
        Array([3, 2, 1], dtype=int32)
    """
    return _flip(m, axis)


def _flip(m: Array, axis: Axes) -> Array:
    m = to_array_operand(m)
    axes = axes_of(axis, m.ndim)
    return shapes.rev(m, axes) if axes else m


@inline_jit(public=True)
def fliplr(m: Any) -> Array:
    """Return the elements in reverse order along the second axis.

    Args:
        m: an array that has the axis.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `m` does not have the axis.

    Example:
        >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return _flip(m, 1)


@inline_jit(public=True)
def flipud(m: Any) -> Array:
    """Return the elements in reverse order along the first axis.

    Args:
        m: an array that has the axis.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `m` does not have the axis.

    Example:
        >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return _flip(m, 0)


@inline_jit(static=("k", "axes"), public=True)
def rot90(m: object, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Return an array turned by right angles in the plane of two axes.

    Args:
        m: an array of at least two axes.
        k: the number of right angles.
        axes: the two axes; it is turned from the first towards the second.

    Returns:
        An array of the dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `m` has no such axes, or they are the same.

    Example:
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    m = to_array_operand(m)
    if m.ndim < 2:
        raise ValueError(f"rot90 requires its first argument to have ndim at least two, got shape {m.shape}")
    pair = axes_of(tuple(axes), m.ndim)
    if len(pair) != 2:
        raise ValueError(f"rot90: axes must be two different axes, got {axes}")
    first, second = pair
    turns = to_known_integer("k", k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return shapes.rev(m, (first, second))
    if turns == 1:
        return swapaxes(shapes.rev(m, (second,)), first, second)
    return shapes.rev(swapaxes(m, first, second), (second,))


@inline_jit(static=("shift", "axis"), public=True)
def roll(a: ArrayLike, shift: object, axis: Any = None) -> Array:
    """Return an array shifted along axes; elements moved beyond the end come back at the start.

    Args:
        a: an array.
        shift: the number of places, or one for each axis; it may be traced.
        axis: the axis, or several; None for the flattened array.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the numbers of shifts and axes differ, or `a` has no such axis.

    Example:
        >>> jnp.roll(jnp.array([1, 2, 3]), 1)
        Array([3, 1, 2], dtype=int32)
    """
    a = to_array_operand(a)
    if axis is None:
        return set_shape(roll(ravel(a), shift, 0), a.shape)
    axes = store_axes(axis)
    axes = [canonical_axis(i, a.ndim) for i in (axes if is_sequence_of_axes(axes) else (axes,))]
    shifts = _to_shifts(store_axes(shift))
    count = len(shifts)
    if count != len(axes) and 1 not in (count, len(axes)):
        raise ValueError(f"roll: {count} shifts for {len(axes)} axes; give one for each, or one")
    places = list(range(count)) if count != 1 else [0] * len(axes)
    axes = axes if len(axes) != 1 else axes * count
    for along in dict.fromkeys(axes):
        if a.shape[along]:
            own = [place for place, i in zip(places, axes, strict=True) if i == along]
            a = _roll_along(a, shifts, own, along)
    return a


def _to_shifts(shift: Any) -> Any:
    """Return shifts as a list of scalars, or as a vector of xtrace's."""
    several = isinstance(shift, (tuple, list, range))
    shifts = list(shift) if several else [shift]
    for each in shifts:
        if np.ndim(each) > (not several):
            raise ValueError(f"roll: shift must be a scalar or a vector, got one that holds {abbreviate(each)}")
        operand_aval(each, 1)
    if several or np.ndim(shift) == 0:
        return shifts
    return list(shift) if isinstance(shift, np.ndarray) else shift


def _roll_along(a: Array, shifts: Any, places: Sequence[int], axis: int) -> Array:
    """Return `a` rolled along `axis` by the sum of the shifts at `places`."""
    size, step = a.shape[axis], 0
    if isinstance(shifts, list):
        moving = []
        for shift in [shifts[i] for i in places]:
            if isinstance(shift, Array) or not dtypes.is_integer(operand_aval(shift, 0).dtype):
                moving.append(_reduce_modulo(to_array_operand(shift, 1), size=size))
            else:
                step = (step + to_size(shift)) % size
        total = None
        if moving:
            total = moving[0] if len(moving) == 1 else _sum_modulo(stack(moving), size=size)
    else:
        own = shifts if len(places) == len(shifts) else take(shifts, np.array(places, np.int32))
        total = _sum_modulo(_reduce_modulo(own, size=size), size=size)
    if total is not None:
        return _roll_traced(a, total, axis=axis, step=step)
    return _roll_static(a, axis=axis, step=step) if step else a


@inline_jit
def _reduce_modulo(shifts: Array, *, size: int) -> Array:
    """Return shifts as uint32, modulo the size of their axis, so that sums of two do not overflow."""
    wide = dtypes.is_integer(shifts.dtype) and shifts.dtype.itemsize >= 4
    return convert_to(remainder(shifts if wide else cast_to(shifts, shifts.aval, dtypes.int32), size), dtypes.uint32)


@inline_jit
def _sum_modulo(shifts: Array, *, size: int) -> Array:
    """Return the sum of reduced shifts, modulo the size of their axis."""

    def add(x: Array, y: Array) -> Array:
        return elementwise.rem(elementwise.add(x, y), np.uint32(size))

    result: Array = reductions.reduce(shifts, np.uint32(0), add, (0,))
    return result


@inline_jit
def _roll_static(a: Array, *, axis: int, step: int) -> Array:
    size = a.shape[axis]
    parts = [slicing.slice_in_dim(a, size - step, size, axis=axis), slicing.slice_in_dim(a, 0, size - step, axis=axis)]
    return concatenate(parts, axis)


@inline_jit
def _roll_traced(a: Array, shift: Array, *, axis: int, step: int) -> Array:
    size = a.shape[axis]
    shift = elementwise.rem(elementwise.add(shift, np.uint32(step)), np.uint32(size)) if step else shift
    start = elementwise.sub(np.uint32(size), shift)
    return dynamic_slice_in_dim(concatenate([a, a], axis), start, size, axis)


@inline_jit(static=("new_shape",), public=True)
def resize(a: ArrayLike, new_shape: object) -> Array:
    """Return the elements of `a` in a new shape, repeated from the start as often as needed.

    Args:
        a: an array or a scalar.
        new_shape: the lengths of the axes, or one length.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is neither an array nor a scalar, or a length is negative.

    Example:
        >>> jnp.resize(jnp.array([1, 2, 3]), 5)
        Array([1, 2, 3, 1, 2], dtype=int32)
    """
    a = to_array_operand(a)
    target = canonical_shape(new_shape)
    size = math.prod(target)
    if a.size == 0 or size == 0:
        return convert_to(zeros(target, a.dtype), a.dtype, a.weak_type)
    return set_shape(slicing.slice_in_dim(tile(ravel(a), -(-size // a.size)), 0, size), target)


@inline_jit(static=("offset", "axis1", "axis2"), public=True)
def diagonal(a: ArrayLike, offset: object = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of matrices, along a new last axis.

    Args:
        a: an array of at least two axes.
        offset: the diagonal, above the main one if positive.
        axis1, axis2: the axes of the rows and the columns.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axes, or they are the same.

    Example:
        >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    a = to_array_operand(a)
    if a.ndim < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {a.shape}")
    first, second = (canonical_axis(i, a.ndim) for i in (axis1, axis2))
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 cannot be the same, got {axis1} and {axis2}")
    shift = to_known_integer("offset", offset)
    row, column = max(0, -shift), max(0, shift)
    a = moveaxis(a, (first, second), (-2, -1))
    length = max(0, min(a.shape[-2] - row, a.shape[-1] - column))
    if length == 0:
        return convert_to(zeros((*a.shape[:-2], 0), a.dtype), a.dtype, a.weak_type)
    count = iota(dtypes.int32, length)
    positions = [elementwise.add(count, scalar_of(first, dtypes.int32)) if first else count for first in (row, column)]
    return gather_elements(a, positions, (a.ndim - 2, a.ndim - 1), a.ndim - 2, DEFAULT)


@inline_jit
def _make_diagonal_matrix(v: Array, *, offset: int) -> Array:
    size = v.size + abs(offset)
    padded = slicing.pad(v, scalar_of(0, v.dtype), [(max(offset, 0), max(-offset, 0), 0)])
    mask = diagonal_mask(offset, rows=size, columns=size, below=False)
    return convert_to(select_or_fill(mask, broadcast_in_dim(padded, (size, size), (1,)), 0), v.dtype, v.weak_type)


@inline_jit(static=("k",), public=True)
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Args:
        v: a matrix or a vector.
        k: the diagonal, above the main one if positive.

    Returns:
        A vector or a matrix of the dtype of `v`.

    Raises:
        TypeError: `v` is not an array.
        ValueError: `v` has another rank.

    Example:
        >>> jnp.diag(jnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    v = to_array_operand(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {v.shape}")
    return _make_diagonal_matrix(v, offset=to_known_integer("k", k))


@inline_jit(static=("k",), public=True)
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return the matrix with the elements of an array on its diagonal.

    Args:
        v: an array or a scalar, which is flattened.
        k: the diagonal, above the main one if positive.

    Returns:
        A matrix of the dtype of `v`.

    Raises:
        TypeError: `v` is neither an array nor a scalar.

    Example:
        >>> jnp.diagflat(jnp.array([[1], [2]]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    v = ravel(v)
    return _make_diagonal_matrix(convert_to(v, v.dtype, False), offset=to_known_integer("k", k))
