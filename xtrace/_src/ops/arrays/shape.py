"""Making, spreading, joining, splitting and reversing arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import NUMBER, check_kind, check_same_dtype, no_sharding
from xtrace._src.algebra.vector_space import (
    LINEAR,
    ZERO_DERIVATIVE,
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    converted,
    linear,
    operand_aval,
    reduce_sum,
    reshape,
    shift_past,
    with_axis,
    zeros,
)
from xtrace._src.core import config, dtypes
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.ir import Literal
from xtrace._src.core.primitive import Derived, Primitive, no_rule, primitive
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import array_from_host, committed_device, constant_from_host, put_on, scalar_to_host
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.xla.buffers import SingleDeviceSharding

__all__ = [
    "broadcast", "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "collapse",
    "concatenate", "empty", "expand_dims", "full", "full_like", "iota", "rev", "shape_as_value", "split", "squeeze",
    "stack", "tile", "unstack",
]


def shift_over(axis: int, entries: Sequence[Any], entry: Any) -> tuple[Any, ...]:
    """Return a tuple of entries for each axis, with `entry` for one added at position `axis`."""
    return (*entries[:axis], entry, *entries[axis:])


def _pieces_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any
) -> tuple[list[Any], list[Any]]:
    values = tuple(parameters.values())
    return primitive.bind_positional(primals, values), primitive.bind_positional(tangents, values)


# The jvp rule of an operation that takes its one operand apart.
PIECES = Derived(_pieces_jvp)


def _instantiated(cotangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    return [zeros(a) if c is None else c for c, a in zip(cotangents, avals, strict=True)]


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Return an array repeated along new leading axes.

    Args:
        operand: an array.
        sizes: the sizes of the new axes.
        out_sharding: not supported on one device; leave it at None.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: the sizes are no sequence of integers.

    Example:
        >>> lax.broadcast(1.0, (2,))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    sizes = canonical_shape("broadcast", integer_tuple("broadcast", "sizes", sizes))
    shape = operand_aval("broadcast", operand).shape
    if not sizes and isinstance(operand, Array):
        return operand
    dimensions = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim.bind_positional(
        (operand,), (sizes + shape, dimensions, no_sharding("broadcast", out_sharding))
    )


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """Return an array with as many leading axes of size 1 as give it a rank.

    Args:
        x: an array.
        rank: the number of axes.

    Returns:
        An array of the dtype of `x`.

    Raises:
        TypeError: `x` is no array and no number.

    Example:
        >>> lax.broadcast_to_rank(jnp.ones(2), 3).shape
        (1, 1, 2)
    """
    missing = to_integer("broadcast_to_rank", "rank", rank) - operand_aval("broadcast_to_rank", x, "x").ndim
    return x if missing <= 0 else expand_dims(x, range(missing))


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """Return an array spread over the shape of another one, with last axes aligned as in NumPy.

    Args:
        arr: an array.
        like_arr: the array with the shape.

    Returns:
        An array of the dtype of `arr`.

    Raises:
        TypeError: the shapes do not broadcast.

    Example:
        >>> lax.broadcast_like(1.0, jnp.ones(2))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    aval, like = operand_aval("broadcast_like", arr, "arr"), operand_aval("broadcast_like", like_arr, "like_arr")
    return broadcast_in_dim(arr, like.shape, range(like.ndim - aval.ndim, like.ndim))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to by NumPy's rule.

    Args:
        shapes: tuples of integers.

    Returns:
        A tuple of integers.

    Raises:
        ValueError: they do not broadcast.

    Example:
        >>> lax.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    canonical = [canonical_shape("broadcast_shapes", s) for s in shapes]
    if not canonical:
        raise ValueError("broadcast_shapes: no shapes were given")
    rank = max(map(len, canonical))
    result = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in canonical if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            raise ValueError(
                f"broadcast_shapes: Incompatible shapes for broadcasting: {', '.join(map(str, canonical))}; "
                f"axis {axis} has the sizes {', '.join(map(str, sorted(sizes)))}"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return an array with axes of size 1 added.

    Args:
        array: an array.
        dimensions: the places of the new axes in the result; negative ones count from its end.

    Returns:
        An array of the dtype of `array`.

    Raises:
        ValueError: a place is out of bounds or given twice.

    Example:
        >>> lax.expand_dims(jnp.ones(2), (0, -1)).shape
        (1, 2, 1)
    """
    shape = operand_aval("expand_dims", array, "array").shape
    dimensions = integer_tuple("expand_dims", "dimensions", dimensions)
    rank = len(shape) + len(dimensions)
    added = {canonical_axis("expand_dims", d, rank) for d in dimensions}
    if len(added) != len(dimensions):
        raise ValueError(f"expand_dims: repeated axis in dimensions {dimensions}")
    if not added and isinstance(array, Array):
        return array
    sizes, kept = iter(shape), tuple([i for i in range(rank) if i not in added])
    result = tuple([1 if i in added else next(sizes) for i in range(rank)])
    return broadcast_in_dim.bind_positional((array,), (result, kept, None))


def _iota_abstract(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int, **_: Any) -> ShapedArray:
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} must be an axis of shape {shape}, 0 to {len(shape) - 1}")
    aval = ShapedArray(shape, dtype)
    check_kind("iota", (aval,), (NUMBER,))
    return aval


def _iota_emit(builder: FunctionBuilder, *, dimension: int, **_: Any) -> Value:
    return builder.iota(builder.results[0], dimension)


@primitive(
    "iota", ("dtype", "shape", "dimension", "sharding"), abstract=_iota_abstract, emit=_iota_emit,
    jvp=ZERO_DERIVATIVE, batch=no_rule("iota has no operand that could be mapped"),
)
def broadcasted_iota(dtype: DTypeLike, shape: ShapeLike, dimension: int, *, out_sharding: Any = None) -> Any:
    """Return an array whose elements are their indices along one axis.

    Args:
        dtype: the dtype of the result, a numeric one.
        shape: the shape of the result.
        dimension: an axis of the result, counted from the front.
        out_sharding: must be None.

    Returns:
        An array of the given shape and dtype.

    Raises:
        TypeError: `dtype` is no numeric dtype, or `shape` is no shape.
        ValueError: there is no such axis.
        NotImplementedError: `out_sharding` is given.

    Example:
        >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    shape = canonical_shape("broadcasted_iota", shape)
    dtype = requested_dtype("broadcasted_iota", dtype)
    no_sharding("broadcasted_iota", out_sharding)
    dimension = to_integer("broadcasted_iota", "dimension", dimension)
    return broadcasted_iota.bind_positional((), (dtype, shape, dimension, None))


def iota(dtype: Any, size: int) -> Array:
    """Return the integers 0, 1, …, size - 1.

    Args:
        dtype: the dtype of the numbers.
        size: how many they are.

    Returns:
        An array of one axis.

    Raises:
        TypeError: `size` is no integer, or the dtype is none of numbers.

    Example:
        >>> lax.iota("int32", 3)
        Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, canonical_shape("iota", (size,)), 0)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """Return an array filled with a scalar.

    Args:
        shape: the shape.
        fill_value: a scalar.
        dtype: the dtype; None for that of the scalar.
        sharding: not supported on several devices; leave it at None.

    Returns:
        An array.

    Raises:
        TypeError: `fill_value` is no scalar, or the shape is no sequence of non-negative integers.

    Example:
        >>> lax.full((2,), 3.0)
        Array([3., 3.], dtype=float32, weak_type=True)
    """
    aval = operand_aval("full", fill_value, "fill_value")
    wanted = aval.dtype if dtype is None else requested_dtype("full", dtype)
    value = scalar_operand("full", fill_value, ShapedArray((), wanted, dtype is None and aval.weak_type))
    return _placed("full", broadcast_scalar(value, canonical_shape("full", shape)), sharding)


def scalar_operand(name: str, value: Any, aval: ShapedArray, argument: str = "fill_value") -> Any:
    """Return a scalar as an operand of type `aval`, a literal if it is no array; TypeError if it is an array."""
    given = operand_aval(name, value, argument)
    if given.shape:
        raise TypeError(f"{name}: {argument} must be a scalar, got an array of shape {given.shape}")
    if type(aval.dtype) is dtypes.ExtendedDType:
        return value if given.dtype == aval.dtype else Literal(int(value), aval)
    if not isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
        return converted(value, aval.dtype, aval.weak_type)
    host = np.asarray(value)
    if dtypes.is_complex(host.dtype) and not dtypes.is_complex(aval.dtype):
        raise TypeError(f"{name}: {argument} {value} is complex and does not convert to {aval.dtype.name}")
    if dtypes.is_floating(host.dtype) and dtypes.is_integer(aval.dtype):
        return converted(value, aval.dtype, aval.weak_type)
    with np.errstate(all="ignore"):
        return Literal(host.astype(aval.dtype)[()], aval)


def _placed(function: str, array: Array, sharding: Any) -> Array:
    """Return `array` where `sharding` says: on a device of that kind, or None for where it is."""
    if isinstance(sharding, SingleDeviceSharding):
        return _put(array, sharding.device)
    no_sharding(function, sharding, "sharding")
    return array


def _put(array: Array, device: Any) -> Array:
    # Under a trace everything is where the compiled program will run.
    return put_on(array, device) if device is not None and isinstance(array, ConcreteArray) else array


def broadcast_scalar(value: Any, shape: tuple[int, ...]) -> Array:
    """Return a scalar operand, literals included, over `shape`."""
    if type(value) is not Literal and not shape:
        return value
    # NumPy holds no scalars of extended dtypes.
    if shape or not isinstance(value.aval.dtype, np.dtype):
        return broadcast_in_dim.bind_positional((value,), (shape, (), None))
    return constant_from_host(scalar_to_host(value.val, value.aval), value.aval)


def full_like(
    x: ArrayLike, fill_value: Any, dtype: Any = None, shape: ShapeLike | None = None, sharding: Any = None
) -> Array:
    """Return an array like another one, filled with a scalar.

    Args:
        x: an array.
        fill_value: a scalar.
        dtype: the dtype; None for that of `x`.
        shape: the shape; None for that of `x`.
        sharding: not supported on several devices; leave it at None.

    Returns:
        An array.

    Raises:
        TypeError: `fill_value` is no scalar, or the shape is no sequence of non-negative integers.

    Example:
        >>> lax.full_like(jnp.ones(2), 3.0)
        Array([3., 3.], dtype=float32)
    """
    aval = operand_aval("full_like", x, "x")
    shape = aval.shape if shape is None else canonical_shape("full_like", shape)
    wanted = aval.dtype if dtype is None else requested_dtype("full_like", dtype)
    value = scalar_operand("full_like", fill_value, ShapedArray((), wanted, dtype is None and aval.weak_type))
    filled = broadcast_scalar(value, shape)
    return _put(filled, committed_device(x)) if sharding is None else _placed("full_like", filled, sharding)


def zeros_like(x: ArrayLike) -> Array:
    """Return zeros of the shape, dtype and weak type of `x`."""
    return full_like(x, False if dtypes.is_boolean(operand_aval("zeros_like", x, "x").dtype) else 0)


def ones_like(x: Any) -> Any:
    """Return ones of the shape, dtype and weak type of `x`."""
    return full_like(x, True if dtypes.is_boolean(operand_aval("ones_like", x, "x").dtype) else 1)


def _empty_abstract(*, shape: tuple[int, ...], dtype: np.dtype[Any], **_: Any) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _empty_emit(builder: FunctionBuilder, **_: Any) -> Value:
    aval = builder.results[0]
    return builder.broadcast(builder.literal(0, aval.update(shape=())), aval.shape)


@primitive(
    "empty", ("shape", "dtype", "out_sharding"), abstract=_empty_abstract, emit=_empty_emit,
    jvp=ZERO_DERIVATIVE, batch=no_rule("empty has no operand that could be mapped"),
)
def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: Any = None) -> Array:
    """Return an array whose elements are unspecified.

    Args:
        shape: the shape of the result, an integer or a sequence of integers.
        dtype: the dtype of the result.
        out_sharding: must be None.

    Returns:
        An array of the given shape and dtype.

    Raises:
        TypeError: `dtype` is no dtype, or `shape` is no shape.
        NotImplementedError: `out_sharding` is given.

    Example:
        >>> lax.empty((2, 3), jnp.float32).shape
        (2, 3)
    """
    dtype = dtypes.canonicalize(dtype, config.keeps_wide_dtypes())
    return empty.bind_positional((), (canonical_shape("empty", shape), dtype, no_sharding("empty", out_sharding)))


def shape_as_value(shape: ShapeLike) -> Array:
    """Return a shape as an array.

    Args:
        shape: a tuple of integers.

    Returns:
        An array of the default integer dtype.

    Raises:
        TypeError: `shape` is no sequence of integers.

    Example:
        >>> lax.shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    sizes = canonical_shape("shape_as_value", shape)
    dtype = dtypes.default_int(config.enable_x64.value)
    return array_from_host(np.array(sizes, dtype), ShapedArray((len(sizes),), dtype))


def _squeeze_abstract(array: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(array.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "squeeze: cannot select an axis to squeeze out which has size not equal to one, got shape "
            f"{array.shape} and dimensions {dimensions}"
        )
    shape = tuple([n for i, n in enumerate(array.shape) if i not in dimensions])
    return ShapedArray(shape, array.dtype, array.weak_type)


def _reshape_to_result(builder: FunctionBuilder, x: Value, **_: Any) -> Value:
    return builder.cast("reshape", x, builder.results[0])


def _squeeze_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, dimensions: tuple[int, ...]
) -> tuple[Any, int]:
    axis, dropped = axes[0], shift_past(axes[0], dimensions)
    return squeeze.bind_positional(operands, (dropped,)), axis - sum(d < axis for d in dropped)


@linear(
    "squeeze", ("dimensions",), abstract=_squeeze_abstract, emit=_reshape_to_result, batch=_squeeze_batch,
    transpose=lambda t, x, **_: reshape.bind_positional((t,), (x.aval.shape, None, None)),
)
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Any:
    """Remove axes of size 1.

    Args:
        array: an array.
        dimensions: the axes that are removed; negative ones count from the end.

    Returns:
        An array of the dtype of `array` without the axes.

    Raises:
        TypeError: `dimensions` is no sequence of integers.
        ValueError: an axis does not exist, is given twice, or has another size.

    Example:
        >>> lax.squeeze(jnp.array([[1, 2]]), (0,))
        Array([1, 2], dtype=int32)
    """
    ndim = operand_aval("squeeze", array, "array").ndim
    axes = tuple([canonical_axis("squeeze", d, ndim) for d in integer_tuple("squeeze", "dimensions", dimensions)])
    if len(set(axes)) != len(axes):
        raise ValueError(f"squeeze: dimensions are not unique: {axes}")
    if not axes and isinstance(array, Array):
        return array
    return squeeze.bind_positional((array,), (tuple(sorted(axes)),))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Return an array in which several axes are one.

    Args:
        operand: an array.
        start_dimension: the first of the axes.
        stop_dimension: the axis after the last of them; None for all that follow.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: a position is no integer.

    Example:
        >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    shape = operand_aval("collapse", operand).shape
    first, last, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if last < first:
        raise ValueError(
            f"collapse: start_dimension {start_dimension} is behind stop_dimension {stop_dimension} for shape {shape}"
        )
    return reshape(operand, (*shape[:first], math.prod(shape[first:last]), *shape[last:]))


def _concatenate_abstract(*operands: ShapedArray, dimension: int) -> ShapedArray:
    first = operands[0].shape
    shapes = ", ".join(str(x.shape) for x in operands)
    if any(x.ndim != len(first) for x in operands):
        raise TypeError(f"concatenate: arrays must have the same number of dimensions, got {shapes}")
    if not 0 <= dimension < len(first):
        raise TypeError(f"concatenate: dimension {dimension} is out of bounds for shapes {shapes}")
    check_same_dtype("concatenate", operands, "concatenate")
    others = {x.shape[:dimension] + x.shape[dimension + 1 :] for x in operands}
    if len(others) > 1:
        raise TypeError(
            "concatenate: arrays must have equal sizes on all axes but the one being concatenated, "
            f"{dimension}; got the shapes {shapes}"
        )
    size = sum(x.shape[dimension] for x in operands)
    shape = (*first[:dimension], size, *first[dimension + 1 :])
    return ShapedArray(shape, operands[0].dtype, all(x.weak_type for x in operands))


def write_concatenate(builder: FunctionBuilder, values: Sequence[Value], dimension: int, aval: ShapedArray) -> Value:
    """Write the values joined along an axis."""
    return builder.convert(builder.concatenate(values, dimension), aval.dtype).bitcast(aval)


def _concatenate_emit(builder: FunctionBuilder, *values: Value, dimension: int) -> Value:
    return write_concatenate(builder, values, dimension, builder.results[0])


def _concatenate_transpose(cotangent: Array, *operands: Any, dimension: int) -> list[Any]:
    sizes = tuple([aval_of(x).shape[dimension] for x in operands])
    pieces = split.bind_positional((cotangent,), (sizes, dimension))
    return [p if type(x) is UndefinedPrimal else None for p, x in zip(pieces, operands, strict=True)]


def _with_axes(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], int]:
    """Return all operands with the mapped axis at the place that the first of them has it, and the place."""
    place = next(i for i in axes if i is not None)
    return [with_axis(x, i, mapped.size, place) for x, i in zip(operands, axes, strict=True)], place


