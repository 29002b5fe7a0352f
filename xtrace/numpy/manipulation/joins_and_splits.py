"""Arrays joined along an axis, and split."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval
from xtrace._src.algebra.vector_space import reshape as set_shape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core.annotations import ArrayLike, DTypeLike, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.dtypes import DType
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import to_count
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays import concatenation
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.manipulation.shapes import (
    NEW_AXES_1D,
    NEW_AXES_2D,
    NEW_AXES_3D,
    NEW_AXES_OF_COLUMNS,
    moveaxis,
    raise_rank,
)
from xtrace.numpy.operands import refuse, to_known_integer


@inline_jit
def _join_converted(*arrays: Array, axis: int, dtype: DType, weak: bool) -> Array:
    parts = [convert_to(x, dtype, weak) for x in arrays]
    return parts[0] if len(parts) == 1 else concatenation.concatenate(parts, axis)


def _to_operands(arrays: object) -> list[Any]:
    """Return the arrays of a list, or the rows of an array; TypeError for other objects."""
    if isinstance(arrays, (Array, np.ndarray)):
        operands = list(unstack(arrays)) if arrays.ndim else []
    elif isinstance(arrays, (list, tuple)) or _is_collection(arrays):
        operands = [to_array_operand(x, i) for i, x in enumerate(arrays)]  # type: ignore[var-annotated, arg-type]
    else:
        raise TypeError(f"{called_function()} needs a list or tuple of arrays, got {type(arrays)}")
    if not operands:
        raise ValueError(f"{called_function()}: Need at least one array")
    return operands


def _is_collection(arrays: object) -> bool:
    """Whether an object can be iterated over several times; a string or a mapping does not count."""
    if isinstance(arrays, (str, bytes, Mapping, Iterator)):
        return False
    return isinstance(arrays, Iterable) or hasattr(arrays, "__getitem__")


def _join(
    arrays: object, axis: int | Callable[[int], int], dtype: object, new_axes: Sequence[Shape] = ()
) -> Array:
    """Return arrays, or the rows of an array, joined along `axis`, which may be a function of their rank.

    new_axes: the positions of axes that an array gets before the join, by its rank.
    """
    if not isinstance(arrays, (Array, np.ndarray)):
        raised = [raise_rank(x, new_axes) for x in _to_operands(arrays)]
        return _concatenate(raised, axis(raised[0].ndim) if callable(axis) else axis, dtype)
    # One transposition, so that the program does not grow with the number of rows.
    array = to_array_operand(arrays)
    if not array.ndim or not array.shape[0]:
        raise ValueError(f"{called_function()}: Need at least one array")
    array = raise_rank(array, new_axes, 1)
    count, *shape = array.shape
    if not shape:
        raise _make_rank_error()
    along = canonical_axis(axis(len(shape)) if callable(axis) else axis, len(shape))
    rows = moveaxis(array, 0, along)
    wanted, weak = _promote_types([array], dtype)
    return convert_to(set_shape(rows, (*shape[:along], count * shape[along], *shape[along + 1 :])), wanted, weak)


def _make_rank_error() -> ValueError:
    return ValueError(
        f"{called_function()}: Zero-dimensional arrays cannot be concatenated; stack them. Arrays are given as one "
        f"argument, {called_function()}([a, b])"
    )


def _promote_types(operands: Sequence[Any], dtype: object) -> tuple[Any, bool]:
    if dtype is not None:
        return dtype, False
    _, common, weak = common_dtype(operands)
    return common, weak


def _concatenate(operands: Sequence[Any], axis: int, dtype: object) -> Array:
    if len({x.ndim for x in operands}) > 1:
        raise TypeError(
            f"{called_function()}: Cannot concatenate arrays with different numbers of dimensions: got "
            f"{', '.join(str(x.shape) for x in operands)}."
        )
    if operands[0].ndim == 0:
        raise _make_rank_error()
    along = canonical_axis(axis, operands[0].ndim)
    if len({(*x.shape[:along], *x.shape[along + 1 :]) for x in operands}) > 1:
        raise TypeError(
            f"{called_function()}: Cannot concatenate arrays with shapes that differ in dimensions other than the "
            f"one being concatenated: along dimension {along} for shapes {', '.join(str(x.shape) for x in operands)}. "
            "Choose another axis=, or cut or pad them to one shape."
        )
    wanted, weak = _promote_types(operands, dtype)
    return _join_converted(*operands, axis=along, dtype=wanted, weak=weak)


@inline_jit(static=("axis", "dtype"), trees=True)
def concatenate(arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: Any = None) -> Array:
    """Join arrays along an existing axis.

    Args:
        arrays: a sequence of arrays of one rank, with equal lengths along the other axes.
        axis: the axis; None to flatten the arrays.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: there are no arrays, or the arrays have no such axis.

    Example:
        >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    wanted = requested_dtype(dtype)
    if axis is None:
        if isinstance(arrays, (Array, np.ndarray)):
            arrays = [to_array_operand(arrays)] if arrays.ndim else []
        return _join([set_shape(x, (x.size,)) for x in _to_operands(arrays)], 0, wanted)
    return _join(arrays, axis, wanted)


