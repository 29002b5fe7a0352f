"""Arrays as sets: unique elements, unions, intersections, differences, and membership.

The number of elements depends on values. Under `jit` the parameter `size` sets it, and the result is cut or padded.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays import sorting
from xtrace._src.ops.arrays.concatenation import split
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.elementwise import constants, elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_not, bitwise_or, eq, ge, lt, ne
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace._src.ops.reductions.reductions import argmax, reduce_or
from xtrace._src.runtime.transfer import committed_device
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import full
from xtrace.numpy.indexing.indexing import getitem, take
from xtrace.numpy.indexing.nonzero_elements import flatnonzero
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import moveaxis, ravel
from xtrace.numpy.operands import scalar_of
from xtrace.numpy.sorting.ordering import searchsorted

_METHODS = ("compare_all", "binary_search", "sort", "auto")
# Up to this number of elements, comparing with each is faster than searching.
_MAX_COMPARED = 64


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


# Steps


def _to_size(size: object, *operands: ArrayLike) -> int | None:
    """Return `size` as an integer or None; raise ConcretizationTypeError for traced operands without a size."""
    if size is None:
        for x in operands:
            if isinstance(x, Tracer):
                raise explain.concretization(x, f"numpy.{called_function()} without size=")
        return None
    number = to_integer("size", size)
    if number < 0:
        raise TypeError(f"{called_function()}: size must not be negative, got {size}")
    return number


def _unify_nans(x: Array) -> Array:
    """Return `x` with all complex NaNs replaced by NaN + 0i, so that a set holds one of them."""
    return _normalize_nan(x) if dtypes.is_complex(x.dtype) else x


@inline_jit
def _normalize_nan(x: Array) -> Array:
    return select_n(ne(x, x), x, constants.constants_like(x, np.nan))


@inline_jit
def _sort_rows(rows: Array, *, equal_nan: bool) -> tuple[Any, Any, Any]:
    """Return a sorting order of the rows, a mask of the first of equal rows in it, and the sorted first column."""
    columns = [reshape(x, (rows.shape[0],)) for x in split(rows, [1] * rows.shape[1], 1)] if rows.shape[1] else []
    in_order = sorting.sort([*columns, iota(dtypes.int32, rows.shape[0])], 0, num_keys=max(len(columns), 1))
    differences = []
    for column in in_order[:-1]:
        later, earlier = getitem(column, slice(1, None)), getitem(column, slice(None, -1))
        unequal = ne(later, earlier)
        if equal_nan and dtypes.is_inexact(column.dtype):
            both = bitwise_and(ne(later, later), ne(earlier, earlier))
            unequal = bitwise_and(unequal, bitwise_not(both))
        differences.append(unequal)
    if differences:
        differ = functools.reduce(bitwise_or, differences)
    else:
        differ = broadcast_in_dim(scalar_of(False, dtypes.bool_), (rows.shape[0] - 1,), ())
    first = broadcast_in_dim(scalar_of(True, dtypes.bool_), (1,), ())
    return in_order[-1], concatenate([first, differ]), in_order[0]


def _keep_elements(mask: Array, values: list[Any], fills: list[Any], size: int | None) -> list[Array]:
    """Return the elements of each of `values` where `mask` is true, cut or padded with `fills` to `size`."""
    if size is None:
        kept_mask = np.asarray(mask)
        kept = [asarray(np.asarray(x)[kept_mask], device=committed_device(x)) for x in values]
        return [convert_to(y, x.dtype, x.aval.weak_type) for x, y in zip(values, kept, strict=True)]
    return _keep_to_size(mask, *values, *fills, size=size)


@inline_jit
def _keep_to_size(mask: Array, *operands: Array, size: int) -> list[Any]:
    values, fills = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    places = flatnonzero(mask, size=size, fill_value=mask.size)
    missing = eq(places, scalar_of(mask.size, places.dtype))
    arrays = []
    for x, fill in zip(values, fills, strict=True):
        if not mask.size:
            arrays.append(full((size,), fill, x.dtype))
            continue
        filling = broadcast_in_dim(convert_to(fill, x.dtype, x.aval.weak_type), (size,), ())
        arrays.append(select_n(missing, take(x, places, 0, mode="clip"), filling))
    return arrays


@inline_jit
def _number_groups(order: Array, new: Array) -> Array:
    """Return the group number of each element, in the original order."""
    number = elementwise.sub(cumsum(convert_to(new, dtypes.int32), 0), scalar_of(1, dtypes.int32))
    return broadcast_in_dim(scalar_of(0, dtypes.int32), order.shape, ()).at[order].set(number, unique_indices=True)


@inline_jit
def _search_members(element: Any, tested: Any, *, compare: bool) -> Array:
    """Return whether each element is in the non-empty vector `tested` of the same type."""
    if compare:
        whole = (*element.shape, tested.size)
        left = broadcast_in_dim(element, whole, tuple(range(element.ndim)))
        return reduce_or(eq(left, broadcast_in_dim(tested, whole, (element.ndim,))), (element.ndim,))
    ordered = sorting.sort(tested, 0)
    return eq(take(ordered, searchsorted(ordered, element), 0, mode="clip"), element)


def _test_membership(element: Array, tested: Array, compare: bool = False) -> Array:
    """Return whether each element is in the vector `tested` of the same type."""
    if not tested.size or not element.size:
        return full(element.shape, False)
    few = not is_symbolic(tested.size) and tested.size <= _MAX_COMPARED
    few = few or dtypes.is_complex(element.dtype) or dtypes.is_boolean(element.dtype)
    return _search_members(element, tested, compare=compare or few)


def _flatten_pair(one: ArrayLike, other: ArrayLike) -> tuple[Any, Any]:
    """Return two operands flattened, in their common type."""
    _, dtype, weak = common_dtype((one, other))
    first, second = (ravel(convert_to(to_array_operand(x, i), dtype, weak)) for i, x in enumerate((one, other)))
    return first, second


def _take_least(values: Array, mask: Array) -> Array:
    """Return the first of the sorted elements where `mask` is true; 0 if it is true nowhere."""
    return take(values, flatnonzero(mask, size=1, fill_value=mask.size)[0], 0, mode="fill", fill_value=0)


# Unique elements


@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: bool = ..., size: int | None = ...,
    fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> Array: ...


@overload
def unique(
    ar: ArrayLike, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ...,
    axis: int | None = ..., *, equal_nan: bool = ..., size: int | None = ..., fill_value: ArrayLike | None = ...,
    sorted: bool = ...,
) -> Any: ...


def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Return the sorted unique elements of an array, or its unique slices.

    Args:
        ar: an array or a scalar.
        return_index: whether the first position of each unique element is returned, too.
        return_inverse: whether the position of each element among the unique ones is returned, too.
        return_counts: whether the count of each unique element is returned, too.
        axis: the axis of the slices; None for the elements of the flattened array.
        equal_nan: whether all NaN are one element.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the smallest one.
        sorted: ignored; the elements are always sorted.

    Returns:
        An array, or a tuple of it and of arrays of integers.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: `ar` is neither an array nor a scalar.
        ValueError: `ar` has no such axis.

    Example:
        >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
        (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    ar = _unify_nans(to_array_operand(ar))
    count = _to_size(size, ar)
    along = None if axis is None else canonical_axis(axis, ar.ndim)
    moved = reshape(ar, (ar.size,)) if along is None else moveaxis(ar, along, 0)
    length = moved.shape[0]
    inverse_shape = ar.shape if along is None else (length,)
    empty = not ar.size
    if empty and count and fill_value is None:
        raise ValueError("unique: for an input of size zero and a size other than 0, fill_value must be specified")
    if empty:
        parts = _take_unique_of_empty(moved, count, fill_value, inverse_shape)
    else:
        order, new, _ = _sort_rows(reshape(moved, (length, moved.size // length)), equal_nan=bool(equal_nan))
        parts = _take_unique(moved, order, new, fill_value, count)
        parts.insert(2, reshape(_number_groups(order, new), inverse_shape))
    if along is not None:
        parts[0] = moveaxis(parts[0], 0, along)
    if dtypes.is_complex(ar.dtype):
        parts[0] = convert_to(parts[0], ar.dtype)
    wanted = [parts[0]]
    for i, asked in enumerate((return_index, return_inverse, return_counts)):
        if asked:
            wanted.append(convert_to(parts[1 + i], dtypes.default_int(config.enable_x64.value)))
    return tuple(wanted) if len(wanted) > 1 else wanted[0]


def _take_unique_of_empty(moved: Array, count: int | None, fill: Any, inverse_shape: tuple[int, ...]) -> list[Any]:
    """Return the results of `unique` for no slices, or for slices without elements, which are all equal.

    As in JAX, only the slices themselves are cut or padded to `count`.
    """
    length = moved.shape[0]
    groups = min(length, 1)
    values = full((groups if count is None else count, *moved.shape[1:]), 0 if fill is None else fill, moved.dtype)
    values = convert_to(values, moved.dtype, moved.aval.weak_type)
    first, counts = [full((groups,), x, dtypes.int32) for x in (0, length)]
    return [values, first, full(inverse_shape, 0, dtypes.int32), counts]


def _take_unique(moved: Array, order: Array, new: Array, fill: Any, size: int | None) -> list[Any]:
    """Return the unique slices, their first positions, and their counts."""
    if size is None:
        starts = np.flatnonzero(np.asarray(new))
        first = np.asarray(order)[starts]
        values = np.asarray(moved)[first]
        counts = np.diff(starts, append=new.size).astype(np.int32)
        device = committed_device(moved)
        kept, *others = [asarray(x, device=device) for x in (values, first, counts)]
        return [convert_to(kept, moved.dtype, moved.aval.weak_type), *others]
    return _take_unique_to_size(moved, order, new, *([] if fill is None else [fill]), size=size)


@inline_jit
def _take_unique_to_size(moved: Array, order: Array, new: Array, *fills: ArrayLike, size: int) -> list[Any]:
    length = new.size
    starts = flatnonzero(new, size=size + 1, fill_value=length)
    own, later = getitem(starts, slice(None, -1)), getitem(starts, slice(1, None))
    exists = lt(own, scalar_of(length, own.dtype))
    zero = broadcast_in_dim(scalar_of(0, own.dtype), own.shape, ())
    first = take(order, select_n(exists, zero, own), 0, mode="clip")
    values = take(moved, first, 0, mode="clip")
    filled = bool(fills) and size > 0
    if filled:
        fill = broadcast_to(convert_to(fills[0], moved.dtype), values.shape)
        mask = broadcast_in_dim(exists, values.shape, (0,))
        values = select_n(mask, fill, values)
    values = convert_to(values, moved.dtype, moved.aval.weak_type and not filled)
    return [values, first, convert_to(elementwise.sub(later, own), dtypes.int32)]


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """Return the unique elements, their first positions, the position of each element among them, and their counts.

    Args:
        x: an array or a scalar; every NaN is an element of its own.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the smallest one.

    Returns:
        A named tuple of arrays.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.unique_all(jnp.array([3, 1, 3])).values
        Array([1, 3], dtype=int32)
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Return the unique elements and their counts.

    Args:
        x: an array or a scalar; every NaN is an element of its own.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the smallest one.

    Returns:
        A named tuple of arrays.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
        Array([1, 3], dtype=int32)
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Return the unique elements, and the position of each element among them.

    Args:
        x: an array or a scalar; every NaN is an element of its own.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the smallest one.

    Returns:
        A named tuple of arrays.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.unique_inverse(jnp.array([3, 1, 3])).values
        Array([1, 3], dtype=int32)
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Return the unique elements.

    Args:
        x: an array or a scalar; every NaN is an element of its own.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the smallest one.

    Returns:
        A vector.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.unique_values(jnp.array([3, 1, 3]))
        Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# Operations on two sets


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Return the sorted union of the elements of two arrays.

    Args:
        ar1, ar2: arrays, which are flattened.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the smallest one.

    Returns:
        A vector of the promoted dtype.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: an operand does not convert to an array.

    Example:
        >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    one, other = _flatten_pair(ar1, ar2)
    _to_size(size, one, other)
    return unique(concatenate([one, other]), size=size, fill_value=fill_value)


