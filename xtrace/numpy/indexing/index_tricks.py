"""Index arrays of grids, triangles and diagonals, and positions in flattened arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import index_exp, s_

from xtrace._src.algebra.vector_space import canonical_shape, check_broadcast, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import divmod, greater, less, select_where
from xtrace._src.api.operators.promotion import common_dtype, find_common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.elementwise import elementwise, selection
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import ones
from xtrace.numpy.arrays.ranges import arange, linspace
from xtrace.numpy.indexing.nonzero_elements import nonzero
from xtrace.numpy.manipulation.broadcasting import meshgrid
from xtrace.numpy.manipulation.joins_and_splits import concatenate, stack
from xtrace.numpy.operands import broadcast_operand_to, cast_to, scalar_of, wrap_indices

__all__ = [
    "c_", "diag_indices", "diag_indices_from", "index_exp", "ix_", "mask_indices", "mgrid", "ogrid", "r_",
    "ravel_multi_index", "s_", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
    "unravel_index",
]


# Positions in a flattened array


def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Any, ...]:
    """Return the indices along each axis of positions in the flattened array.

    Args:
        indices: an array or a scalar of integers, also as real numbers; negative ones count from the end, and those
            out of bounds are moved to the nearest end.
        shape: the lengths of the axes.

    Returns:
        A tuple of arrays of the shape and dtype of `indices`.

    Raises:
        TypeError: `indices` is complex.

    Example:
        >>> jnp.unravel_index(5, (2, 3))
        (Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    aval = operand_aval(indices, 0)
    if dtypes.is_complex(aval.dtype):
        raise TypeError(f"unravel_index: indices must be integers or real numbers, got {aval.dtype.name}")
    compute = _compute_indices if dtypes.is_integer(aval.dtype) else _divide_out
    return tuple(compute(to_array_operand(indices), shape=canonical_shape(shape)))


@inline_jit
def _compute_indices(indices: Array, *, shape: tuple[int, ...]) -> list[Any]:
    dtype, weak = indices.dtype, indices.aval.weak_type
    total = math.prod(shape)
    # At least 32 bits, so that the bounds fit.
    wide = dtype if dtypes.bit_width(dtype) >= 32 else dtypes.int32
    rest = convert_to(indices, wide, weak)

    def number(value: int) -> Any:
        return scalar_of(value, wide, weak)

    if dtypes.is_signed(wide):
        rest = select_n(lt(rest, number(0)), rest, elementwise.add(rest, number(total)))
    rest = selection.clamp(number(0), rest, number(max(total - 1, 0)))
    coordinates = []
    for size in reversed(shape):
        coordinates.append(convert_to(elementwise.rem(rest, number(max(size, 1))), dtype, weak))
        rest = elementwise.div(rest, number(max(size, 1)))
    return coordinates[::-1]


@inline_jit
def _divide_out(indices: Array, *, shape: tuple[int, ...]) -> list[Any]:
    """Return indices for positions that are real numbers or booleans; fractions stay in the last axis."""
    rest, coordinates = indices, []
    for size in reversed(shape):
        rest, coordinate = divmod(rest, size)
        coordinates.append((coordinate, size))
    above, below = greater(rest, 0), less(rest, -1)
    return [select_where(above, n - 1, select_where(below, 0, x)) for x, n in reversed(coordinates)]


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Sequence[int], mode: str = "raise", order: str = "C", *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return positions in the flattened array for indices along each axis.

    Args:
        multi_index: a sequence of arrays of integers, one for each axis.
        dims: the lengths of the axes.
        mode: the treatment of indices out of bounds: ``"raise"`` raises ValueError, and needs concrete indices;
            ``"wrap"`` takes them modulo the length; ``"clip"`` moves them to the nearest end; ``"ignore"`` leaves them
            unchecked.
        order: ``"C"`` for row by row, ``"F"`` for column by column.
        dtype: the dtype of the result; None for the promoted dtype.

    Returns:
        An array of the broadcast shape.

    Raises:
        ValueError: an index is out of bounds or no integer, the numbers of arrays and axes differ, or `mode` or `order`
            has another value.

    Example:
        >>> jnp.ravel_multi_index((jnp.array([1]), jnp.array([2])), (2, 3))
        Array([5], dtype=int32)
    """
    sizes = tuple([to_integer("dims", n) for n in dims])
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(
            f"ravel_multi_index: invalid mode={abbreviate(mode)}. Expected 'raise', 'wrap', 'clip', or 'ignore'."
        )
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: invalid order={abbreviate(order)}. Expected 'C' or 'F'")
    indices = list(multi_index)
    if len(indices) != len(sizes):
        raise ValueError(
            f"ravel_multi_index: multi_index has {len(indices)} arrays, but dims={sizes} has {len(sizes)} axes"
        )
    wanted = requested_dtype(dtype)
    if not indices:
        return convert_to(0, wanted or dtypes.default_int(config.enable_x64.value), False)
    _, common, _ = common_dtype(indices)
    for kind in (common, wanted or common):
        if not dtypes.is_integer(kind):
            raise ValueError(f"ravel_multi_index: {kind.name} is not an integer type")
    if mode == "raise":
        for index, size in zip(indices, sizes, strict=True):
            if isinstance(index, Tracer):
                raise explain.concretization(
                    index, "numpy.ravel_multi_index with mode='raise'; use mode='wrap' or mode='clip'"
                )
            values = np.asarray(index)
            if ((values < 0) | (values >= size)).any():
                raise ValueError(
                    f"ravel_multi_index: invalid entry in coordinates array for an axis of size {size}: {index}"
                )
    return _compute_positions(*indices, dims=sizes, mode=mode, order=order, dtype=wanted or common)


@inline_jit
def _compute_positions(
    *indices: ArrayLike, dims: tuple[int, ...], mode: str, order: str, dtype: np.dtype[Any]
) -> Array:
    shape = check_broadcast([operand_aval(x, 0).shape for x in indices])
    pairs = list(zip(indices, dims, strict=True))
    total: Array | None = None
    for index, size in pairs if order == "C" else reversed(pairs):
        aval = operand_aval(index, 0)
        index = broadcast_operand_to(cast_to(index, aval, dtype), aval.shape, shape)
        index = convert_to(index, dtype, False)
        length = scalar_of(size, dtype)
        if mode == "clip":
            index = selection.clamp(scalar_of(0, dtype), index, scalar_of(size - 1, dtype))
        elif mode == "wrap":
            index = wrap_indices(index, size)
        total = index if total is None else elementwise.add(elementwise.mul(total, length), index)
    assert total is not None
    return total


# Grids


def ix_(*args: ArrayLike) -> tuple[Any, ...]:
    """Return vectors with axes of size 1 added, which index every combination of their elements.

    Args:
        args: vectors of integers.

    Returns:
        A tuple of arrays.

    Raises:
        NotImplementedError: an operand has booleans.
        TypeError: an operand is not an array.
        ValueError: an operand is not a vector.

    Example:
        >>> [x.shape for x in jnp.ix_(jnp.array([0, 1]), jnp.array([2, 3, 4]))]
        [(2, 1), (1, 3)]
    """
    grid = []
    for i, x in enumerate(args):
        aval = operand_aval(x, i)
        if aval.ndim != 1:
            raise ValueError(f"ix_: arguments must be 1-dimensional, got shape {aval.shape}")
        if dtypes.is_boolean(aval.dtype):
            raise NotImplementedError("ix_: boolean arguments are not implemented; use nonzero(mask)[0]")
        x = to_array_operand(x) if aval.size else arange(0)
        grid.append(expand_dims(x, [j for j in range(len(args)) if j != i]))
    return tuple(grid)


def _expand_slice(function: str, span: Any) -> Array:
    """Return the numbers in a slice; an imaginary step is their count, and includes both ends."""
    for part, value in (("start", span.start), ("stop", span.stop), ("step", span.step)):
        if isinstance(value, Tracer):
            raise explain.concretization(value, f"numpy.{function} as the {part} of a slice")
    start, stop, step = (0 if span.start is None else span.start), span.stop, span.step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, 0 if stop is None else stop, 1 if step is None else step)


def _promote_arrays(arrays: list[Any]) -> list[Any]:
    """Return the arrays in their promoted dtype, also under strict promotion."""
    if not arrays:
        return []
    dtype = find_common_dtype(*arrays)
    return [convert_to(x, dtype, all(y.weak_type for y in arrays)) for x in arrays]


class _Grid:
    """Makes the coordinates of a grid from slices, as in ``mgrid[0:3, 0:1:5j]``; an imaginary step is a count."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __repr__(self) -> str:
        return f"<xtrace.numpy.{self.name}>"

    def __getitem__(self, key: Array) -> Any:
        """Return an array of coordinates for each slice: stacked, or if sparse with size 1 along the other axes."""
        if isinstance(key, slice):
            return _expand_slice(self.name, key)
        if not isinstance(key, tuple) or not all(isinstance(x, slice) for x in key):
            raise TypeError(f"{self.name}[...] takes slices such as 0:3 or 0:1:5j, got {abbreviate(key)}")
        ranges = _promote_arrays([_expand_slice(self.name, x) for x in key])
        if self.sparse:
            return list(meshgrid(*ranges, indexing="ij", sparse=True))
        return stack(meshgrid(*ranges, indexing="ij"), 0) if ranges else arange(0)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Joiner:
    """Joins arrays, numbers and slices along an axis, as in ``r_[0:3, 5, x]``.

    A leading string "axis,ndmin,place" sets the axis, the least number of axes, and the position of an array's own
    axes among them (-1: last); "r" makes a row, "c" a column.
    """

    def __init__(self, name: str, axis: int, ndmin: int, place: int) -> None:
        self.name, self.options = name, (axis, ndmin, place)

    def __repr__(self) -> str:
        return f"<xtrace.numpy.{self.name}>"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Array:
        """Return the items joined."""
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, place = self.options
        if items and isinstance(items[0], str):
            axis, ndmin, place = self._parse_directive(items.pop(0))
        if any(isinstance(x, str) for x in items):
            raise ValueError(f"{self.name}: a string directive must be placed at the beginning, got {abbreviate(key)}")
        if not items:
            raise IndexError(f"{self.name}[...]: nothing to join")
        return concatenate([self._place_axes(x, ndmin, place) for x in items], axis)

    def _parse_directive(self, text: str) -> tuple[int, int, int]:
        if text in ("r", "c"):
            axis, _, place = self.options
            return (-1, 2, place) if text == "r" else (axis, 2, 0)
        try:
            given = [int(part) for part in text.split(",")]
        except ValueError:
            given = []
        if not 1 <= len(given) <= 3:
            raise ValueError(
                f"{self.name}: could not understand directive {abbreviate(text)}; give 'axis,ndmin,place', 'r' or 'c'"
            )
        axis, ndmin, place = *given, *self.options[len(given) :]
        return axis, ndmin, place

    def _place_axes(self, item: object, ndmin: int, place: int) -> Array:
        x = _expand_slice(self.name, item) if isinstance(item, slice) else asarray(item)
        missing = max(ndmin, 1) - x.ndim
        if missing <= 0:
            return x
        before = min(max(place + missing + 1 if place < 0 else place, 0), missing) if x.ndim else missing
        return expand_dims(x, [*range(before), *range(before - missing, 0)])


r_ = _Joiner("r_", 0, 1, -1)
c_ = _Joiner("c_", -1, 2, 0)


# Diagonals and triangles


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Return the indices of the diagonal of an array with axes of one length.

    Args:
        n: the length of the axes.
        ndim: the number of axes.

    Returns:
        A tuple of equal vectors of integers.

    Raises:
        TypeError: a number is not an integer.
        ValueError: a number is negative.

    Example:
        >>> jnp.diag_indices(2)
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    size, rank = to_integer("n", n), to_integer("ndim", ndim)
    for name, value in (("n", size), ("ndim", rank)):
        if value < 0:
            raise ValueError(f"{name} argument to diag_indices must be nonnegative, got {value}")
    return (arange(size),) * rank


def diag_indices_from(arr: ArrayLike) -> tuple[Any, ...]:
    """Return the indices of the diagonal of an array.

    Args:
        arr: an array of at least two axes of one length.

    Returns:
        A tuple of equal vectors of integers.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: there are fewer than two axes, or they differ in length.

    Example:
        >>> jnp.diag_indices_from(jnp.ones((2, 2)))
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = operand_aval(arr, 0).shape
    if len(shape) < 2:
        raise ValueError(f"diag_indices_from: the input array must be at least 2-d, got shape {shape}")
    if len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: all dimensions of the input must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def _list_triangle(make: Callable[..., Any], n: int, k: ArrayLike, m: object) -> tuple[Any, Any]:
    rows, offset = to_integer("n", n), to_integer("k", k)
    columns = rows if m is None else to_integer("m", m)
    if rows < 0 or columns < 0:
        raise TypeError(f"{called_function()}: n and m must not be negative, got n={rows}, m={columns}")
    first, second = make(rows, offset, columns)
    return asarray(first), asarray(second)


def tril_indices(n: int, k: int = 0, m: ArrayLike | None = None) -> tuple[Any, Any]:
    """Return the indices of the elements of a matrix on and below a diagonal.

    Args:
        n: the number of rows.
        k: the diagonal, above the main one if positive.
        m: the number of columns; None for `n`.

    Returns:
        A pair of vectors of integers.

    Raises:
        TypeError: a number is not an integer.

    Example:
        >>> jnp.tril_indices(2)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _list_triangle(np.tril_indices, n, k, m)


def triu_indices(n: int, k: ArrayLike = 0, m: ArrayLike | None = None) -> tuple[Any, Any]:
    """Return the indices of the elements of a matrix on and above a diagonal.

    Args:
        n: the number of rows.
        k: the diagonal, above the main one if positive.
        m: the number of columns; None for `n`.

    Returns:
        A pair of vectors of integers.

    Raises:
        TypeError: a number is not an integer.

    Example:
        >>> jnp.triu_indices(2)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _list_triangle(np.triu_indices, n, k, m)


def _get_matrix_shape(arr: ArrayLike) -> tuple[int, ...]:
    shape = operand_aval(arr, 0).shape
    if len(shape) != 2:
        raise ValueError(f"{called_function()}: only 2-D inputs are accepted, got shape {shape}")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Any, Any]:
    """Return the indices of the elements of a given matrix on and below a diagonal.

    Args:
        arr: a matrix.
        k: the diagonal, above the main one if positive.

    Returns:
        A pair of vectors of integers.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `arr` is not a matrix.

    Example:
        >>> jnp.tril_indices_from(jnp.ones((2, 2)))
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _get_matrix_shape(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Any, Any]:
    """Return the indices of the elements of a given matrix on and above a diagonal.

    Args:
        arr: a matrix.
        k: the diagonal, above the main one if positive.

    Returns:
        A pair of vectors of integers.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `arr` is not a matrix.

    Example:
        >>> jnp.triu_indices_from(jnp.ones((2, 2)))
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _get_matrix_shape(arr)
    return triu_indices(rows, k, columns)


def mask_indices(
    n: ArrayLike, mask_func: Callable[[Any, Any], Any], k: int = 0, *, size: int | None = None
) -> tuple[Any, ...]:
    """Return the indices of the elements of a square matrix that a function keeps.

    Args:
        n: the number of rows and columns.
        mask_func: a function of a matrix and `k`, such as `triu`; it keeps the nonzero elements of its result.
        k: its second argument.
        size: the number of indices; required under `jit`.

    Returns:
        A pair of vectors of integers.

    Raises:
        TypeError: `n` is not an integer, or `mask_func` is not a function.

    Example:
        >>> jnp.mask_indices(2, jnp.triu)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    side = to_integer("n", n)
    return nonzero(mask_func(ones((side, side)), k), size=size)