@inline_jit(static=("axis",), trees=True)
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis; the array API's name of `concatenate`.

    Args:
        arrays: a sequence of arrays of one rank, with equal lengths along the other axes.
        axis: the axis; None to flatten the arrays.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: there are no arrays, or the arrays have no such axis.

    Example:
        >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


@inline_jit(static=("axis", "out", "dtype"), trees=True)
def stack(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays of one shape along a new axis.

    Args:
        arrays: a sequence of arrays.
        axis: the place of the new axis in the result.
        out: not supported; leave it at None.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array with one more axis than the operands.

    Raises:
        NotImplementedError: `out` is given.
        ValueError: there are no arrays, the shapes differ, or the place is out of range.

    Example:
        >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    refuse(out=out)
    wanted = requested_dtype(dtype)
    if isinstance(arrays, (Array, np.ndarray)) and arrays.ndim and arrays.shape[0]:
        array = to_array_operand(arrays)
        common, weak = _promote_types([array], wanted)
        return convert_to(moveaxis(array, 0, canonical_axis(axis, array.ndim)), common, weak)
    operands = _to_operands(arrays)
    if len({x.shape for x in operands}) > 1:
        raise ValueError(
            f"stack: All input arrays must have the same shape; got {', '.join(str(x.shape) for x in operands)}. "
            "concatenate joins arrays of different lengths"
        )
    along = canonical_axis(axis, operands[0].ndim + 1)
    common, weak = _promote_types(operands, wanted)
    return concatenation.stack([convert_to(x, common, weak) for x in operands], along)


@inline_jit(static=("dtype",), trees=True)
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis, vectors as rows.

    Args:
        tup: a sequence of arrays with equal lengths along the other axes.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: there are no arrays.

    Example:
        >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return _join(tup, 0, requested_dtype(dtype), NEW_AXES_2D)


@inline_jit(static=("dtype",), trees=True)
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the second axis, vectors along their only one.

    Args:
        tup: a sequence of arrays with equal lengths along the other axes.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: there are no arrays.

    Example:
        >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([1, 2, 3, 4], dtype=int32)
    """
    return _join(tup, lambda rank: min(rank - 1, 1), requested_dtype(dtype), NEW_AXES_1D)


@inline_jit(static=("dtype",), trees=True)
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis.

    Args:
        tup: a sequence of arrays with equal lengths along the other axes.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: there are no arrays.

    Example:
        >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[[1, 3],
                [2, 4]]], dtype=int32)
    """
    return _join(tup, 2, requested_dtype(dtype), NEW_AXES_3D)


@inline_jit(trees=True)
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Join arrays along the second axis, vectors as columns.

    Args:
        tup: a sequence of arrays with equal lengths along the other axes.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: there are no arrays.

    Example:
        >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return _join(tup, 1, None, NEW_AXES_OF_COLUMNS)


@inline_jit(static=("axis",), public=True)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join `values` to the end of `arr`.

    Args:
        arr, values: arrays, equal in rank and in the lengths of the other axes unless `axis` is None.
        axis: the axis; None to flatten both.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is not an array.
        ValueError: the arrays have no such axis.

    Example:
        >>> jnp.append(jnp.array([1, 2]), 3)
        Array([1, 2, 3], dtype=int32)
    """
    return concatenate([to_array_operand(arr, 0), to_array_operand(values, 1)], axis)


@inline_jit(trees=True)
def block(arrays: Any) -> Array:
    """Join nested lists of arrays: innermost lists along the last axis, the next ones along the one before.

    Args:
        arrays: an array, or nested lists of arrays of one depth.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: there is a tuple, or the lengths of other axes differ.
        ValueError: the lists differ in depth, or one is empty.

    Example:
        >>> jnp.block([[jnp.array([1, 2]), 3], [4, jnp.array([5, 6])]])
        Array([[1, 2, 3],
               [4, 5, 6]], dtype=int32)
    """

    def depth(item: object) -> int:
        if isinstance(item, tuple):
            raise TypeError("block: arrays must be nested in lists, not tuples")
        if not isinstance(item, list):
            return 0
        if not item:
            raise ValueError("block: a list is empty")
        depths = {depth(x) for x in item}
        if len(depths) > 1:
            raise ValueError("block: lists must all be nested to the same depth")
        return 1 + depths.pop()

    levels = depth(arrays)

    def leaves(item: object) -> Iterable[Any]:
        return [x for y in item for x in leaves(y)] if isinstance(item, list) else [to_array_operand(item)]

    rank = max([levels, *(x.ndim for x in leaves(arrays))])

    def assemble(item: object, axis: int) -> Array:
        if not isinstance(item, list):
            item = to_array_operand(item)
            return expand_dims(item, range(rank - item.ndim))
        return _concatenate([assemble(x, axis + 1) for x in item], axis, None)

    return assemble(arrays, rank - levels)


def _split(ary: Array, where_to: Any, axis: int, equal: bool) -> list[Any]:
    ary = to_array_operand(ary)
    along = canonical_axis(axis, ary.ndim)
    length = ary.shape[along]
    for value in where_to if isinstance(where_to, (list, tuple)) else (where_to,):
        if isinstance(value, Tracer):
            raise explain.concretization(value, f"numpy.{called_function()} argument indices_or_sections")
    if np.ndim(where_to):
        places = [i + length if i < 0 else i for i in _concrete_integers(where_to)]
        bounds = [0, *[min(max(i, 0), length) for i in places], length]
    else:
        count = to_known_integer("indices_or_sections", to_count(where_to))
        if count <= 0:
            raise ValueError(f"{called_function()}: the number of sections must be positive, got {count}")
        if equal and length % count:
            raise ValueError(
                f"{called_function()}: array split does not result in an equal division: axis {along} of length "
                f"{length} into {count} leaves {length % count}; array_split allows it"
            )
        small, larger = divmod(length, count)
        bounds = [i * small + min(i, larger) for i in range(count + 1)]
    if list(bounds) != sorted(bounds):
        raise ValueError(f"{called_function()}: the indices must not decrease, got {where_to}")
    return list(concatenation.split(ary, list(map(operator.sub, bounds[1:], bounds)), along))


def _concrete_integers(values: Any) -> list[int]:
    entries = np.asarray(values) if isinstance(values, Array) else values
    return [to_known_integer("indices", i) for i in entries]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Cut an array along an axis into equal sections, or before given indices.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, a divisor of the length, or the first index of each section but
            the first; concrete.
        axis: the axis.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is not an array.
        ValueError: the length does not divide into sections, or `ary` has no such axis.

    Example:
        >>> jnp.split(jnp.arange(4), 2)
        [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split(ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Cut an array along an axis into sections of about the same length, or before given indices.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, or the sequence of indices at which the next section begins;
            concrete.
        axis: the axis.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is not an array.
        ValueError: the number of sections is not positive, or `ary` has no such axis.

    Example:
        >>> jnp.array_split(jnp.arange(3), 2)
        [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split(ary, indices_or_sections, axis, False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Cut an array along its first axis.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, a divisor of the length, or the first index of each section but
            the first; concrete.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is not an array.
        ValueError: the length does not divide into sections, or `ary` has too few axes.

    Example:
        >>> [x.shape for x in jnp.vsplit(jnp.ones((2, 2, 2)), 2)]
        [(1, 2, 2), (1, 2, 2)]
    """
    return _split(ary, indices_or_sections, 0, True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Cut an array along its second axis, or its only one.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, a divisor of the length, or the first index of each section but
            the first; concrete.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is not an array.
        ValueError: the length does not divide into sections, or `ary` has too few axes.

    Example:
        >>> [x.shape for x in jnp.hsplit(jnp.ones((2, 2, 2)), 2)]
        [(2, 1, 2), (2, 1, 2)]
    """
    return _split(ary, indices_or_sections, 0 if operand_aval(ary, 0).ndim == 1 else 1, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Cut an array along its third axis.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, a divisor of the length, or the first index of each section but
            the first; concrete.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is not an array.
        ValueError: the length does not divide into sections, or `ary` has too few axes.

    Example:
        >>> [x.shape for x in jnp.dsplit(jnp.ones((2, 2, 2)), 2)]
        [(2, 2, 1), (2, 2, 1)]
    """
    return _split(ary, indices_or_sections, 2, True)


@inline_jit(static=("axis",), public=True)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Return the arrays along an axis, without it.

    Args:
        x: an array of at least one axis.
        axis: the axis.

    Returns:
        A tuple of arrays.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` is a scalar or has no such axis.

    Example:
        >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = to_array_operand(x)
    along = canonical_axis(axis, x.ndim)
    if x.ndim == 0:
        raise ValueError("unstack: a scalar has no axis to unstack")
    return tuple(concatenation.unstack(x, along))