def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Any:
    """Return the sorted intersection of the elements of two arrays.

    Args:
        ar1, ar2: arrays, which are flattened.
        assume_unique: a promise that the elements of each are unique; ignored.
        return_indices: whether the first positions in both are returned, too.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the first one.

    Returns:
        A vector of the promoted dtype, or a triple of it and of vectors of positions.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: an operand does not convert to an array.

    Example:
        >>> jnp.intersect1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([1], dtype=int32)
    """
    one, other = _flatten_pair(ar1, ar2)
    count = _to_size(size, one, other)
    dtype, weak = _find_padded_type(one, count, fill_value)
    if not one.size or not other.size:
        nothing = full((count or 0,), 0 if fill_value is None else fill_value, dtype)
        parts = [convert_to(nothing, dtype, weak)]
        parts += [full((count or 0,), x.size, dtypes.int32) for x in (one, other)]
    else:
        order, new, ordered = _sort_rows(reshape(one, (one.size, 1)), equal_nan=True)
        mask = bitwise_and(new, _test_membership(ordered, other))
        values = [convert_to(ordered, dtype, weak)]
        fills = [_take_least(ordered, mask) if fill_value is None else fill_value]
        if return_indices:
            values += [order, _find_positions(ordered, other)]
            fills += [one.size, other.size]
        parts = _keep_elements(mask, values, fills, count)
    if not return_indices:
        return parts[0]
    dtype = dtypes.default_int(config.enable_x64.value)
    return (parts[0], *[convert_to(places, dtype) for places in parts[1:]])


