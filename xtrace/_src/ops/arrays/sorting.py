"""Sorts along an axis, of one array or of several together, and top-k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import ANY, check_kind
from xtrace._src.algebra.vector_space import canonical_axis, operand_aval, shift_axes
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.integers import to_integer
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import whole_along
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.gather_scatter import gather
from xtrace._src.ops.arrays.index_vectors import GatherDimensionNumbers, GatherScatterMode
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.stablehlo import symbolic_sizes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


def _sort_abstract(*operands: ShapedArray, num_keys: int, **_: object) -> list[ShapedArray]:
    if any(x.shape != operands[0].shape for x in operands):
        raise TypeError(f"sort: arguments must have equal shapes, got {', '.join(str(x.shape) for x in operands)}")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort: num_keys={num_keys} must be between 1 and the number of operands, {len(operands)}")
    check_kind("sort", operands, [ANY] * len(operands))
    return list(operands)


def _sort_emit(builder: FunctionBuilder, *values: Value, dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    values = tuple([builder.widen(x) for x in values])
    scalars = [x.aval.update(shape=()) for x in values]
    inner = builder.region([a for a in scalars for _ in range(2)])
    pairs: list[tuple[Value, Value]] = []
    for i in range(num_keys):
        left, right = [_write_sort_keys(inner, x) for x in inner.arguments[2 * i : 2 * i + 2]]
        pairs += zip(left, right, strict=True)

    def compare_keys(direction: str, pair: tuple[Value, Value]) -> Value:
        return inner.compare(direction, *pair, "TOTALORDER" if dtypes.is_floating(pair[0].aval.dtype) else None)

    before = compare_keys("LT", pairs[-1])
    for pair in reversed(pairs[:-1]):
        smaller, equal = compare_keys("LT", pair), compare_keys("EQ", pair)
        before = inner.elementwise("or", smaller, inner.elementwise("and", equal, before))
    wide = [a.update(dtype=x.aval.dtype) for a, x in zip(builder.results, values, strict=True)]
    ordered = builder.op_with_regions(
        "stablehlo.sort", values, [(inner, [before])], wide,
        dimension=f"{dimension} : i64", is_stable="true" if is_stable else "false",
    )
    return [builder.convert(x, a.dtype) for x, a in zip(ordered, builder.results, strict=True)]


def _write_sort_keys(builder: FunctionBuilder, x: Value) -> list[Value]:
    """Write the sort keys of an element: zeros are equal, NaNs equal and last; complex numbers have two keys."""
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        return [p for part in builder.real_and_imaginary(x) for p in _write_sort_keys(builder, part)]
    if not dtypes.is_floating(dtype):
        return [x]
    zero, nan = builder.constant(0, x.aval), builder.constant(np.nan, x.aval)
    x_or_zero = builder.select(builder.compare("EQ", x, zero), zero, x)
    return [builder.select(builder.compare("NE", x, x), nan, x_or_zero)]


def take_positions(x: ArrayLike, positions: ArrayLike, axis: int, unique: bool = True) -> Array:
    """Return the elements of `x` at positions along an axis; `unique` promises that positions are distinct.

    The other axes of `positions` are equal to the axes of `x`.
    """
    shape = aval_of(x).shape
    others = tuple([i for i in range(len(shape)) if i != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    vectors = expand_dims(positions, (len(shape),))
    parameters = (numbers, tuple([min(1, n) for n in shape]), False, unique, GatherScatterMode.PROMISE_IN_BOUNDS, None)
    return gather.bind_positional((x, vectors), parameters)


def _sort_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, dimension: int, is_stable: bool, num_keys: int
) -> tuple[list[Any], list[Any]]:
    # The positions are sorted with the operands; the tangents are taken at the sorted positions.
    positions = broadcasted_iota(dtypes.uint32, aval_of(primals[0]).shape, dimension)
    *results, positions = sort.bind_positional([*primals, positions], (dimension, is_stable, num_keys))
    return results, [None if t is None else take_positions(t, positions, dimension) for t in tangents]


@primitive(
    ("dimension", "is_stable", "num_keys"), sharding=whole_along("dimension"), abstract=_sort_abstract,
    emit=_sort_emit, multiple_results=True,
    jvp=_sort_jvp, batch=shift_axes("dimension"),
)
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort arrays along an axis, in ascending order.

    NaNs come last. Complex numbers are ordered by their real parts, equal ones by the imaginary parts.

    Args:
        operand: an array, or a sequence of arrays of one shape, which are sorted together.
        dimension: an axis; negative ones count from the end.
        is_stable: whether equal elements keep their order.
        num_keys: the number of arrays to compare, in lexicographic order; the other arrays are permuted with them.

    Returns:
        An array of the shape and dtype of `operand`, or for a sequence a tuple of arrays.

    Raises:
        TypeError: an operand is no array, the shapes differ, or the sequence is empty.
        ValueError: `num_keys` is not between 1 and the number of arrays, or there is no such axis.

    Example:
        >>> lax.sort((jnp.array([2, 1, 3]), jnp.array([4, 5, 6])))
        (Array([1, 2, 3], dtype=int32), Array([5, 4, 6], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    operands = list(operand) if several else [operand]
    if not operands:
        raise TypeError("sort: at least one operand is required, got an empty sequence")
    axis = canonical_axis(dimension, operand_aval(operands[0]).ndim)
    results = sort.bind_positional(operands, (axis, bool(is_stable), to_integer("num_keys", num_keys)))
    return tuple(results) if several else results[0]


def sort_key_val(keys: ArrayLike, values: object, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Return keys sorted along an axis, and values in the same order.

    Args:
        keys: an array.
        values: an array of the same shape.
        dimension: the axis.
        is_stable: whether equal keys keep their order.

    Returns:
        A pair of arrays.

    Raises:
        TypeError: the shapes differ.
        ValueError: there is no such axis.

    Example:
        >>> lax.sort_key_val(jnp.array([2, 1]), jnp.array([5, 6]))
        (Array([1, 2], dtype=int32), Array([6, 5], dtype=int32))
    """
    sorted_keys, sorted_values = sort((keys, values), dimension, is_stable)
    return sorted_keys, sorted_values


