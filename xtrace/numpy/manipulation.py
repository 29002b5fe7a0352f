"""Arrays rearranged: reshaped, transposed, joined, split, repeated, rolled, sorted."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, canonical_shape, converted
from xtrace._src.algebra.vector_space import reshape as set_shape
from xtrace._src.algebra.vector_space import transpose as permute
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import remainder
from xtrace._src.core import config, dtypes, explain
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike, Shape, ShapeLike
from xtrace._src.core.array_protocol import with_arrays
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.integers import to_integer
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.core.trace import Tracer
from xtrace._src.ops import elementwise, reductions
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays import slicing, sorting
from xtrace.numpy.creation import array, diagonal_mask, to_array_operand, zeros
from xtrace.numpy.indexing import DEFAULT, gathered, nth_counted, take
from xtrace.numpy.operands import (
    axes_of,
    axis_as_index,
    broadcast_operand_to,
    cast_to,
    is_sequence_of_axes,
    refuse,
    scalar_of,
    select_or_fill,
    to_known_integer,
    type_of,
)

__all__ = [
    "append", "argsort", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack", "concat",
    "concatenate", "copy", "diag", "diagflat", "diagonal", "dsplit", "dstack", "expand_dims", "flip", "fliplr",
    "flipud", "hsplit", "hstack", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "repeat", "reshape",
    "resize", "roll", "rollaxis", "rot90", "sort", "split", "squeeze", "stack", "swapaxes", "tile", "transpose",
    "unstack", "vsplit", "vstack",
]


def _target_shape(function: str, own: tuple[int, ...], size: int, wanted: Any) -> tuple[int, ...]:
    """Return the shape `wanted` means for an array of `size` elements, its -1 filled in."""
    if type(wanted) is not tuple or any(type(n) is not int or n < 0 for n in wanted):
        entries = [wanted] if isinstance(wanted, Tracer) or not isinstance(wanted, Iterable) else list(wanted)
        unknown = [
            i
            for i, n in enumerate(entries)
            if not isinstance(n, Tracer) and isinstance(n, (int, np.integer)) and n == -1
        ]
        if len(unknown) > 1:
            raise TypeError(f"{function}: can only specify one unknown axis size with a -1 value, got {tuple(entries)}")
        known = canonical_shape(
            function, wanted if not unknown else [n for i, n in enumerate(entries) if i not in unknown]
        )
        if unknown:
            product = math.prod(known)
            if product == 0 or size % product:
                raise TypeError(
                    f"{function}: cannot reshape array of shape {own} (size {size}) into shape {tuple(entries)}: the "
                    f"product of the other sizes, {product}, does not divide {size}"
                )
            wanted = (*known[: unknown[0]], size // product, *known[unknown[0] :])
        else:
            wanted = known
    if math.prod(wanted) != size:
        raise TypeError(
            f"{function}: cannot reshape array of shape {own} (size {size}) into shape {wanted} "
            f"(size {math.prod(wanted)}); one size may be -1, which is then worked out"
        )
    return wanted


@inline_jit
def _column_major(a: Array, *, shape: tuple[int, ...]) -> Array:
    rank = a.ndim
    return permute(set_shape(permute(a, range(rank)[::-1]), shape[::-1]), range(len(shape))[::-1])


def _reshaped(function: str, a: Any, shape: Any, order: Any) -> Array:
    a = to_array_operand(function, a)
    target = _target_shape(function, a.shape, a.size, shape)
    if order == "A" or (order == "K" and function != "reshape"):
        raise NotImplementedError(
            f"{function}: order must be 'C' or 'F', got {abbreviated(order)}; arrays have no memory order"
        )
    if order not in ("C", "F"):
        raise ValueError(f"{function}: order must be 'C' or 'F', got {abbreviated(order)}")
    if target == a.shape:
        return a
    return set_shape(a, target) if order == "C" else _column_major(a, shape=target)


def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """Return the elements of `a` in a new shape.

    Args:
        a: an array or a scalar.
        shape: the lengths of the axes, integers, or one integer; one length may be -1, which follows from the
            others.
        order: ``"C"`` for row by row, ``"F"`` for column by column.
        copy: whether a copy is made; False raises an error where one is needed.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of the dtype of `a`; a NumPy array of a NumPy array.

    Raises:
        TypeError: the number of elements differs, `a` is no array, or a length is traced or no integer.

    Example:
        >>> jnp.reshape(jnp.arange(4), (2, -1))
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    try:
        refuse("reshape", out_sharding=out_sharding)
        if type(a) is np.ndarray or isinstance(a, np.generic):
            return a.reshape(shape, order=order)  # type: ignore[call-overload]
        return _reshaped("reshape", a, shape, order)
    except BaseException as error:
        hide_frames(error)
        ready = with_arrays(error, (a, shape), {})
        if ready is None:
            raise
    return reshape(ready[0][0], ready[0][1], order)


