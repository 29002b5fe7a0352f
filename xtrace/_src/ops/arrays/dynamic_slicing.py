"""Reads and writes of slices of an array at start indices that may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import check_same_dtype
from xtrace._src.algebra.vector_space import LINEAR, broadcast_in_dim, canonical_axis, convert_to, operand_aval, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.core.primitive import primitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.sharding_rules import resize, update_slice
from xtrace._src.core.shardings.sum_rules import linear_in
from xtrace._src.core.sizes import is_known_to_exceed, is_symbolic
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.concatenation import stack
from xtrace._src.ops.arrays.gather_scatter import gather, scatter
from xtrace._src.ops.arrays.index_vectors import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_slice_sizes,
)
from xtrace._src.ops.arrays.shape import shift_over, squeeze
from xtrace._src.ops.arrays.slicing import index_in_dim, zero_like
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


def _check_count(name: str, indices: Sequence[Any], shape: Sequence[Any]) -> None:
    if len(indices) != len(shape):
        raise ValueError(
            f"{name or called_function()}: start_indices must have one entry for each of the operand's {len(shape)} "
            f"axes, got {len(indices)} for an operand of shape {tuple(shape)}"
        )


def _check_indices(name: str, operand: ShapedArray, indices: Sequence[ShapedArray]) -> None:
    _check_count(name, indices, operand.shape)
    if any(i.shape for i in indices):
        raise TypeError(
            f"{name}: start_indices must be scalars, got shapes {', '.join(str(i.shape) for i in indices)}"
        )
    kinds = {i.dtype for i in indices}
    if len(kinds) > 1 or not all(map(dtypes.is_integer, kinds)):
        raise TypeError(
            f"{name}: start_indices must be integers of the same type, got "
            f"{', '.join(i.dtype.name for i in indices)}; convert them with astype"
        )


def _dynamic_slice_abstract(operand: ShapedArray, *indices: ShapedArray, slice_sizes: tuple[int, ...]) -> ShapedArray:
    _check_indices("dynamic_slice", operand, indices)
    check_slice_sizes("dynamic_slice", slice_sizes, operand)
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


def _dynamic_slice_emit(builder: FunctionBuilder, x: Value, *indices: Value, slice_sizes: tuple[int, ...]) -> Value:
    return builder.dynamic_slice(x, indices, slice_sizes) if indices else x


def _dynamic_slice_transpose(cotangent: Array, operand: Array, *indices: Array, **_: object) -> list[Any]:
    empty = zeros(operand.aval.update(weak_type=False))
    return [dynamic_update_slice.bind_positional([empty, cotangent, *indices]), *[None] * len(indices)]


def _stack_indices(mapped: MappedAxis, indices: Sequence[Any], axes: Sequence[int | None]) -> Array:
    """Return the start indices as a matrix with a row for each index of the mapped axis."""
    return stack.bind_positional([mapped.place(x, i) for x, i in zip(indices, axes, strict=True)], (1,))


def _insert_zero(axis: int, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return start indices with zero inserted for a new axis."""
    return shift_over(axis, indices, zero_like(indices[0]))


def _dynamic_slice_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, slice_sizes: tuple[int, ...]
) -> tuple[Any, int | None]:
    (operand, *indices), (axis, *places) = operands, axes
    if not indices:
        return operand, axis
    if all(i is None for i in places):
        assert axis is not None
        sizes = shift_over(axis, slice_sizes, mapped.size)
        return dynamic_slice.bind_positional((operand, *_insert_zero(axis, indices)), (sizes,)), axis
    every = tuple(range(len(indices)))
    return gather.rule("batch")(
        mapped, (operand, _stack_indices(mapped, indices, places)), (axis, 0),
        dimension_numbers=GatherDimensionNumbers(every, (), every), slice_sizes=slice_sizes, indices_are_sorted=True,
        unique_indices=True, mode=GatherScatterMode.CLIP, fill_value=None,
    )