def _find_padded_type(operand: Array, size: int | None, fill: object) -> tuple[Any, bool]:
    """Return the dtype of a set of elements of `operand` padded to `size` with `fill`, and whether it is weak.

    It is promoted with the dtype of `fill`. Without padding, the weak type of an operand that is not complex remains.
    """
    if size is None:
        return operand.dtype, operand.weak_type and not dtypes.is_complex(operand.dtype)
    if fill is None:
        return operand.dtype, False
    _, dtype, weak = common_dtype((convert_to(operand, operand.dtype, False), fill))
    return dtype, weak


def _find_positions(values: Array, other: Array) -> Array:
    """Return the first position of each of `values` in the vector `other`."""
    order, _, ordered = _sort_rows(reshape(other, (other.size, 1)), equal_nan=True)
    if not dtypes.is_complex(other.dtype):
        return take(order, searchsorted(ordered, values), 0, mode="clip")
    whole = (values.size, other.size)
    equal = eq(broadcast_in_dim(values, whole, (0,)), broadcast_in_dim(other, whole, (1,)))
    return argmax(equal, 1, dtypes.int32)


def setdiff1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements of one array that are not in another, sorted.

    Args:
        ar1, ar2: arrays, which are flattened.
        assume_unique: whether to return elements of `ar1` in their order, with repetitions, instead of sorted unique
            ones.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for 0.

    Returns:
        A vector of the dtype of `ar1`.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: an operand does not convert to an array.

    Example:
        >>> jnp.setdiff1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([3], dtype=int32)
    """
    own = operand_aval(ar1, 0)
    count = _to_size(size, ar1)
    fill = 0 if fill_value is None else fill_value
    if not own.size:
        return convert_to(full((count or 0,), fill, own.dtype), own.dtype, own.weak_type)
    _to_size(size, ar2)
    one, other = _flatten_pair(ar1, ar2)
    if assume_unique:
        mask, values = bitwise_not(_test_membership(one, other)), one
    else:
        _, new, values = _sort_rows(reshape(_unify_nans(one), (one.size, 1)), equal_nan=True)
        mask = bitwise_and(new, bitwise_not(_test_membership(values, other)))
    weak = own.weak_type and not dtypes.is_complex(own.dtype)
    return convert_to(_keep_elements(mask, [values], [fill], count)[0], own.dtype, weak)


def setxor1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements that are in exactly one of two arrays, sorted.

    Args:
        ar1, ar2: arrays, which are flattened.
        assume_unique: a promise that the elements of each are unique; ignored.
        size: the number of elements, required for traced arrays: further ones are dropped, missing ones filled.
        fill_value: the element that fills missing ones; None for the first one.

    Returns:
        A vector of the promoted dtype.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
        TypeError: an operand does not convert to an array.

    Example:
        >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([2, 3], dtype=int32)
    """
    one, other = _flatten_pair(ar1, ar2)
    count = _to_size(size, one, other)
    joined = _unify_nans(concatenate([one, other]))
    dtype, weak = _find_padded_type(joined, count, fill_value)
    if not joined.size:
        return convert_to(full((count or 0,), 0 if fill_value is None else fill_value, dtype), dtype, weak)
    order, new, ordered = _sort_rows(reshape(joined, (joined.size, 1)), equal_nan=True)
    mask = bitwise_and(new, ne(_test_membership(ordered, one), _test_membership(ordered, other)))
    fill = fill_value
    if dtypes.is_inexact(joined.dtype):
        of_nan = _mask_first_nans(ordered, order, new, length=one.size)
        mask = bitwise_or(mask, of_nan)
        if fill is None:
            fill = _take_least_or_nan(ordered, mask, of_nan)
    elif fill is None:
        fill = _take_least(ordered, mask)
    return _keep_elements(mask, [convert_to(ordered, dtype, weak)], [fill], count)[0]


