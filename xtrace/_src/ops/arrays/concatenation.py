"""Concatenating, stacking, splitting and repeating arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.kinds import check_same_dtype
from xtrace._src.algebra.vector_space import (
    LINEAR,
    canonical_axis,
    linear,
    operand_aval,
    reduce_sum,
    reshape,
    shift_axes,
    shift_past,
    zeros,
)
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings import sharding_rules
from xtrace._src.core.shardings.sum_rules import nonlinear
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.shape import PIECES, shift_over
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


def _instantiate_zeros(cotangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    return [zeros(a) if c is None else c for c, a in zip(cotangents, avals, strict=True)]


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
    """Write the concatenation of values along an axis."""
    return builder.convert(builder.concatenate(values, dimension), aval.dtype).bitcast(aval)


def _concatenate_emit(builder: FunctionBuilder, *values: Value, dimension: int) -> Value:
    return write_concatenate(builder, values, dimension, builder.results[0])


def _concatenate_transpose(cotangent: Array, *operands: Array | UndefinedPrimal, dimension: int) -> list[Any]:
    sizes = tuple([aval_of(x).shape[dimension] for x in operands])
    pieces = split.bind_positional((cotangent,), (sizes, dimension))
    return [p if type(x) is UndefinedPrimal else None for p, x in zip(pieces, operands, strict=True)]


@primitive(
    ("dimension",), sharding=sharding_rules.concatenate, abstract=_concatenate_abstract,
    emit=_concatenate_emit,
    jvp=LINEAR, transpose=_concatenate_transpose, batch=shift_axes("dimension"), moves_elements=True,
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
    arrays, axis = _list_operands(operands), to_integer("dimension", dimension)
    if len(arrays) == 1 and isinstance(arrays[0], Array) and 0 <= axis < arrays[0].ndim:
        return arrays[0]
    return concatenate.bind_positional(arrays, (axis,))


def _list_operands(operands: Any) -> list[Any]:
    try:
        arrays = list(operands)
    except TypeError:
        raise TypeError(
            f"{called_function()}: operands must be a sequence of arrays, got {abbreviate(operands)}"
        ) from None
    if not arrays:
        raise ValueError(f"{called_function()}: operands must be a non-empty sequence of arrays")
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
    expanded = [
        builder.keep_terms(builder.broadcast(x, (*shape[:axis], 1, *shape[axis:]), dimensions), x.aval, axis)
        for x in values
    ]
    return write_concatenate(builder, expanded, axis, builder.results[0])


def _stack_transpose(cotangent: Array, *operands: Array | UndefinedPrimal, axis: int) -> list[Any]:
    pieces = unstack.bind_positional((cotangent,), (axis,))
    return [p if type(x) is UndefinedPrimal else None for p, x in zip(pieces, operands, strict=True)]


def _stack_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, axis: int
) -> tuple[Any, int]:
    place = next(i for i in axes if i is not None)
    operands = [mapped.place(x, i, place) for x, i in zip(operands, axes, strict=True)]
    # The new axis and the mapped axis keep their order.
    before = axis <= place
    return stack.bind_positional(operands, (axis if before else axis + 1,)), place + before


@primitive(
    ("axis",), sharding=sharding_rules.stack, abstract=_stack_abstract, emit=_stack_emit,
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
    arrays = _list_operands(operands)
    ndim = operand_aval(arrays[0], "operands[0]").ndim
    return stack.bind_positional(arrays, (canonical_axis(axis, ndim + 1),))


def _unstack_abstract(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return [ShapedArray(shape, x.dtype, x.weak_type)] * x.shape[axis]


def _unstack_emit(builder: FunctionBuilder, x: Value, *, axis: int) -> list[Value]:
    pieces = write_pieces(builder, x, axis, [1] * x.aval.shape[axis])
    pieces = [builder.keep_terms(p, x.aval) for p in pieces]
    return [builder.cast("reshape", p, a) for p, a in zip(pieces, builder.results, strict=True)]


def _unstack_transpose(cotangents: Sequence[Any], x: Array, *, axis: int) -> list[Any]:
    return [stack.bind_positional(_instantiate_zeros(cotangents, unstack.infer_types((x.aval,), (axis,))), (axis,))]


def _unstack_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, axis: int
) -> tuple[Sequence[Any], list[int]]:
    (own,) = shift_past(axes[0], [axis])
    results = unstack.bind_positional(operands, (own,))
    return results, [axes[0] - (own < axes[0])] * len(results)


@primitive(
    ("axis",), abstract=_unstack_abstract, emit=_unstack_emit, multiple_results=True,
    jvp=PIECES, transpose=_unstack_transpose, batch=_unstack_batch, moves_elements=True,
    sharding=sharding_rules.unstack,
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
    return tuple(unstack.bind_positional((x,), (canonical_axis(axis, operand_aval(x, "x").ndim),)))


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


def _split_transpose(cotangents: Sequence[Any], operand: Array, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    avals = split.infer_types((operand.aval,), (sizes, axis))
    return [concatenate.bind_positional(_instantiate_zeros(cotangents, avals), (axis,))]


@primitive(
    ("sizes", "axis"), sharding=sharding_rules.resize, abstract=_split_abstract, emit=_split_emit,
    multiple_results=True,
    jvp=PIECES, transpose=_split_transpose, batch=shift_axes("axis"), moves_elements=True,
)
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]:
    """Split an array into consecutive pieces along an axis.

    Args:
        operand: an array.
        sizes: the sizes of the pieces, which add up to the size of the axis.
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
    number = canonical_axis(axis, operand_aval(operand).ndim)
    return list(split.bind_positional((operand,), (integer_tuple("sizes", sizes), number)))