@primitive(
    ("slice_sizes",), sharding=resize, sums=linear_in(0),
    abstract=_dynamic_slice_abstract, emit=_dynamic_slice_emit,
    jvp=LINEAR, transpose=_dynamic_slice_transpose, batch=_dynamic_slice_batch, moves_elements=True,
)
def dynamic_slice(
    operand: ArrayLike, start_indices: object, slice_sizes: Sequence[int], *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return a slice of fixed size at start indices that may be traced.

    Args:
        operand: an array.
        start_indices: for each axis the first index: a sequence of integer scalars of one dtype, or a vector. They are
            clamped so that the slice lies inside of `operand`.
        slice_sizes: for each axis the size of the slice, at most the size of `operand`.
        allow_negative_indices: whether negative indices count from the end, for all axes or for each.

    Returns:
        An array of shape `slice_sizes` and the dtype of `operand`.

    Raises:
        TypeError: the indices are no integers, or the sizes do not fit.
        ValueError: the number of indices is not the number of axes.

    Example:
        >>> lax.dynamic_slice(jnp.array([1, 2, 3, 4]), (1,), (2,))
        Array([2, 3], dtype=int32)
    """
    indices = _normalize_indices(operand, start_indices, allow_negative_indices)
    return dynamic_slice.bind_positional([operand, *indices], (integer_tuple("slice_sizes", slice_sizes),))


def _normalize_indices(operand: ArrayLike, start_indices: Any, allow_negative: Any) -> list[Any]:
    """Return the list of start indices, each counted from the front."""
    shape = operand_aval(operand).shape
    if isinstance(start_indices, (tuple, list)):
        indices = list(start_indices)
    else:
        aval = operand_aval(start_indices, "start_indices")
        if aval.ndim != 1:
            raise TypeError(
                f"{called_function()}: start_indices must be a sequence of scalars or a vector, got "
                f"{abbreviate(start_indices)}"
            )
        if isinstance(start_indices, np.ndarray):
            indices = list(start_indices)
        else:
            indices = [index_in_dim(start_indices, i, 0, False) for i in range(aval.shape[0])]
    _check_count("", indices, shape)
    allowed = [bool(a) for a in (allow_negative if np.ndim(allow_negative) else [allow_negative] * len(shape))]
    if len(allowed) != len(shape):
        raise ValueError(
            f"{called_function()}: allow_negative_indices must have one bool for each of the {len(shape)} axes"
        )
    return [_normalize_index(i, n, a) for i, n, a in zip(indices, shape, allowed, strict=True)]


def _normalize_index(index: Any, size: int, allow_negative: bool) -> Any:
    """Return the index counted from the front: numbers are computed now, arrays on the device."""
    if isinstance(index, (bool, np.bool_, Literal)):
        return index
    if isinstance(index, (int, np.integer)):
        if index < 0 and not allow_negative:
            raise ValueError(
                f"{called_function()}: index {index} is out of bounds for an axis of size {size} if "
                "allow_negative_indices is False"
            )
        dtype = dtypes.canonicalize(int if isinstance(index, int) else index.dtype, config.enable_x64.value)
        return Literal(int(index) + (size if index < 0 else 0), ShapedArray((), dtype))
    if is_symbolic(index):
        index = index.to_array()
    aval = operand_aval(index, "start_indices")
    if not allow_negative or aval.shape or not dtypes.is_integer(aval.dtype) or not dtypes.is_signed(aval.dtype):
        return index
    if is_known_to_exceed(size, dtypes.iinfo(aval.dtype).max):
        # The index's dtype cannot hold the size.
        index = convert_to(index, dtypes.int32)
        aval = operand_aval(index)
    negative = lt(index, Literal(0, aval))
    moved = elementwise.add(convert_to(index, aval.dtype), scalar_literal(size, aval.dtype))
    return select_n(negative, index, moved)


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """Return a range of elements along one axis, from a start index that may be traced.

    Args:
        operand: an array.
        start_index: an integer scalar, clamped so that the range lies inside.
        slice_size: the number of elements.
        axis: the axis.
        allow_negative_indices: whether negative indices count from the end.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: the index is no integer scalar, or the size does not fit.
        ValueError: there is no such axis.

    Example:
        >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 3)
        Array([1, 2, 3], dtype=int32)
    """
    shape = operand_aval(operand).shape
    axis = canonical_axis(axis, len(shape))
    starts, sizes = _start_indices(operand, start_index, axis), list(shape)
    sizes[axis] = to_integer("slice_size", slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _start_indices(operand: ArrayLike, index: ArrayLike, axis: int) -> list[Any]:
    """Return start indices: `index` on one axis, and zeros of its dtype on the others."""
    aval = operand_aval(index, "start_index")
    starts: list[Any] = [scalar_literal(0, aval.dtype)] * operand_aval(operand).ndim
    starts[axis] = index
    return starts


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """Return the subarray at one index of an axis; the index may be traced.

    Args:
        operand: an array.
        index: an integer scalar, clamped to the bounds.
        axis: the axis.
        keepdims: whether the axis is kept with size 1.
        allow_negative_indices: whether negative indices count from the end.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: the index is no integer scalar.
        ValueError: there is no such axis.

    Example:
        >>> lax.dynamic_index_in_dim(jnp.array([5, 6, 7]), 1)
        Array([6], dtype=int32)
    """
    axis = canonical_axis(axis, operand_aval(operand).ndim)
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def _dynamic_update_slice_abstract(operand: ShapedArray, update: ShapedArray, *indices: ShapedArray) -> ShapedArray:
    check_same_dtype("dynamic_update_slice", (operand, update))
    if update.ndim != operand.ndim:
        raise TypeError(
            "dynamic_update_slice: update must have the same rank as operand, got shapes "
            f"{update.shape} and {operand.shape}"
        )
    if any(n > size for n, size in zip(update.shape, operand.shape, strict=True)):
        raise TypeError(
            f"dynamic_update_slice: update of shape {update.shape} does not fit into the operand of shape "
            f"{operand.shape}"
        )
    _check_indices("dynamic_update_slice", operand, indices)
    return ShapedArray(operand.shape, operand.dtype, not operand.ndim and operand.weak_type and update.weak_type)


def _dynamic_update_slice_emit(builder: FunctionBuilder, x: Value, update: Value, *indices: Value) -> Value:
    return builder.dynamic_update_slice(x, update, indices) if indices else update


def _dynamic_update_slice_transpose(
    cotangent: Array, operand: Array | UndefinedPrimal, update: object, *indices: Array
) -> list[Any]:
    own = part = None
    sizes = aval_of(update).shape
    if type(operand) is UndefinedPrimal:
        own = dynamic_update_slice.bind_positional([cotangent, zeros(aval_of(update)), *indices])
    if type(update) is UndefinedPrimal:
        part = dynamic_slice.bind_positional([cotangent, *indices], (sizes,))
    return [own, part, *[None] * len(indices)]


def _dynamic_update_slice_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]
) -> tuple[Any, int | None]:
    (operand, update, *indices), (axis, own, *places) = operands, axes
    if not indices:
        return update, own
    if all(i is None for i in places):
        place = next(i for i in axes if i is not None)
        operand, update = [mapped.place(x, i, place) for x, i in ((operand, axis), (update, own))]
        return dynamic_update_slice.bind_positional([operand, update, *_insert_zero(place, indices)]), place
    every = tuple(range(len(indices)))
    return scatter.rule("batch")(
        mapped, (operand, _stack_indices(mapped, indices, places), update), (axis, 0, own),
        dimension_numbers=ScatterDimensionNumbers(every, (), every), indices_are_sorted=True, unique_indices=True,
        mode=GatherScatterMode.CLIP, update_jaxpr=None, update_consts=(),
    )


@primitive(
    sharding=update_slice, sums=linear_in(0, 1), abstract=_dynamic_update_slice_abstract,
    emit=_dynamic_update_slice_emit,
    jvp=LINEAR, transpose=_dynamic_update_slice_transpose, batch=_dynamic_update_slice_batch, moves_elements=True,
)
def dynamic_update_slice(
    operand: ArrayLike, update: ArrayLike, start_indices: object, *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return an array with a slice replaced, at start indices that may be traced.

    Args:
        operand: an array.
        update: the new slice, an array of the rank and dtype of `operand`, and on no axis larger.
        start_indices: for each axis the first index, as in `dynamic_slice`.
        allow_negative_indices: whether negative indices count from the end, for all axes or for each.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: dtypes or ranks differ, `update` is larger than `operand`, or the indices are no integers.
        ValueError: the number of indices is not the number of axes.

    Example:
        >>> lax.dynamic_update_slice(jnp.array([1, 2, 3]), jnp.array([9]), (1,))
        Array([1, 9, 3], dtype=int32)
    """
    indices = _normalize_indices(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice.bind_positional([operand, update, *indices])


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Return an array with a range of elements along one axis replaced.

    Args:
        operand: an array.
        update: the new elements.
        start_index: an integer scalar, clamped so that the range lies inside.
        axis: the axis.
        allow_negative_indices: whether negative indices count from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: shapes or dtypes do not fit, or the index is no integer scalar.
        ValueError: there is no such axis.

    Example:
        >>> lax.dynamic_update_slice_in_dim(jnp.arange(5), jnp.array([8, 9]), 1, 0)
        Array([0, 8, 9, 3, 4], dtype=int32)
    """
    axis = canonical_axis(axis, operand_aval(operand).ndim)
    starts = _start_indices(operand, start_index, axis)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Return an array with the subarray at one index of an axis replaced.

    Args:
        operand: an array.
        update: the new subarray, with or without the axis.
        index: an integer scalar, clamped to the bounds.
        axis: the axis.
        allow_negative_indices: whether negative indices count from the end.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: shapes or dtypes do not fit, or the index is no integer scalar.
        ValueError: there is no such axis.

    Example:
        >>> lax.dynamic_update_index_in_dim(jnp.array([5, 6, 7]), 9, 1, 0)
        Array([5, 9, 7], dtype=int32)
    """
    whole, part = operand_aval(operand), operand_aval(update, "update")
    axis = canonical_axis(axis, whole.ndim)
    if part.ndim == whole.ndim - 1:
        shape = (*part.shape[:axis], 1, *part.shape[axis:])
        kept = tuple([i for i in range(whole.ndim) if i != axis])
        update = broadcast_in_dim(update, shape, kept)
    elif part.ndim != whole.ndim or part.shape[axis] != 1:
        raise TypeError(
            "dynamic_update_index_in_dim: update must have the operand's axes, with size 1 or left out at axis "
            f"{axis}; got shape {part.shape} for an operand of shape {whole.shape}"
        )
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)