@inline_jit(static=("order", "out_sharding"), public=True)
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Return the elements of `a` as a vector.

    Args:
        a: an array or a scalar.
        order: ``"C"`` for row by row, ``"F"`` for column by column.
        out_sharding: not supported; leave it at None.

    Returns:
        A vector of the dtype of `a`.

    Raises:
        TypeError: `a` is no array and no scalar.

    Example:
        >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
        Array([1, 2, 3, 4], dtype=int32)
    """
    refuse("ravel", out_sharding=out_sharding)
    return _reshaped("ravel", a, (type_of("ravel", a).size,), order)


def _permuted(a: Array, permutation: Sequence[int]) -> Array:
    return a if tuple(permutation) == tuple(range(len(permutation))) else permute(a, permutation)


def transpose(a: Any, axes: Any = None) -> Array:
    """Return `a` with its axes in another order.

    Args:
        a: an array or a scalar.
        axes: the axes of `a` in the new order; None for the reverse order.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `axes` is no permutation of the axes, or `a` is no array.

    Example:
        >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    a = to_array_operand("transpose", a)
    if axes is None:
        return _permuted(a, range(a.ndim)[::-1])
    if not isinstance(axes, Iterable):
        raise TypeError(f"transpose: axes must be a sequence of integers, got {abbreviated(axes)}")
    order = [canonical_axis("transpose", i, a.ndim) for i in axes]
    if sorted(order) != list(range(a.ndim)):
        raise TypeError(
            f"transpose: axes {tuple(order)} are no permutation of the axes of an array of shape {a.shape}; swapaxes "
            "exchanges two of them"
        )
    return _permuted(a, order)


def permute_dims(a: ArrayLike, /, axes: ShapeLike) -> Array:
    """Return `a` with its axes in another order.

    Args:
        a: an array or a scalar.
        axes: the axes of `a` in the new order.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `axes` is no permutation of the axes, or `a` is no array.

    Example:
        >>> jnp.permute_dims(jnp.array([[1, 2], [3, 4]]), (1, 0))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return `x` with its last two axes exchanged.

    Args:
        x: an array of at least two axes.

    Returns:
        An array of the dtype of `x`.

    Raises:
        TypeError: `x` is no array.
        ValueError: `x` has fewer than two axes.

    Example:
        >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    x = to_array_operand("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must be at least two-dimensional; got ndim={x.ndim}")
    return permute(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@inline_jit(static=("axis1", "axis2"), public=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Return `a` with two axes exchanged.

    Args:
        a: an array or a scalar.
        axis1, axis2: the axes, integers; negative ones count from the end.

    Returns:
        An array of the dtype of `a`.

    Raises:
        IndexError: `a` has no such axis, as NumPy's AxisError, or an axis is no integer.
        TypeError: `a` is no array.

    Example:
        >>> jnp.swapaxes(jnp.ones((2, 3)), 0, 1).shape
        (3, 2)
    """
    a = to_array_operand("swapaxes", a)
    order = list(range(a.ndim))
    first, second = (axis_as_index("swapaxes", i, a.ndim) for i in (axis1, axis2))
    order[first], order[second] = second, first
    return _permuted(a, order)


@inline_jit(static=("source", "destination"), public=True)
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Return `a` with some axes moved to other places, the others in their order.

    Args:
        a: an array or a scalar.
        source: an axis or several.
        destination: the places of these axes in the result, as many.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is no array.
        ValueError: `source` and `destination` differ in number, or name an axis twice or one that is missing.

    Example:
        >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    a = to_array_operand("moveaxis", a)
    listed = [x if is_sequence_of_axes(x) else (x,) for x in (source, destination)]
    if len(listed[0]) != len(listed[1]):
        raise ValueError(f"moveaxis: Inconsistent number of elements: {len(listed[0])} vs {len(listed[1])}")
    sources, targets = (axes_of("moveaxis", x, a.ndim) for x in listed)
    order = [i for i in range(a.ndim) if i not in sources]
    for target, one in sorted(zip(targets, sources, strict=True)):
        order.insert(target, one)
    return _permuted(a, order)


@inline_jit(static=("axis", "start"), public=True)
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Return `a` with `axis` moved to before the axis `start`; `moveaxis` is plainer.

    Args:
        a: an array or a scalar.
        axis: the axis that moves.
        start: the axis that it is placed before.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is no array.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    a = to_array_operand("rollaxis", a)
    number, place = canonical_axis("rollaxis", axis, a.ndim), to_integer("rollaxis", "start", start)
    if not -a.ndim <= place <= a.ndim:
        raise ValueError(f"rollaxis: start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    place += a.ndim if place < 0 else 0
    return moveaxis(a, number, place - 1 if number < place else place)


def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """Return `a` with further axes of size 1.

    Args:
        a: an array or a scalar.
        axis: the place of the new axis in the result, or several places.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is no array and no scalar.
        ValueError: a place is out of range or repeated.

    Example:
        >>> jnp.expand_dims(jnp.ones(2), 0).shape
        (1, 2)
    """
    a = to_array_operand("expand_dims", a)
    count = len(axis) if is_sequence_of_axes(axis) else 1
    rank = a.ndim + count
    axes = axes_of("expand_dims", axis, rank)
    kept = [i for i in range(rank) if i not in axes]
    sizes = iter(a.shape)
    return broadcast_in_dim(a, [1 if i in axes else next(sizes) for i in range(rank)], kept)


def squeeze(a: ArrayLike, axis: Any = None) -> Any:
    """Return `a` without axes of size 1.

    Args:
        a: an array or a scalar.
        axis: the axis that is removed, or several; None for all of size 1.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is no array and no scalar.
        ValueError: an axis is missing or has another size.

    Example:
        >>> jnp.squeeze(jnp.ones((1, 2, 1))).shape
        (2,)
    """
    a = to_array_operand("squeeze", a)
    axes = tuple([i for i, n in enumerate(a.shape) if n == 1]) if axis is None else axes_of("squeeze", axis, a.ndim)
    for i in axes:
        if a.shape[i] != 1:
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not equal to one: "
                f"axis {i} of shape {a.shape}; an index such as x[0] takes one element of an axis"
            )
    return shapes.squeeze(a, axes) if axes else a


