"""Slices of an array at static indices, and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.kinds import ANY, check_kind
from xtrace._src.algebra.vector_space import (
    LINEAR,
    broadcast_in_dim,
    canonical_axis,
    linear,
    operand_aval,
    reduce_sum,
)
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import resize
from xtrace._src.core.shardings.sum_rules import linear_in
from xtrace._src.core.sizes import has_symbolic, largest, to_size, to_sizes
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.creation import full
from xtrace._src.ops.arrays.shape import shift_over, squeeze
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.stablehlo import attributes, symbolic_sizes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.stablehlo.symbolic_sizes import is_dynamic
from xtrace._src.transforms.batch import MappedAxis


def _slice_abstract(
    operand: ShapedArray, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> ShapedArray:
    steps = strides if strides is not None else (1,) * operand.ndim
    for argument, values in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", steps)):
        if len(values) != operand.ndim:
            raise TypeError(
                f"slice: {argument} must have one entry for each of the operand's {operand.ndim} axes, got {values} "
                f"for an operand of shape {operand.shape}"
            )
    shape = []
    for axis, (start, limit, step) in enumerate(zip(start_indices, limit_indices, steps, strict=True)):
        size = operand.shape[axis]
        if not 0 <= start <= limit <= size:
            raise TypeError(
                f"slice: start_indices {start_indices} and limit_indices {limit_indices} must satisfy "
                f"0 <= start <= limit <= size on each axis; axis {axis} of the operand has size {size}"
            )
        if step < 1:
            raise TypeError(f"slice: strides must be positive, got {steps}; reverse with rev")
        shape.append(-(-(limit - start) // step))
    return ShapedArray(tuple(shape), operand.dtype, operand.weak_type)


def _slice_emit(
    builder: FunctionBuilder, x: Value, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> Value:
    steps = strides if strides is not None else (1,) * len(start_indices)
    return builder.slice(x, list(zip(start_indices, limit_indices, steps, strict=True)))


def _slice_transpose(
    cotangent: Array, operand: Array, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> Array:
    configuration = []
    steps = strides or (1,) * len(start_indices)
    counts = aval_of(cotangent).shape
    for start, count, size, step in zip(start_indices, counts, operand.aval.shape, steps, strict=True):
        # `end` is one past the last element read.
        end = start + (count - 1) * step + 1 if count else start
        configuration.append((start, size - end, step - 1))
    return pad.bind_positional((cotangent, zero_like(cotangent)), (tuple(configuration),))


def _slice_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...], strides: tuple[int, ...] | None,
) -> tuple[Any, int]:
    axis = axes[0]
    steps = None if strides is None else shift_over(axis, strides, 1)
    ranges = shift_over(axis, start_indices, 0), shift_over(axis, limit_indices, mapped.size)
    return slice.bind_positional(operands, (*ranges, steps)), axis


@linear(
    ("start_indices", "limit_indices", "strides"), sharding=resize, abstract=_slice_abstract,
    emit=_slice_emit,
    transpose=_slice_transpose, batch=_slice_batch,
)
def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """Return the slice of an array between two indices on every axis.

    Args:
        operand: an array.
        start_indices: for each axis the first index.
        limit_indices: for each axis the index after the last one.
        strides: for each axis the positive step from index to index; None for 1.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: on an axis 0 <= start <= limit <= size does not hold, or a stride is not positive.

    Example:
        >>> lax.slice(jnp.array([1, 2, 3, 4]), (1,), (4,), (2,))
        Array([2, 4], dtype=int32)
    """
    starts = integer_tuple("start_indices", start_indices)
    limits = integer_tuple("limit_indices", limit_indices)
    steps = None if strides is None else integer_tuple("strides", strides)
    return slice.bind_positional((operand,), (starts, limits, steps))


def _padded_shape(shape: Sequence[int], padding_config: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    return tuple(
        [
            low + high + n + (largest(n - 1, 0) * interior if interior else 0)
            for n, (low, high, interior) in zip(shape, padding_config, strict=True)
        ]
    )


def _pad_abstract(operand: ShapedArray, padding_value: ShapedArray, *, padding_config: Any) -> ShapedArray:
    if operand.dtype != padding_value.dtype:
        raise TypeError(
            f"pad: operand and padding_value must have the same dtype, got {operand.dtype.name} and "
            f"{padding_value.dtype.name}; convert padding_value with astype"
        )
    check_kind("pad", [operand], [ANY])
    if padding_value.shape:
        raise ValueError(f"pad: padding_value must be a scalar, got an array of shape {padding_value.shape}")
    if len(padding_config) != operand.ndim:
        raise ValueError(
            f"pad: padding_config must have one (low, high, interior) for each of the operand's {operand.ndim} axes, "
            f"got {padding_config}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"pad: interior padding must be non-negative, got padding_config {padding_config}")
    shape = _padded_shape(operand.shape, padding_config)
    if any(n < 0 for n in shape):
        raise ValueError(
            f"pad: negative padding removes more elements than there are: the result's shape would be {shape}, for "
            f"padding_config {padding_config} and an operand of shape {operand.shape}"
        )
    return ShapedArray(shape, operand.dtype, operand.weak_type and padding_value.weak_type)


def _pad_emit(builder: FunctionBuilder, x: Value, padding_value: Value, *, padding_config: Any) -> Value:
    return write_pad(builder, x, padding_value, padding_config).bitcast(builder.results[0])


def write_pad(
    builder: FunctionBuilder, x: Value, padding_value: Value, padding_config: Sequence[tuple[int, int, int]]
) -> Value:
    """Write `x` with (low, high, interior) elements added along each axis; negative low and high remove elements."""
    if any(map(has_symbolic, padding_config)) or is_dynamic(x.aval):
        aval = x.aval.update(shape=_padded_shape(x.aval.shape, padding_config))
        return symbolic_sizes.write_pad(builder, x, padding_value, padding_config, aval)
    model = x.aval
    x, padding_config = write_cropped(builder, x, padding_config)
    x = builder.keep_terms(x, model) if x.aval is not model else x
    if not any(map(any, padding_config)):
        return x
    aval = x.aval.update(shape=_padded_shape(x.aval.shape, padding_config))
    low, high, interior = [attributes.list_text(c[i] for c in padding_config) for i in range(3)]
    return builder.line(
        f"stablehlo.pad {x.name}, {padding_value.name}, low = {low}, high = {high}, interior = {interior} : "
        f"({x.aval.mlir_type}, {padding_value.aval.mlir_type}) -> {aval.mlir_type}",
        aval,
    )


def write_cropped(
    builder: FunctionBuilder, x: Value, padding_config: Sequence[tuple[int, int, int]]
) -> tuple[Value, list[tuple[int, int, int]]]:
    """Write `x` without the elements that negative padding removes; return it and the remaining padding.

    XLA must see no negative padding: fused into windows of other operations, it makes them read out of bounds
    (openxla/xla#48713, #48715), and XLA pads the other sides before it removes elements.
    """
    if not any(low < 0 or high < 0 for low, high, _ in padding_config):
        return x, list(padding_config)
    kept, left = [], []
    for n, (low, high, interior) in zip(x.aval.shape, padding_config, strict=True):
        # Elements are `step` apart; cropping ends at most `interior` positions before the next element.
        step = interior + 1
        start, stop = -(min(low, 0) // step), n + min(high, 0) // step
        if start < stop:
            kept.append((start, stop))
            left.append((low + start * step, high + (n - stop) * step, interior))
        else:
            kept.append((0, 0))
            left.append((max(sum(_padded_shape((n,), [(low, high, interior)])), 0), 0, interior))
    return builder.slice(x, kept), left


def zero_like(x: ArrayLike) -> Literal:
    """Return the scalar zero in the dtype of `x`, strongly typed."""
    dtype = aval_of(x).dtype
    return scalar_literal(0, dtype)


def _pad_transpose(
    cotangent: Array, operand: Array | UndefinedPrimal, padding_value: Array | UndefinedPrimal, *,
    padding_config: tuple[tuple[int, int, int], ...],
) -> list[Any]:
    # Remove the padding and restore cropped elements as zeros; the operand's elements are then `interior + 1` apart.
    inverse = tuple([(-low, -high, 0) for low, high, _ in padding_config])
    spaced = pad.bind_positional((cotangent, zero_like(cotangent)), (inverse,))
    steps = tuple([interior + 1 for _, _, interior in padding_config])
    own = slice.bind_positional((spaced,), ((0,) * len(steps), aval_of(spaced).shape, steps))
    value = None
    if type(padding_value) is UndefinedPrimal:
        axes = range(len(padding_config))
        value = elementwise.sub(reduce_sum(cotangent, axes), reduce_sum(own, axes))
    return [own if type(operand) is UndefinedPrimal else None, value]


def _pad_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, padding_config: Any
) -> tuple[Any, int]:
    (operand, value), (axis, own) = operands, axes
    if own is None:
        assert axis is not None
        return pad.bind_positional(operands, (shift_over(axis, padding_config, (0, 0, 0)),)), axis
    place = 0 if axis is None else axis
    operand = mapped.place(operand, axis, place)
    configuration = shift_over(place, padding_config, (0, 0, 0))
    padded = pad.bind_positional((operand, zero_like(operand)), (configuration,))
    inside = full(aval_of(operand).shape, True)
    inside = pad.bind_positional((inside, zero_like(inside)), (configuration,))
    value = broadcast_in_dim.bind_positional((value,), (aval_of(padded).shape, (place,), None))
    return select_n(inside, value, padded), place


@primitive(
    ("padding_config",), sharding=resize, sums=linear_in(0), abstract=_pad_abstract, emit=_pad_emit,
    jvp=LINEAR, transpose=_pad_transpose, batch=_pad_batch,
)
def pad(operand: ArrayLike, padding_value: object, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Pad an array with a scalar around and between its elements.

    Args:
        operand: an array.
        padding_value: a scalar of the dtype of `operand`.
        padding_config: for each axis (low, high, interior), the numbers of elements added in front, behind and between
            neighbours. Negative low and high remove elements.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: the dtypes differ.
        ValueError: `padding_config` has another form or removes more than there is, or `padding_value` is no scalar.

    Example:
        >>> lax.pad(jnp.array([1, 2]), 0, [(1, 0, 1)])
        Array([0, 1, 0, 2], dtype=int32)
    """
    try:
        configuration = tuple(map(to_sizes, padding_config))
    except TypeError:
        raise TypeError(
            "pad: padding_config must be a sequence of (low, high, interior) integers, got "
            f"{abbreviate(padding_config)}"
        ) from None
    if any(len(axis) != 3 for axis in configuration):
        raise ValueError(
            f"pad: padding_config must have (low, high, interior) for each axis, got {abbreviate(padding_config)}"
        )
    return pad.bind_positional((operand, padding_value), (configuration,))


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Return a range of elements along one axis.

    Args:
        operand: an array.
        start_index: the first index; a negative one counts from the end, None is the beginning.
        limit_index: the index after the last one; a negative one counts from the end, None is the end.
        stride: the step from element to element.
        axis: the axis.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: an index is no integer.
        ValueError: there is no such axis.

    Example:
        >>> lax.slice_in_dim(jnp.arange(5), 1, -1)
        Array([1, 2, 3], dtype=int32)
    """
    shape = operand_aval(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    start = 0 if start_index is None else to_integer("start_index", start_index)
    limit = size if limit_index is None else to_integer("limit_index", limit_index)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = to_integer("stride", stride)
    return slice.bind_positional((operand,), (tuple(starts), tuple(limits), tuple(strides)))


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Return the subarray at one index of an axis.

    Args:
        operand: an array.
        index: the index; a negative one counts from the end.
        axis: the axis.
        keepdims: whether the axis is kept with size 1.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        IndexError: there is no such index.
        ValueError: there is no such axis.

    Example:
        >>> lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), 1, keepdims=False)
        Array([3, 4], dtype=int32)
    """
    shape = operand_aval(operand).shape
    axis = canonical_axis(axis, len(shape))
    try:
        number = to_size(index)
    except TypeError:
        raise TypeError(
            f"index_in_dim: index must be an integer known while tracing, got {abbreviate(index)}; "
            "dynamic_index_in_dim takes a traced one"
        ) from None
    if not -shape[axis] <= number < shape[axis]:
        raise IndexError(f"index_in_dim: index {number} is out of bounds for axis {axis} with size {shape[axis]}")
    number = number if number >= 0 else number + shape[axis]
    part = slice_in_dim(operand, number, number + 1, 1, axis)
    return part if keepdims else squeeze(part, (axis,))