@inline_jit
def _take_least_or_nan(ordered: Array, mask: Array, of_nan: Array) -> Array:
    """Return `_take_least` of the elements; if one of them is NaN, NaN, or 0 for complex numbers."""
    nan = scalar_of(0 if dtypes.is_complex(ordered.dtype) else np.nan, ordered.dtype)
    return select_n(reduce_or(of_nan, (0,)), _take_least(ordered, mask), nan)


@inline_jit
def _mask_first_nans(ordered: Array, order: Array, new: Array, *, length: int) -> Array:
    """Return a mask of two NaNs: the first from before position `length`, and the first from after it."""
    second = ge(order, scalar_of(length, dtypes.int32))
    earlier = bitwise_not(concatenate([getitem(second, slice(0, 1)), getitem(second, slice(None, -1))]))
    first = bitwise_or(new, bitwise_and(second, earlier))
    return bitwise_and(ne(ordered, ordered), first)


@inline_jit(static=("assume_unique", "invert", "method"), public=True)
def isin(
    element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False, *,
    method: str = "auto",
) -> Array:
    """Return whether elements are in another array.

    Args:
        element: an array or a scalar.
        test_elements: an array, which is flattened.
        assume_unique: ignored.
        invert: whether the result is negated.
        method: ``"compare_all"`` compares all pairs, ``"binary_search"`` and ``"sort"`` search sorted elements,
            ``"auto"`` chooses.

    Returns:
        An array of the shape of `element` and dtype bool.

    Raises:
        TypeError: an operand does not convert to an array.
        ValueError: `method` has another value.

    Example:
        >>> jnp.isin(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([False,  True], dtype=bool)
    """
    if method not in _METHODS:
        raise ValueError(
            f"isin: method={abbreviate(method)} is not implemented; options are {', '.join(map(repr, _METHODS))}"
        )
    shape = operand_aval(element, 0).shape
    one, other = _flatten_pair(element, test_elements)
    is_member = reshape(_test_membership(one, other, method == "compare_all"), shape)
    if method == "binary_search" and one.weak_type and one.size and other.size:
        # As in jax, the result of comparing two weakly typed operands.
        is_member = convert_to(is_member, is_member.dtype, True)
    return bitwise_not(is_member) if invert else is_member