def _concatenate_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, dimension: int
) -> tuple[Any, int]:
    operands, place = _with_axes(mapped, operands, axes)
    return concatenate.bind_positional(operands, shift_past(place, [dimension])), place


@primitive(
    "concatenate", ("dimension",), abstract=_concatenate_abstract, emit=_concatenate_emit,
    jvp=LINEAR, transpose=_concatenate_transpose, batch=_concatenate_batch, moves_elements=True,
)
def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Concatenate arrays along an axis.

    Args:
        operands: a sequence of arrays of one dtype, whose shapes agree but for the axis.
        dimension: the axis, counted from the front.

    Returns:
        An array of the operands' dtype.

    Raises:
        TypeError: dtypes, ranks or other sizes differ, or there is no such axis.
        ValueError: there are no arrays.

    Example:
        >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
        Array([1, 2, 3], dtype=int32)
    """
    arrays = _sequence("concatenate", operands)
    if len(arrays) == 1 and isinstance(arrays[0], Array) and 0 <= dimension < arrays[0].ndim:
        return arrays[0]
    return concatenate.bind_positional(arrays, (to_integer("concatenate", "dimension", dimension),))


def _sequence(name: str, operands: Any) -> list[Any]:
    try:
        arrays = list(operands)
    except TypeError:
        raise TypeError(f"{name}: operands must be a sequence of arrays, got {abbreviated(operands)}") from None
    if not arrays:
        raise ValueError(f"{name}: operands must be a non-empty sequence of arrays")
    return arrays


def _stack_abstract(*operands: ShapedArray, axis: int) -> ShapedArray:
    check_same_dtype("stack", operands, "stack")
    shape = operands[0].shape
    if any(x.shape != shape for x in operands):
        raise ValueError(f"stack: operands must have the same shape, got {', '.join(str(x.shape) for x in operands)}")
    return ShapedArray(
        (*shape[:axis], len(operands), *shape[axis:]), operands[0].dtype, all(x.weak_type for x in operands)
    )


def _stack_emit(builder: FunctionBuilder, *values: Value, axis: int) -> Value:
    shape = values[0].aval.shape
    dimensions = [i for i in range(len(shape) + 1) if i != axis]
    spread = [builder.broadcast(x, (*shape[:axis], 1, *shape[axis:]), dimensions) for x in values]
    return write_concatenate(builder, spread, axis, builder.results[0])


def _stack_transpose(cotangent: Array, *operands: Any, axis: int) -> list[Any]:
    pieces = unstack.bind_positional((cotangent,), (axis,))
    return [p if type(x) is UndefinedPrimal else None for p, x in zip(pieces, operands, strict=True)]


def _stack_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, axis: int
) -> tuple[Any, int]:
    operands, place = _with_axes(mapped, operands, axes)
    # The new axis stands where it did among the others: before the mapped one or behind it.
    before = axis <= place
    return stack.bind_positional(operands, (axis if before else axis + 1,)), place + before


@primitive(
    "stack", ("axis",), abstract=_stack_abstract, emit=_stack_emit,
    jvp=LINEAR, transpose=_stack_transpose, batch=_stack_batch, moves_elements=True,
)
def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Stack arrays along a new axis.

    Args:
        operands: a sequence of arrays of one shape and dtype.
        axis: the axis of the result; negative ones count from its end.

    Returns:
        An array of the operands' dtype with one more axis.

    Raises:
        TypeError: the dtypes differ.
        ValueError: there are no arrays, their shapes differ, or there is no such axis.

    Example:
        >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    arrays = _sequence("stack", operands)
    ndim = operand_aval("stack", arrays[0], "operands[0]").ndim
    return stack.bind_positional(arrays, (canonical_axis("stack", axis, ndim + 1),))


def _unstack_abstract(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return [ShapedArray(shape, x.dtype, x.weak_type)] * x.shape[axis]


def _unstack_emit(builder: FunctionBuilder, x: Value, *, axis: int) -> list[Value]:
    pieces = write_pieces(builder, x, axis, [1] * x.aval.shape[axis])
    return [builder.cast("reshape", p, a) for p, a in zip(pieces, builder.results, strict=True)]


def _unstack_transpose(cotangents: Sequence[Any], x: Any, *, axis: int) -> list[Any]:
    return [stack.bind_positional(_instantiated(cotangents, _unstack_abstract(x.aval, axis=axis)), (axis,))]


def _unstack_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, axis: int
) -> tuple[list[Any], list[int]]:
    (own,) = shift_past(axes[0], [axis])
    results = unstack.bind_positional(operands, (own,))
    return results, [axes[0] - (own < axes[0])] * len(results)


@primitive(
    "unstack", ("axis",), abstract=_unstack_abstract, emit=_unstack_emit, multiple_results=True,
    jvp=PIECES, transpose=_unstack_transpose, batch=_unstack_batch, moves_elements=True,
)
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Any, ...]:
    """Split an array into its subarrays at each index of an axis.

    Args:
        x: an array of rank 1 or more.
        axis: an axis; negative ones count from the end.

    Returns:
        A tuple of arrays of the dtype of `x` without the axis.

    Raises:
        TypeError: `x` is no array, or `axis` is no integer.
        ValueError: there is no such axis.

    Example:
        >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    return tuple(
        unstack.bind_positional((x,), (canonical_axis("unstack", axis, operand_aval("unstack", x, "x").ndim),))
    )


