"""Elements deleted and inserted, and zeros trimmed from the ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays import slicing
from xtrace._src.ops.arrays.creation import iota
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import warn_of_lost_part
from xtrace.numpy.elementwise.ufuncs import clip
from xtrace.numpy.indexing.indexing import take
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import expand_dims, moveaxis, ravel
from xtrace.numpy.operands import axes_of
from xtrace.numpy.reductions.reductions import sum
from xtrace.numpy.sorting.sorts import argsort


def _prepare_operand(arr: Array, axis: int | None) -> tuple[Any, int]:
    arr = to_array_operand(arr)
    if axis is None:
        return ravel(arr), 0
    return arr, canonical_axis(axis, arr.ndim)


def _count_from_front(positions: Array, length: int) -> Array:
    """Return integer positions as int32 in [0, length]; wider integers are clamped before the conversion."""
    if dtypes.iinfo(positions.dtype).max > dtypes.iinfo(dtypes.int32).max:
        positions = clip(positions, -length - 1 if dtypes.is_signed(positions.dtype) else None, length)
    positions = convert_to(positions, dtypes.int32)
    return clip(where(positions < 0, positions + length, positions), 0, length)


@inline_jit
def _delete_unique(a: Array, positions: Array, *, axis: int) -> Array:
    """Return `a` without the elements at distinct positions, which may be traced."""
    length = a.shape[axis]
    positions = clip(_count_from_front(ravel(to_array_operand(positions)), length), 0, length - 1)
    gone = sum(iota(positions.dtype, length)[:, None] == positions[None], 1) > 0
    # A stable sort of the mask puts the remaining elements first, in order.
    kept = argsort(gone)[: length - positions.size]
    return take(a, kept, axis, mode="clip")


def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """Return an array without the slices at given indices.

    Args:
        arr: an array.
        obj: the indices, an integer, a slice, an array of integers, or a mask of booleans.
        axis: the axis; None for the flattened array.
        assume_unique_indices: a promise of distinct indices; required for a traced `obj`.

    Returns:
        An array of the dtype of `arr`.

    Raises:
        ConcretizationTypeError: `obj` is a traced mask, or traced without the promise.
        IndexError: an index in an array is out of bounds.
        TypeError: `arr` is not an array.
        ValueError: a single index is out of bounds, a mask has another length, or `obj` is neither integer nor boolean.

    Example:
        >>> jnp.delete(jnp.array([5, 6, 7]), 1)
        Array([5, 7], dtype=int32)
    """
    arr, along = _prepare_operand(arr, axis)
    length = arr.shape[along]
    if isinstance(obj, slice):
        positions: Any = np.arange(length)[obj]
        return take(arr, np.delete(np.arange(length, dtype=np.int32), positions), along, mode="clip")
    aval = operand_aval(obj, 1)
    mask = dtypes.is_boolean(aval.dtype)
    if not mask and not dtypes.is_integer(aval.dtype):
        raise ValueError(f"delete: obj must be a slice, integers or booleans; got dtype {aval.dtype.name}")
    if mask and aval.ndim and aval.shape != (length,):
        raise ValueError(
            f"delete: for boolean indices, obj must be one-dimensional with the length of the axis, {length}; got "
            f"shape {aval.shape}"
        )
    # A single index never repeats.
    is_unique = assume_unique_indices or (is_symbolic(length) and not aval.ndim)
    if is_unique and not mask and length and aval.size:
        return _delete_unique(arr, obj, axis=along)
    if isinstance(obj, Tracer):
        raise explain.concretization(obj, "delete argument obj (without assume_unique_indices=True)")
    places = np.asarray(obj)
    if mask and not aval.ndim:
        places = places.astype(np.int32)
    if not places.ndim:
        if not -length <= places < length:
            raise ValueError(f"delete: index {places} is out of bounds for axis {along} of length {length}")
    elif not mask and places.size and not (-length <= places.min() and places.max() < length):
        raise IndexError(f"delete: an index is out of bounds for axis {along} of length {length}: {obj}")
    keep = np.ones(length, bool)
    keep[places] = False
    return take(arr, np.flatnonzero(keep).astype(np.int32), along, mode="clip")


@inline_jit
def _insert_slice(a: Array, position: Array, values: Any, *, axis: int) -> Array:
    """Return `a` with `values` before a position that may be traced."""
    length, count = a.shape[axis], values.shape[axis]
    position = _count_from_front(position, length)
    # The new elements are appended; a vector of positions then gives each element of the result.
    place = iota(dtypes.int32, length + count)
    source = where(place < position, place, where(place < position + count, length + place - position, place - count))
    return take(concatenate([a, values], axis), source, axis, mode="clip")


@inline_jit
def _insert_each(a: Array, positions: Array, values: ArrayLike, *, axis: int) -> Array:
    """Return `a` with one of `values` before each position, which may be traced."""
    length = a.shape[axis]
    positions = _count_from_front(positions, length)
    # A stable sort by position puts new elements, in order, before the old one there.
    places = concatenate([positions * 2, iota(positions.dtype, length) * 2 + 1])
    return take(concatenate([values, a], axis), argsort(places), axis, mode="clip")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values inserted before indices.

    Args:
        arr: an array.
        obj: the indices in `arr`, an integer, a slice, or a vector of integers, which may be traced; those out of
            bounds are moved to the end.
        values: the values, which broadcast; all are inserted before a single index, and one before each of several.
        axis: the axis; None for the flattened array.

    Returns:
        An array of the dtype of `arr`.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `obj` is not integer or has more than one axis, or the values do not broadcast.

    Example:
        >>> jnp.insert(jnp.array([5, 6]), 1, 9)
        Array([5, 9, 6], dtype=int32)
    """
    arr, along = _prepare_operand(arr, axis)
    length = arr.shape[along]
    if isinstance(obj, slice):
        obj = np.arange(length, dtype=np.int32)[obj]
    aval = operand_aval(obj, 1)
    if not dtypes.is_integer(aval.dtype):
        raise ValueError(f"insert: obj must be integers or a slice; got dtype {aval.dtype.name}")
    if aval.ndim > 1:
        raise ValueError(f"insert: obj must be a slice, a one-dimensional array, or a scalar; got shape {aval.shape}")
    warn_of_lost_part(operand_aval(values, 2).dtype, arr.dtype)
    values = convert_to(values, arr.dtype, arr.aval.weak_type)
    if values.ndim < arr.ndim:
        values = expand_dims(values, tuple(range(arr.ndim - values.ndim)))
    if aval.size == 1:
        if not aval.ndim:
            # For a scalar position, the inserted axis is the first one of the values.
            values = moveaxis(values, 0, along)
        shape = list(arr.shape)
        shape[along] = values.shape[along]
        position = ravel(to_array_operand(obj))[0]
        return _insert_slice(arr, position, broadcast_to(values, shape), axis=along)
    shape = list(arr.shape)
    shape[along] = aval.size
    return _insert_each(arr, to_array_operand(obj), broadcast_to(values, shape), axis=along)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes = None) -> Array:
    """Return an array without the zeros at its ends.

    Args:
        filt: an array, which must be concrete.
        trim: ``"f"`` for the front, ``"b"`` for the back, ``"fb"`` for both.
        axis: the axis or axes to trim; None for all.

    Returns:
        An array of the dtype of `filt`.

    Raises:
        ConcretizationTypeError: `filt` is traced.
        TypeError: `filt` is not an array, or `trim` is not a string.
        ValueError: `filt` has no such axis.

    Example:
        >>> jnp.trim_zeros(jnp.array([0, 5, 0, 6, 0]))
        Array([5, 0, 6], dtype=int32)
    """
    filt = to_array_operand(filt)
    axes = axes_of(axis, filt.ndim)
    if isinstance(filt, Tracer):
        raise explain.concretization(filt, "trim_zeros argument filt")
    if not isinstance(trim, str):
        raise TypeError(f"trim_zeros: trim must be a string of 'f' and 'b', got {abbreviate(trim)}")
    nonzero = np.asarray(filt) != 0
    for along in axes:
        places = np.flatnonzero(nonzero.any(tuple(i for i in range(filt.ndim) if i != along)))
        length = filt.shape[along]
        if not places.size:
            start, stop = (0, 0) if trim else (0, length)
        else:
            start = int(places[0]) if "f" in trim.lower() else 0
            stop = int(places[-1]) + 1 if "b" in trim.lower() else length
        filt = slicing.slice_in_dim(filt, start, stop, axis=along)
    return filt