def _top_k_abstract(operand: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if dtypes.is_complex(operand.dtype):
        raise ValueError("top_k: complex numbers are not ordered; take the real part or abs first")
    if not 0 <= k <= operand.shape[axis]:
        raise ValueError(
            f"top_k: k must be from 0 to the size {operand.shape[axis]} of axis {axis} of the operand, which has "
            f"shape {operand.shape}; got {k}"
        )
    shape = (*operand.shape[:axis], k, *operand.shape[axis + 1 :])
    # The positions have the weak type of the values, as in JAX.
    return [ShapedArray(shape, operand.dtype, operand.weak_type), ShapedArray(shape, dtypes.int32, operand.weak_type)]


def _top_k_emit(builder: FunctionBuilder, x: Value, *, k: int, axis: int) -> list[Value]:
    results = list(builder.results)
    last = x.aval.ndim - 1
    order = [*[i for i in range(last + 1) if i != axis], axis]
    if axis != last:
        x = builder.transpose(x, order)
        results = [a.update(shape=(*x.aval.shape[:-1], k)) for a in results]
    if is_symbolic(k):
        largest = symbolic_sizes.write_top_k(builder, x, k, results)
    else:
        outputs = ", ".join(a.mlir_type for a in results)
        largest = builder.line_of_many(f"chlo.top_k({x.name}, k = {k}) : {x.aval.mlir_type} -> ({outputs})", results)
    back = [order.index(i) for i in range(last + 1)]
    return largest if axis == last else [builder.transpose(v, back) for v in largest]


def _top_k_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, k: int, axis: int) -> tuple[list[Any], list[Any]]:
    values, positions = top_k.bind_positional(primals, (k, axis))
    return [values, positions], [take_positions(tangents[0], positions, axis), None]


@primitive(
    ("k", "axis"), sharding=whole_along("axis"), abstract=_top_k_abstract, emit=_top_k_emit,
    multiple_results=True,
    jvp=_top_k_jvp, batch=shift_axes("axis"),
)
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> Sequence[Any]:
    """Return the largest elements along an axis in descending order, and their positions.

    Args:
        operand: an array of real numbers or booleans.
        k: the number of elements, at most the size of the axis.
        axis: an axis; negative ones count from the end.

    Returns:
        A list of two arrays of size `k` along the axis: the elements, and their positions as int32. Equal elements keep
        their order.

    Raises:
        TypeError: `operand` is no array, or `k` is no integer.
        ValueError: `k` is negative or too large, there is no such axis, or the elements are complex.

    Example:
        >>> lax.top_k(jnp.array([1, 3, 2]), 2)
        [Array([3, 2], dtype=int32), Array([1, 2], dtype=int32)]
    """
    number = canonical_axis(axis, operand_aval(operand).ndim)
    return list(top_k.bind_positional((operand,), (to_integer("k", k), number)))