def write_pieces(builder: FunctionBuilder, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Write the consecutive pieces of `x` along an axis."""
    pieces, start = [], 0
    for size in sizes:
        shape = (*x.aval.shape[:axis], size, *x.aval.shape[axis + 1 :])
        pieces.append(builder.slice(x, [(start, start + n) if i == axis else (0, n) for i, n in enumerate(shape)]))
        start += size
    return pieces


def _split_abstract(operand: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
    if any(n < 0 for n in sizes):
        raise ValueError(f"split: sizes must be non-negative, got {sizes}")
    if sum(sizes) != operand.shape[axis]:
        raise ValueError(
            f"split: the sum of sizes {sizes} is {sum(sizes)} and must be the size {operand.shape[axis]} of axis "
            f"{axis} of the operand, which has shape {operand.shape}"
        )
    before, after = operand.shape[:axis], operand.shape[axis + 1 :]
    return [ShapedArray((*before, n, *after), operand.dtype, operand.weak_type) for n in sizes]


def _split_emit(builder: FunctionBuilder, x: Value, *, sizes: tuple[int, ...], axis: int) -> list[Value]:
    return write_pieces(builder, x, axis, sizes)


def _split_transpose(cotangents: Sequence[Any], operand: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    avals = _split_abstract(operand.aval, sizes=sizes, axis=axis)
    return [concatenate.bind_positional(_instantiated(cotangents, avals), (axis,))]


def _split_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, sizes: tuple[int, ...], axis: int
) -> tuple[list[Any], list[int]]:
    results = split.bind_positional(operands, (sizes, *shift_past(axes[0], [axis])))
    return results, [axes[0]] * len(results)


@primitive(
    "split", ("sizes", "axis"), abstract=_split_abstract, emit=_split_emit, multiple_results=True,
    jvp=PIECES, transpose=_split_transpose, batch=_split_batch, moves_elements=True,
)
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Any]:
    """Split an array into consecutive pieces along an axis.

    Args:
        operand: an array.
        sizes: the sizes of the pieces, which add up to that of the axis.
        axis: an axis; negative ones count from the end.

    Returns:
        A list of arrays of the dtype of `operand`.

    Raises:
        TypeError: `sizes` is no sequence of integers.
        ValueError: the sizes do not add up, one is negative, or there is no such axis.

    Example:
        >>> lax.split(jnp.array([1, 2, 3]), (1, 2))
        [Array([1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    number = canonical_axis("split", axis, operand_aval("split", operand).ndim)
    return list(split.bind_positional((operand,), (integer_tuple("split", "sizes", sizes), number)))


def _tile_abstract(operand: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    if len(reps) != operand.ndim or any(n < 0 for n in reps):
        raise TypeError(
            f"tile: reps must have one non-negative integer for each of the operand's {operand.ndim} axes, got {reps}"
        )
    shape = tuple([n * r for n, r in zip(operand.shape, reps, strict=True)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _tile_emit(builder: FunctionBuilder, x: Value, *, reps: tuple[int, ...]) -> Value:
    shape = x.aval.shape
    apart = builder.cast("reshape", x, x.aval.update(shape=tuple([n for size in shape for n in (1, size)])))
    repeated = tuple([n for pair in zip(reps, shape, strict=True) for n in pair])
    return builder.cast("reshape", builder.broadcast(apart, repeated, range(2 * len(shape))), builder.results[0])


def _tile_transpose(cotangent: Array, operand: Any, *, reps: tuple[int, ...]) -> Array:
    own = operand.aval.shape
    apart = tuple([n for pair in zip(reps, own, strict=True) for n in pair])
    return reduce_sum(reshape.bind_positional((cotangent,), (apart, None, None)), range(0, 2 * len(own), 2))


def _tile_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, reps: tuple[int, ...]
) -> tuple[Any, int]:
    return tile.bind_positional(operands, (shift_over(axes[0], reps, 1),)), axes[0]


@linear("tile", ("reps",), abstract=_tile_abstract, emit=_tile_emit, transpose=_tile_transpose, batch=_tile_batch)
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array along each of its axes.

    Args:
        operand: an array.
        reps: for each axis the number of repetitions, not negative.

    Returns:
        An array of the dtype of `operand`, each size multiplied by the repetitions.

    Raises:
        TypeError: `reps` is no sequence of as many non-negative integers.

    Example:
        >>> lax.tile(jnp.array([1, 2]), (2,))
        Array([1, 2, 1, 2], dtype=int32)
    """
    return tile.bind_positional((operand,), (integer_tuple("tile", "reps", reps),))


def _rev_abstract(operand: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < operand.ndim for d in dimensions):
        raise TypeError(
            f"rev: dimensions {dimensions} must be distinct axes of the operand, from 0 to {operand.ndim - 1}; "
            f"it has shape {operand.shape}"
        )
    return operand


def _rev_emit(builder: FunctionBuilder, x: Value, *, dimensions: tuple[int, ...]) -> Value:
    if not dimensions:
        return x
    axes = attributes.bracketed(dimensions)
    return builder.line(f"stablehlo.reverse {x.name}, dims = {axes} : {x.aval.mlir_type}", x.aval)


def _rev_transpose(cotangent: Array, operand: Any, **dimensions: Any) -> Array:
    return rev.bind(cotangent, **dimensions)


@linear(
    "rev", ("dimensions",), abstract=_rev_abstract, emit=_rev_emit, transpose=_rev_transpose, axes=("dimensions",)
)
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of elements along axes.

    Args:
        operand: an array.
        dimensions: the distinct axes, counted from the front.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `dimensions` are no distinct axes.

    Example:
        >>> lax.rev(jnp.array([1, 2, 3]), (0,))
        Array([3, 2, 1], dtype=int32)
    """
    return rev.bind_positional((operand,), (integer_tuple("rev", "dimensions", dimensions),))


def _copy_transpose(cotangent: Any, operand: Any) -> Any:
    return copy.bind(cotangent)


@linear("copy", emit=lambda builder, x: x, transpose=_copy_transpose)
def copy(x: Any) -> Any:
    """Return a copy, in memory of its own."""
    return copy.bind(x)
