"""Operations on shapes (broadcast, expand_dims, squeeze, collapse), reversal and copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    check_broadcast,
    linear,
    operand_aval,
    reshape,
    shift_past,
)
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.primitive import Derived, Primitive
from xtrace._src.core.shardings.sharding_rules import drop, same
from xtrace._src.core.shardings.sum_rules import linear_in_all
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


def shift_over(axis: int, entries: Sequence[Any], entry: Any) -> tuple[Any, ...]:
    """Return per-axis `entries` as a tuple with `entry` inserted for a new axis at position `axis`."""
    return (*entries[:axis], entry, *entries[axis:])


def _pieces_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[list[Any], list[Any]]:
    values = tuple(parameters.values())
    return primitive.bind_positional(primals, values), primitive.bind_positional(tangents, values)


# The jvp rule of an operation that splits its only operand.
PIECES = Derived(_pieces_jvp, linear_in_all)


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Return an array repeated along new leading axes.

    Args:
        operand: an array.
        sizes: the sizes of the new axes.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: the sizes are no sequence of integers.

    Example:
        >>> lax.broadcast(1.0, (2,))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    if out_sharding is not None:
        return with_out_sharding(broadcast, out_sharding, operand, sizes)
    sizes = canonical_shape(integer_tuple("sizes", sizes))
    shape = operand_aval(operand).shape
    if not sizes and isinstance(operand, Array):
        return operand
    dimensions = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim.bind_positional((operand,), (sizes + shape, dimensions, None))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Any:
    """Return an array with leading axes of size 1 added up to a rank.

    Args:
        x: an array.
        rank: the number of axes of the result; an array of this rank or more is unchanged.

    Returns:
        An array of the dtype of `x`.

    Raises:
        TypeError: `x` is no array and no number.

    Example:
        >>> lax.broadcast_to_rank(jnp.ones(2), 3).shape
        (1, 1, 2)
    """
    missing = to_integer("rank", rank) - operand_aval(x, "x").ndim
    return x if missing <= 0 else expand_dims(x, range(missing))


def broadcast_like(arr: ArrayLike, like_arr: Any) -> Array:
    """Return an array broadcast to the shape of another one, with last axes aligned as in NumPy.

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
    aval, like = operand_aval(arr, "arr"), operand_aval(like_arr, "like_arr")
    return broadcast_in_dim(arr, like.shape, range(like.ndim - aval.ndim, like.ndim))


def broadcast_shapes(*shapes: ArrayLike) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to by NumPy's rules.

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
    canonical = [canonical_shape(s) for s in shapes]
    if not canonical:
        raise ValueError("broadcast_shapes: no shapes were given")
    return check_broadcast(canonical)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return an array with axes of size 1 added.

    Args:
        array: an array.
        dimensions: the positions of the new axes in the result; negative ones count from its end.

    Returns:
        An array of the dtype of `array`.

    Raises:
        ValueError: a position is out of bounds or given twice.

    Example:
        >>> lax.expand_dims(jnp.ones(2), (0, -1)).shape
        (1, 2, 1)
    """
    shape = operand_aval(array, "array").shape
    dimensions = integer_tuple("dimensions", dimensions)
    rank = len(shape) + len(dimensions)
    added = {canonical_axis(d, rank) for d in dimensions}
    if len(added) != len(dimensions):
        raise ValueError(f"expand_dims: repeated axis in dimensions {dimensions}")
    if not added and isinstance(array, Array):
        return array
    sizes, kept = iter(shape), tuple([i for i in range(rank) if i not in added])
    result = tuple([1 if i in added else next(sizes) for i in range(rank)])
    return broadcast_in_dim.bind_positional((array,), (result, kept, None))


def _squeeze_abstract(array: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(array.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "squeeze: cannot select an axis to squeeze out which has size not equal to one, got shape "
            f"{array.shape} and dimensions {dimensions}"
        )
    shape = tuple([n for i, n in enumerate(array.shape) if i not in dimensions])
    return ShapedArray(shape, array.dtype, array.weak_type)


def _reshape_to_result(builder: FunctionBuilder, x: Value, **_: object) -> Value:
    return builder.cast("reshape", x, builder.results[0])


def _squeeze_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, dimensions: tuple[int, ...]
) -> tuple[Any, int]:
    axis, dropped = axes[0], shift_past(axes[0], dimensions)
    return squeeze.bind_positional(operands, (dropped,)), axis - sum(d < axis for d in dropped)


@linear(
    ("dimensions",), sharding=drop("dimensions"), abstract=_squeeze_abstract, emit=_reshape_to_result,
    batch=_squeeze_batch,
    transpose=lambda t, x, *, dimensions: expand_dims(t, dimensions),
)
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of size 1.

    Args:
        array: an array.
        dimensions: the axes to remove; negative ones count from the end.

    Returns:
        An array of the dtype of `array` without the axes.

    Raises:
        TypeError: `dimensions` is no sequence of integers.
        ValueError: an axis does not exist, is given twice, or has another size.

    Example:
        >>> lax.squeeze(jnp.array([[1, 2]]), (0,))
        Array([1, 2], dtype=int32)
    """
    ndim = operand_aval(array, "array").ndim
    axes = tuple([canonical_axis(d, ndim) for d in integer_tuple("dimensions", dimensions)])
    if len(set(axes)) != len(axes):
        raise ValueError(f"squeeze: dimensions are not unique: {axes}")
    if not axes and isinstance(array, Array):
        return array
    return squeeze.bind_positional((array,), (tuple(sorted(axes)),))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Return an array with consecutive axes merged into one.

    Args:
        operand: an array.
        start_dimension: the first axis to merge.
        stop_dimension: the axis after the last one to merge; None for the end.

    Returns:
        An array of the dtype of `operand`.

    Raises:
        TypeError: a position is no integer.

    Example:
        >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    shape = operand_aval(operand).shape
    first, last, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if last < first:
        raise ValueError(
            f"collapse: start_dimension {start_dimension} is after stop_dimension {stop_dimension} for shape {shape}"
        )
    return reshape(operand, (*shape[:first], math.prod(shape[first:last]), *shape[last:]))


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
    axes = attributes.list_text(dimensions)
    return builder.line(f"stablehlo.reverse {x.name}, dims = {axes} : {x.aval.mlir_type}", x.aval)


def _rev_transpose(cotangent: Array, operand: Array, **dimensions: object) -> Array:
    return rev.bind(cotangent, **dimensions)


@linear(
    ("dimensions",), sharding=same, abstract=_rev_abstract, emit=_rev_emit, axes=("dimensions",),
    transpose=_rev_transpose,
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
    return rev.bind_positional((operand,), (integer_tuple("dimensions", dimensions),))


def _copy_transpose(cotangent: Array, operand: Array) -> Array:
    return copy.bind(cotangent)


@linear(sharding=same, emit=lambda builder, x: x, transpose=_copy_transpose)
def copy(x: ArrayLike) -> Array:
    """Return a copy in new memory."""
    return copy.bind(x)