def _tile_abstract(operand: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    if len(reps) != operand.ndim or any(n < 0 for n in reps):
        raise TypeError(
            f"tile: reps must have one non-negative integer for each of the operand's {operand.ndim} axes, got {reps}"
        )
    shape = tuple([n * r for n, r in zip(operand.shape, reps, strict=True)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _tile_emit(builder: FunctionBuilder, x: Value, *, reps: tuple[int, ...]) -> Value:
    shape = x.aval.shape
    expanded = builder.cast("reshape", x, x.aval.update(shape=tuple([n for size in shape for n in (1, size)])))
    repeated = tuple([n for pair in zip(reps, shape, strict=True) for n in pair])
    return builder.cast("reshape", builder.broadcast(expanded, repeated, range(2 * len(shape))), builder.results[0])


def _tile_transpose(cotangent: Array, operand: Array, *, reps: tuple[int, ...]) -> Array:
    own = operand.aval.shape
    repeated = tuple([n for pair in zip(reps, own, strict=True) for n in pair])
    return reduce_sum(reshape.bind_positional((cotangent,), (repeated, None, None)), range(0, 2 * len(own), 2))


def _tile_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, reps: tuple[int, ...]
) -> tuple[Any, int]:
    return tile.bind_positional(operands, (shift_over(axes[0], reps, 1),)), axes[0]


@linear(
    ("reps",), abstract=_tile_abstract, emit=_tile_emit, transpose=_tile_transpose, batch=_tile_batch,
    sharding=sharding_rules.tile, sums=nonlinear,
)
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array along each of its axes.

    Args:
        operand: an array.
        reps: for each axis the number of repetitions, not negative.

    Returns:
        An array of the dtype of `operand`, each size multiplied by the repetitions.

    Raises:
        TypeError: `reps` does not have one non-negative integer for each axis.

    Example:
        >>> lax.tile(jnp.array([1, 2]), (2,))
        Array([1, 2, 1, 2], dtype=int32)
    """
    return tile.bind_positional((operand,), (integer_tuple("reps", reps),))