@inline_jit
def _joined(*arrays: Array, axis: int, dtype: Any, weak: bool) -> Array:
    parts = [converted(x, dtype, weak) for x in arrays]
    return parts[0] if len(parts) == 1 else shapes.concatenate(parts, axis)


def _sequence(function: str, arrays: Any) -> list[Any]:
    """Return the arrays of a list, or the rows of an array; TypeError for what is neither."""
    if isinstance(arrays, (list, tuple, range)):
        operands = [to_array_operand(function, x, i) for i, x in enumerate(arrays)]
    elif isinstance(arrays, (Array, np.ndarray)):
        operands = list(unstack(arrays)) if arrays.ndim else []
    else:
        raise TypeError(f"{function} needs a list or tuple of arrays, got {type(arrays)}")
    if not operands:
        raise ValueError(f"{function}: Need at least one array")
    return operands


def _join(
    function: str, arrays: Any, axis: int | Callable[[int], int], dtype: Any,
    raise_shape: Callable[[Shape], Shape] = lambda shape: shape,
) -> Array:
    """Return arrays, or the rows of an array, joined along an axis, or the one that `axis` says for their rank.

    raise_shape: the shape that an array has before it is joined, by its own.
    """
    if not isinstance(arrays, (Array, np.ndarray)):
        raised = [set_shape(x, raise_shape(x.shape)) for x in _sequence(function, arrays)]
        return _concatenated(function, raised, axis if isinstance(axis, int) else axis(raised[0].ndim), dtype)
    # The program must not grow with the number of rows.
    array = to_array_operand(function, arrays)
    if not array.ndim or not array.shape[0]:
        raise ValueError(f"{function}: Need at least one array")
    count, shape = array.shape[0], raise_shape(array.shape[1:])
    if not shape:
        raise _no_axes(function)
    along = canonical_axis(function, axis if isinstance(axis, int) else axis(len(shape)), len(shape))
    rows = moveaxis(set_shape(array, (count, *shape)), 0, along)
    wanted, weak = _common_type([array], dtype)
    return converted(set_shape(rows, (*shape[:along], count * shape[along], *shape[along + 1 :])), wanted, weak)


def _no_axes(function: str) -> ValueError:
    return ValueError(
        f"{function}: Zero-dimensional arrays cannot be concatenated; stack them. Arrays are given as one "
        f"argument, {function}([a, b])"
    )


def _common_type(operands: Sequence[Any], dtype: Any) -> tuple[Any, bool]:
    if dtype is not None:
        return dtype, False
    pairs = tuple((x.dtype, x.weak_type) for x in operands)
    return dtypes.promote(pairs, *config.promotion())


def _concatenated(function: str, operands: Sequence[Any], axis: int, dtype: Any) -> Array:
    if len({x.ndim for x in operands}) > 1:
        raise TypeError(
            f"{function}: Cannot concatenate arrays with different numbers of dimensions: got "
            f"{', '.join(str(x.shape) for x in operands)}."
        )
    if operands[0].ndim == 0:
        raise _no_axes(function)
    along = canonical_axis(function, axis, operands[0].ndim)
    if len({(*x.shape[:along], *x.shape[along + 1 :]) for x in operands}) > 1:
        raise TypeError(
            f"{function}: Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
            f"concatenated: along dimension {along} for shapes {', '.join(str(x.shape) for x in operands)}. "
            "Choose another axis=, or cut or pad them to one shape."
        )
    wanted, weak = _common_type(operands, dtype)
    return _joined(*operands, axis=along, dtype=wanted, weak=weak)


@inline_jit(static=("axis", "dtype"), trees=True)
def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Join arrays along an axis that they have.

    Args:
        arrays: a sequence of arrays, equal in rank and in the lengths of the other axes.
        axis: the axis; None to flatten the arrays.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: there is no array, or the arrays have no such axis.

    Example:
        >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    wanted = requested_dtype("concatenate", dtype)
    if axis is None:
        return _join("concatenate", arrays, 0, wanted, lambda shape: (math.prod(shape),))
    return _join("concatenate", arrays, axis, wanted)


@inline_jit(static=("axis",), trees=True)
def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have; the array API's name of `concatenate`.

    Args:
        arrays: a sequence of arrays, equal in rank and in the lengths of the other axes.
        axis: the axis; None to flatten the arrays.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: there is no array, or the arrays have no such axis.

    Example:
        >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


@inline_jit(static=("axis", "out", "dtype"), trees=True)
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
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
        ValueError: there is no array, the shapes differ, or the place is out of range.

    Example:
        >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    refuse("stack", out=out)
    wanted = requested_dtype("stack", dtype)
    if isinstance(arrays, (Array, np.ndarray)) and arrays.ndim and arrays.shape[0]:
        array = to_array_operand("stack", arrays)
        common, weak = _common_type([array], wanted)
        return converted(moveaxis(array, 0, canonical_axis("stack", axis, array.ndim)), common, weak)
    operands = _sequence("stack", arrays)
    if len({x.shape for x in operands}) > 1:
        raise ValueError(
            f"stack: All input arrays must have the same shape; got {', '.join(str(x.shape) for x in operands)}. "
            "concatenate joins arrays of different lengths"
        )
    along = canonical_axis("stack", axis, operands[0].ndim + 1)
    common, weak = _common_type(operands, wanted)
    return _stacked(*operands, axis=along, dtype=common, weak=weak)


@inline_jit
def _stacked(*arrays: Array, axis: int, dtype: np.dtype[Any], weak: bool) -> Array:
    return shapes.stack([converted(x, dtype, weak) for x in arrays], axis)


def _at_least_1d(shape: Shape) -> Shape:
    return shape or (1,)


def _at_least_2d(shape: Shape) -> Shape:
    return shape if len(shape) > 1 else (1, math.prod(shape))


def _at_least_3d(shape: Shape) -> Shape:
    return shape if len(shape) > 2 else (*_at_least_2d(shape), 1)


def _raise_ranks(function: str, arys: tuple[Any, ...], raise_shape: Callable[[Shape], Shape]) -> Any:
    arrays = [to_array_operand(function, x, i) for i, x in enumerate(arys)]
    raised = [set_shape(x, raise_shape(x.shape)) for x in arrays]
    return raised[0] if len(raised) == 1 else raised


@inline_jit(public=True)
def atleast_1d(*arys: ArrayLike) -> Array:
    """Return arrays with at least one axis, scalars as vectors.

    Args:
        arys: arrays or scalars.

    Returns:
        An array for one operand, otherwise a list of arrays.

    Raises:
        TypeError: an operand is no array and no scalar.

    Example:
        >>> jnp.atleast_1d(1.0).shape
        (1,)
    """
    return _raise_ranks("atleast_1d", arys, _at_least_1d)


@inline_jit(public=True)
def atleast_2d(*arys: ArrayLike) -> Any:
    """Return arrays with at least two axes, vectors as rows.

    Args:
        arys: arrays or scalars.

    Returns:
        An array for one operand, otherwise a list of arrays.

    Raises:
        TypeError: an operand is no array and no scalar.

    Example:
        >>> jnp.atleast_2d(1.0).shape
        (1, 1)
    """
    return _raise_ranks("atleast_2d", arys, _at_least_2d)


@inline_jit(public=True)
def atleast_3d(*arys: ArrayLike) -> Any:
    """Return arrays with at least three axes, vectors along the second.

    Args:
        arys: arrays or scalars.

    Returns:
        An array for one operand, otherwise a list of arrays.

    Raises:
        TypeError: an operand is no array and no scalar.

    Example:
        >>> jnp.atleast_3d(1.0).shape
        (1, 1, 1)
    """

    return _raise_ranks("atleast_3d", arys, _at_least_3d)


def _others(rank: int, axis: int) -> list[int]:
    return [i for i in range(rank) if i != axis]


@inline_jit(static=("dtype",), trees=True)
def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis, vectors as rows.

    Args:
        tup: a sequence of arrays, equal in the lengths of the other axes.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: there is no array.

    Example:
        >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return _join("vstack", tup, 0, requested_dtype("vstack", dtype), _at_least_2d)


@inline_jit(static=("dtype",), trees=True)
def hstack(tup: list[Array], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the second axis, vectors along their only one.

    Args:
        tup: a sequence of arrays, equal in the lengths of the other axes.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: there is no array.

    Example:
        >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([1, 2, 3, 4], dtype=int32)
    """
    return _join("hstack", tup, lambda rank: min(rank - 1, 1), requested_dtype("hstack", dtype), _at_least_1d)


@inline_jit(static=("dtype",), trees=True)
def dstack(tup: list[Array], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis.

    Args:
        tup: a sequence of arrays, equal in the lengths of the other axes.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: there is no array.

    Example:
        >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[[1, 3],
                [2, 4]]], dtype=int32)
    """
    return _join("dstack", tup, 2, requested_dtype("dstack", dtype), _at_least_3d)


@inline_jit(trees=True)
def column_stack(tup: list[Array]) -> Array:
    """Join arrays along the second axis, vectors as columns.

    Args:
        tup: a sequence of arrays, equal in the lengths of the other axes.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: there is no array.

    Example:
        >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return _join("column_stack", tup, 1, None, lambda shape: shape if len(shape) > 1 else (math.prod(shape), 1))


@inline_jit(static=("axis",), public=True)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join `values` to the end of `arr`.

    Args:
        arr, values: arrays, equal in rank and in the lengths of the other axes unless `axis` is None.
        axis: the axis; None to flatten both.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: the ranks or other lengths differ, or an operand is no array.
        ValueError: the arrays have no such axis.

    Example:
        >>> jnp.append(jnp.array([1, 2]), 3)
        Array([1, 2, 3], dtype=int32)
    """
    return concatenate([to_array_operand("append", arr, 0), to_array_operand("append", values, 1)], axis)


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

    def depth(item: Any) -> int:
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

    def leaves(item: Any) -> Iterable[Any]:
        return [x for y in item for x in leaves(y)] if isinstance(item, list) else [to_array_operand("block", item)]

    rank = max([levels, *(x.ndim for x in leaves(arrays))])

    def assemble(item: Any, axis: int) -> Array:
        if not isinstance(item, list):
            item = to_array_operand("block", item)
            return item if item.ndim == rank else set_shape(item, (1,) * (rank - item.ndim) + item.shape)
        return _concatenated("block", [assemble(x, axis + 1) for x in item], axis, None)

    return assemble(arrays, rank - levels)


def _split(function: str, ary: Array, where_to: Any, axis: int, equal: bool) -> list[Any]:
    ary = to_array_operand(function, ary)
    along = canonical_axis(function, axis, ary.ndim)
    length = ary.shape[along]
    for value in where_to if isinstance(where_to, (list, tuple)) else (where_to,):
        if isinstance(value, Tracer):
            raise explain.concretization(value, f"numpy.{function} argument indices_or_sections")
    if np.ndim(where_to):
        places = [i + length if i < 0 else i for i in _concrete_integers(function, where_to)]
        bounds = [0, *[min(max(i, 0), length) for i in places], length]
    else:
        count = to_known_integer(function, "indices_or_sections", where_to)
        if count <= 0:
            raise ValueError(f"{function}: the number of sections must be positive, got {count}")
        if equal and length % count:
            raise ValueError(
                f"{function}: array split does not result in an equal division: axis {along} of length {length} into "
                f"{count} leaves {length % count}; array_split allows it"
            )
        small, larger = divmod(length, count)
        bounds = [i * small + min(i, larger) for i in range(count + 1)]
    if list(bounds) != sorted(bounds):
        raise ValueError(f"{function}: the indices must not decrease, got {where_to}")
    return list(shapes.split(ary, list(map(operator.sub, bounds[1:], bounds)), along))


def _concrete_integers(function: str, values: Any) -> list[int]:
    entries = np.asarray(values) if isinstance(values, Array) else values
    return [to_known_integer(function, "indices", i) for i in entries]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Cut an array along an axis into equal sections, or before given indices.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, which divides the length, or a sequence of indices that
            sections begin at; it must be concrete.
        axis: the axis.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is no array.
        ValueError: the length does not divide into sections, or `ary` has no such axis.

    Example:
        >>> jnp.split(jnp.arange(4), 2)
        [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Cut an array along an axis into sections of about the same length, or before given indices.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, or a sequence of indices that sections begin at; it must be
            concrete.
        axis: the axis.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is no array.
        ValueError: the number of sections is not positive, or `ary` has no such axis.

    Example:
        >>> jnp.array_split(jnp.arange(3), 2)
        [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Cut an array along its first axis.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, which divides the length, or a sequence of indices that
            sections begin at; it must be concrete.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is no array.
        ValueError: the length does not divide into sections, or `ary` has too few axes.

    Example:
        >>> [x.shape for x in jnp.vsplit(jnp.ones((2, 2, 2)), 2)]
        [(1, 2, 2), (1, 2, 2)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Cut an array along its second axis, or its only one.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, which divides the length, or a sequence of indices that
            sections begin at; it must be concrete.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is no array.
        ValueError: the length does not divide into sections, or `ary` has too few axes.

    Example:
        >>> [x.shape for x in jnp.hsplit(jnp.ones((2, 2, 2)), 2)]
        [(2, 1, 2), (2, 1, 2)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if type_of("hsplit", ary).ndim == 1 else 1, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Cut an array along its third axis.

    Args:
        ary: an array.
        indices_or_sections: the number of sections, which divides the length, or a sequence of indices that
            sections begin at; it must be concrete.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `ary` is no array.
        ValueError: the length does not divide into sections, or `ary` has too few axes.

    Example:
        >>> [x.shape for x in jnp.dsplit(jnp.ones((2, 2, 2)), 2)]
        [(2, 2, 1), (2, 2, 1)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)


@inline_jit(static=("axis",), public=True)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Return the arrays along an axis, without it.

    Args:
        x: an array of at least one axis.
        axis: the axis.

    Returns:
        A tuple of arrays.

    Raises:
        TypeError: `x` is no array.
        ValueError: `x` is a scalar or has no such axis.

    Example:
        >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = to_array_operand("unstack", x)
    along = canonical_axis("unstack", axis, x.ndim)
    if x.ndim == 0:
        raise ValueError("unstack: a scalar has no axis to unstack")
    return tuple(shapes.unstack(x, along))


@inline_jit(static=("reps",), public=True)
def tile(A: ArrayLike, reps: Any) -> Any:
    """Return an array repeated along each axis.

    Args:
        A: an array or a scalar.
        reps: the number of repetitions, or one for each axis; missing leading axes of `A`, and missing leading
            numbers, count as 1.

    Returns:
        An array of the dtype of `A`.

    Raises:
        TypeError: `A` is no array and no scalar, or a number is no integer.

    Example:
        >>> jnp.tile(jnp.array([1, 2]), 2)
        Array([1, 2, 1, 2], dtype=int32)
    """
    A = to_array_operand("tile", A)
    counts = canonical_shape("tile", reps)
    counts = (1,) * (A.ndim - len(counts)) + counts
    own = (1,) * (len(counts) - A.ndim) + A.shape
    A = set_shape(A, own)
    return A if all(n == 1 for n in counts) else shapes.tile(A, counts)


def repeat(
    a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Return `a` with each element repeated along an axis.

    Args:
        a: an array or a scalar.
        repeats: the number of repetitions, an integer, or a vector with one for each element.
        axis: the axis; None for the flattened array.
        total_repeat_length: the length of the result, which traced `repeats` need: it is cut, or filled with the
            last element.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of the dtype of `a`.

    Raises:
        ConcretizationTypeError: `repeats` is traced and `total_repeat_length` is not given.
        TypeError: `a` is no array and no scalar.
        ValueError: `repeats` has another length than the axis, or `a` has no such axis.

    Example:
        >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]))
        Array([1, 1, 2], dtype=int32)
    """
    refuse("repeat", out_sharding=out_sharding)
    a = to_array_operand("repeat", a)
    if axis is None or not a.ndim:
        a, along = ravel(a), 0
    else:
        along = canonical_axis("repeat", axis, a.ndim)
    aval, length = type_of("repeat", repeats, 1), a.shape[along]
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"repeat: repeats must be integers, got dtype {aval.dtype.name}")
    if aval.shape not in ((), (1,), (length,)):
        raise ValueError(f"repeat: repeats of shape {aval.shape} do not fit axis {along} of length {length}")
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            raise explain.concretization(repeats, "numpy.repeat argument repeats (without total_repeat_length)")
        total = to_known_integer("repeat", "total_repeat_length", total_repeat_length)
        return take(a, _repeated_positions(repeats, length=length, total=total), along, mode="clip")
    counts = np.asarray(repeats)
    if (counts < 0).any():
        raise ValueError(f"repeat: repeats cannot be negative, got {repeats}")
    if not length:
        return a
    if counts.size == 1 and total_repeat_length is None:
        return _repeated(a, count=int(counts.reshape(())), axis=along)
    positions = np.repeat(np.arange(length), counts)
    if total_repeat_length is not None:
        total = to_known_integer("repeat", "total_repeat_length", total_repeat_length)
        missing = np.full(max(total - positions.size, 0), length - 1)
        positions = np.concatenate([positions[:total], missing])
    return take(a, positions.astype(np.int32), along, mode="clip")


@inline_jit
def _repeated_positions(repeats: Any, *, length: int, total: int) -> Any:
    repeats = broadcast_operand_to("repeat", repeats, repeats.shape, (length,))
    return nth_counted(repeats, total, dtypes.int32)[0]


@inline_jit
def _repeated(a: Array, *, count: int, axis: int) -> Array:
    own = a.shape
    spread = (*own[: axis + 1], count, *own[axis + 1 :])
    copies = broadcast_in_dim(a, spread, _others(len(spread), axis + 1))
    return set_shape(copies, (*own[:axis], own[axis] * count, *own[axis + 1 :]))


@inline_jit(static=("axis",), public=True)
def flip(m: Any, axis: Axes = None) -> Array:
    """Return the elements in reverse order.

    Args:
        m: an array.
        axis: the axis that is reversed, or several; None for all.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is no array.
        ValueError: `m` has no such axis.

    Example:
        >>> jnp.flip(jnp.array([1, 2, 3]))
        Array([3, 2, 1], dtype=int32)
    """
    return _flipped("flip", m, axis)


def _flipped(function: str, m: Array, axis: Any) -> Array:
    m = to_array_operand(function, m)
    axes = axes_of(function, axis, m.ndim)
    return shapes.rev(m, axes) if axes else m


@inline_jit(public=True)
def fliplr(m: Any) -> Array:
    """Return the elements in reverse order along the second axis.

    Args:
        m: an array that has the axis.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is no array.
        ValueError: `m` does not have the axis.

    Example:
        >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return _flipped("fliplr", m, 1)


@inline_jit(public=True)
def flipud(m: Any) -> Array:
    """Return the elements in reverse order along the first axis.

    Args:
        m: an array that has the axis.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is no array.
        ValueError: `m` does not have the axis.

    Example:
        >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return _flipped("flipud", m, 0)


@inline_jit(static=("k", "axes"), public=True)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Return an array turned by right angles in the plane of two axes.

    Args:
        m: an array of at least two axes.
        k: the number of right angles.
        axes: the two axes; it is turned from the first towards the second.

    Returns:
        An array of the dtype of `m`.

    Raises:
        TypeError: `m` is no array.
        ValueError: `m` has no such axes, or they are the same.

    Example:
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    m = to_array_operand("rot90", m)
    if m.ndim < 2:
        raise ValueError(f"rot90 requires its first argument to have ndim at least two, got shape {m.shape}")
    pair = axes_of("rot90", tuple(axes), m.ndim)
    if len(pair) != 2:
        raise ValueError(f"rot90: axes must be two different axes, got {axes}")
    first, second = pair
    turns = to_known_integer("rot90", "k", k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return shapes.rev(m, (first, second))
    if turns == 1:
        return swapaxes(shapes.rev(m, (second,)), first, second)
    return shapes.rev(swapaxes(m, first, second), (second,))


@inline_jit(static=("shift", "axis"), public=True)
def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Array:
    """Return an array shifted along axes; elements that fall off the end come back at the start.

    Args:
        a: an array.
        shift: the number of places, or one for each axis; it may be traced.
        axis: the axis, or several; None for the flattened array.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is no array.
        ValueError: there are not as many shifts as axes, or `a` has no such axis.

    Example:
        >>> jnp.roll(jnp.array([1, 2, 3]), 1)
        Array([3, 1, 2], dtype=int32)
    """
    a = to_array_operand("roll", a)
    if axis is None:
        return set_shape(roll(ravel(a), shift, 0), a.shape)
    axes = [canonical_axis("roll", i, a.ndim) for i in (axis if is_sequence_of_axes(axis) else (axis,))]
    shifts = _shifts(shift)
    count = len(shifts)
    if count != len(axes) and 1 not in (count, len(axes)):
        raise ValueError(f"roll: {count} shifts for {len(axes)} axes; give one for each, or one")
    places = list(range(count)) if count != 1 else [0] * len(axes)
    axes = axes if len(axes) != 1 else axes * count
    for along in dict.fromkeys(axes):
        if a.shape[along]:
            own = [place for place, i in zip(places, axes, strict=True) if i == along]
            a = _rolled_along(a, shifts, own, along)
    return a


def _shifts(shift: Any) -> Any:
    """Return shifts as a list of scalars, or as an array of one axis that is no NumPy array."""
    several = isinstance(shift, (tuple, list, range))
    shifts = list(shift) if several else [shift]
    for each in shifts:
        if np.ndim(each) > (not several):
            raise ValueError(f"roll: shift must be a scalar or a vector, got one that holds {abbreviated(each)}")
        type_of("roll", each, 1)
    if several or np.ndim(shift) == 0:
        return shifts
    return list(shift) if isinstance(shift, np.ndarray) else shift


def _rolled_along(a: Array, shifts: Any, places: Sequence[int], axis: int) -> Array:
    """Return `a` rolled once, by the sum of the shifts at `places`."""
    size, step = a.shape[axis], 0
    if isinstance(shifts, list):
        moving = []
        for shift in [shifts[i] for i in places]:
            if isinstance(shift, Array) or not dtypes.is_integer(type_of("roll", shift).dtype):
                moving.append(_reduced(to_array_operand("roll", shift, 1), size=size))
            else:
                step = (step + int(shift)) % size
        total = moving[0] if len(moving) == 1 else _total(stack(moving), size=size) if moving else None
    else:
        own = shifts if len(places) == len(shifts) else take(shifts, np.array(places, np.int32))
        total = _total(_reduced(own, size=size), size=size)
    if total is not None:
        return _rolled_at(a, total, axis=axis, step=step)
    return _rolled_by(a, axis=axis, step=step) if step else a


@inline_jit
def _reduced(shifts: Array, *, size: int) -> Array:
    """Return shifts as uint32, modulo the size of their axis, so that sums of two do not overflow."""
    wide = dtypes.is_integer(shifts.dtype) and shifts.dtype.itemsize >= 4
    return converted(remainder(shifts if wide else cast_to(shifts, shifts.aval, dtypes.int32), size), dtypes.uint32)


@inline_jit
def _total(shifts: Array, *, size: int) -> Array:
    """Return the sum of reduced shifts, modulo the size of their axis."""

    def add(x: Any, y: Any) -> Any:
        return elementwise.rem(elementwise.add(x, y), np.uint32(size))

    return reductions.reduce(shifts, np.uint32(0), add, (0,))


@inline_jit
def _rolled_by(a: Array, *, axis: int, step: int) -> Array:
    size = a.shape[axis]
    parts = [slicing.slice_in_dim(a, size - step, size, axis=axis), slicing.slice_in_dim(a, 0, size - step, axis=axis)]
    return shapes.concatenate(parts, axis)


@inline_jit
def _rolled_at(a: Array, shift: Array, *, axis: int, step: int) -> Array:
    size = a.shape[axis]
    shift = elementwise.rem(elementwise.add(shift, np.uint32(step)), np.uint32(size)) if step else shift
    start = elementwise.sub(np.uint32(size), shift)
    return slicing.dynamic_slice_in_dim(shapes.concatenate([a, a], axis), start, size, axis)


@inline_jit(static=("new_shape",), public=True)
def resize(a: ArrayLike, new_shape: Any) -> Array:
    """Return the elements of `a` in a new shape, repeated from the start as often as needed.

    Args:
        a: an array or a scalar.
        new_shape: the lengths of the axes, or one length.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is no array and no scalar, or a length is negative.

    Example:
        >>> jnp.resize(jnp.array([1, 2, 3]), 5)
        Array([1, 2, 3, 1, 2], dtype=int32)
    """
    a = to_array_operand("resize", a)
    target = canonical_shape("resize", new_shape)
    size = math.prod(target)
    if a.size == 0 or size == 0:
        return converted(zeros(target, a.dtype), a.dtype, a.weak_type)
    return set_shape(slicing.slice_in_dim(tile(ravel(a), -(-size // a.size)), 0, size), target)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of `a` in memory of its own.

    Args:
        a: an array, a scalar, or nested lists of numbers.
        order: the order in memory, ``"K"`` or None, since arrays have none of their own.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `order` is another one.
        TypeError: `a` does not convert to an array.

    Example:
        >>> jnp.copy(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"copy: order must be 'K'; arrays have no memory order of their own, got {abbreviated(order)}"
        )
    type_of("copy", a)
    return array(a, copy=True)


@inline_jit
def _diagonal(a: Array, *, row: int, column: int, length: int) -> Array:
    rank = a.ndim
    count = shapes.iota(dtypes.int32, length)
    positions = [elementwise.add(count, scalar_of(first, dtypes.int32)) if first else count for first in (row, column)]
    return gathered(a, positions, (rank - 2, rank - 1), rank - 2, DEFAULT)


@inline_jit(static=("offset", "axis1", "axis2"), public=True)
def diagonal(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of matrices, along a new last axis.

    Args:
        a: an array of at least two axes.
        offset: the diagonal, above the main one if positive.
        axis1, axis2: the axes of the rows and the columns.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is no array.
        ValueError: `a` has no such axes, or they are the same.

    Example:
        >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    a = to_array_operand("diagonal", a)
    if a.ndim < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {a.shape}")
    first, second = (canonical_axis("diagonal", i, a.ndim) for i in (axis1, axis2))
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 cannot be the same, got {axis1} and {axis2}")
    shift = to_known_integer("diagonal", "offset", offset)
    row, column = max(0, -shift), max(0, shift)
    a = moveaxis(a, (first, second), (-2, -1))
    length = max(0, min(a.shape[-2] - row, a.shape[-1] - column))
    if length == 0:
        return converted(zeros((*a.shape[:-2], 0), a.dtype), a.dtype, a.weak_type)
    return _diagonal(a, row=row, column=column, length=length)


@inline_jit
def _with_diagonal(v: Array, *, offset: int) -> Array:
    size = v.size + abs(offset)
    padded = slicing.pad(v, scalar_of(0, v.dtype), [(max(offset, 0), max(-offset, 0), 0)])
    mask = diagonal_mask(offset, rows=size, columns=size, below=False)
    return converted(select_or_fill(mask, broadcast_in_dim(padded, (size, size), (1,)), 0), v.dtype, v.weak_type)


@inline_jit(static=("k",), public=True)
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Args:
        v: a matrix or a vector.
        k: the diagonal, above the main one if positive.

    Returns:
        A vector or a matrix of the dtype of `v`.

    Raises:
        TypeError: `v` is no array.
        ValueError: `v` has another rank.

    Example:
        >>> jnp.diag(jnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    v = to_array_operand("diag", v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {v.shape}")
    return _with_diagonal(v, offset=to_known_integer("diag", "k", k))


@inline_jit(static=("k",), public=True)
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return the matrix with the elements of an array on its diagonal.

    Args:
        v: an array or a scalar, which is flattened.
        k: the diagonal, above the main one if positive.

    Returns:
        A matrix of the dtype of `v`.

    Raises:
        TypeError: `v` is no array and no scalar.

    Example:
        >>> jnp.diagflat(jnp.array([[1], [2]]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    v = ravel(v)
    return _with_diagonal(converted(v, v.dtype, False), offset=to_known_integer("diagflat", "k", k))


@inline_jit
def _sorted(a: Array, *, axis: int, stable: bool, descending: bool, positions: bool) -> Array:
    # Sorting the reversed array keeps equal elements in their order when the result is reversed again.
    a = shapes.rev(a, (axis,)) if descending else a
    if positions:
        count = shapes.broadcasted_iota(dtypes.default_int(config.enable_x64.value), a.shape, axis)
        count = shapes.rev(count, (axis,)) if descending else count
        ordered = sorting.sort((a, count), axis, stable, 1)[1]
    else:
        ordered = sorting.sort(a, axis, stable)
    return shapes.rev(ordered, (axis,)) if descending else ordered


def _checked_sort(function: str, a: Any, axis: Any, kind: Any, order: Any, stable: bool, descending: bool) -> Any:
    a = to_array_operand(function, a)
    if kind is not None or order is not None:
        raise TypeError(f"{function}: kind and order are not supported; use stable= for the order of equals")
    if axis is None:
        a, axis = ravel(a), 0
    along = canonical_axis(function, axis, a.ndim)
    return _sorted(a, axis=along, stable=bool(stable), descending=bool(descending), positions=function == "argsort")


@inline_jit(static=("axis", "kind", "order", "stable", "descending"), public=True)
def sort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return the elements sorted along an axis, NaN last.

    Args:
        a: an array; complex numbers are sorted by real part first.
        axis: the axis; None for the flattened array.
        kind, order: not supported; leave them at None.
        stable: whether equal elements keep their order.
        descending: whether the largest element comes first.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is no array, or `kind` or `order` is given.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.sort(jnp.array([3, 1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    return _checked_sort("sort", a, axis, kind, order, stable, descending)


@inline_jit(static=("axis", "kind", "order", "stable", "descending"), public=True)
def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False, dtype: DTypeLike | None = None,
) -> Array:
    """Return the positions that sort the elements along an axis, NaN last.

    Args:
        a: an array; complex numbers are sorted by real part first.
        axis: the axis; None for the flattened array.
        kind, order: not supported; leave them at None.
        stable: whether equal elements keep their order.
        descending: whether the largest element comes first.
        dtype: the dtype of the positions; None for the default integer.

    Returns:
        An array of the shape of `a` and an integer dtype.

    Raises:
        TypeError: `a` is no array, or `kind` or `order` is given.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.argsort(jnp.array([3, 1, 2]))
        Array([1, 2, 0], dtype=int32)
    """
    places = _checked_sort("argsort", a, axis, kind, order, stable, descending)
    return places if dtype is None else cast_to(places, places.aval, requested_dtype("argsort", dtype))
