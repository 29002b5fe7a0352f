"""NumPy's functions that replace some elements of an array; they return a new one, since arrays are immutable."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import truth
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.arrays.index_vectors import GatherScatterMode
from xtrace._src.ops.elementwise import elementwise, selection
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.indexing.indexed_updates import find_common_dtype
from xtrace.numpy.indexing.indexing import getitem
from xtrace.numpy.manipulation.rearrangement import resize
from xtrace.numpy.manipulation.shapes import ravel
from xtrace.numpy.operands import broadcast_operand_to, scalar_of


def _check_inplace(inplace: bool, error: type[Exception] = ValueError) -> None:
    if inplace:
        raise error(
            f"xtrace.numpy.{called_function()} cannot modify arrays in-place, because arrays are "
            "immutable. Pass inplace=False to instead return an updated array."
        )


def place(arr: ArrayLike, mask: ArrayLike, vals: Any, *, inplace: bool = True) -> Array:
    """Return an array with the elements under a mask replaced by values in turn.

    Args:
        arr: an array.
        mask: an array of the size of `arr`; its nonzero elements mark the elements to replace.
        vals: an array of the values, which repeat as needed.
        inplace: must be False, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `inplace` is not False, the mask has another size, or there is no value.

    Example:
        >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([1, 0, 1]), 9, inplace=False)
        Array([9, 2, 9], dtype=int32)
    """
    shapes = [operand_aval(x, i) for i, x in enumerate((arr, mask, vals))]
    _check_inplace(inplace)
    if shapes[0].size != shapes[1].size:
        raise ValueError(
            f"place: arr and mask must be the same size, got shapes {shapes[0].shape} and {shapes[1].shape}"
        )
    if not shapes[2].size:
        raise ValueError("place: Cannot place values from an empty array")
    if not shapes[0].size:
        return to_array_operand(arr)
    arr, mask, vals = [to_array_operand(x, i) for i, x in enumerate((arr, mask, vals))]
    find_common_dtype(arr, vals)
    return _place(arr, mask, vals)


@inline_jit
def _place(arr: Array, mask: Array, vals: Array) -> Array:
    mask = reshape(truth(mask), arr.shape)
    vals = convert_to(vals, arr.dtype, arr.aval.weak_type)
    if vals.size == 1:
        return select_n(mask, arr, broadcast_operand_to(reshape(vals, ()), (), arr.shape))
    flat = reshape(mask, (arr.size,))
    # The n-th true element takes the n-th value.
    number = elementwise.sub(cumsum(convert_to(flat, dtypes.int32), 0), scalar_of(1, dtypes.int32))
    number = elementwise.rem(number, scalar_of(vals.size, dtypes.int32))
    values = getitem(ravel(vals), number)
    return select_n(mask, arr, reshape(values, arr.shape))


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """Return an array with the elements at positions of the flattened array replaced by values.

    Args:
        a: an array.
        ind: the positions, an array of integers.
        v: an array of the values, which repeat as needed.
        mode: the treatment of positions out of bounds: None or ``"clip"`` takes the nearest one, ``"wrap"`` the
            position modulo the size; ``"clip"`` also moves negative positions.
        inplace: must be False, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `mode` is ``"raise"``.
        TypeError: an operand is not an array, or `ind` is not integer.
        ValueError: `inplace` is not False, or `mode` has another value.

    Example:
        >>> jnp.put(jnp.array([1, 2, 3]), 1, 9, inplace=False)
        Array([1, 9, 3], dtype=int32)
    """
    _check_inplace(inplace)
    a, ind, v = [to_array_operand(x, i) for i, x in enumerate((a, ind, v))]
    if not dtypes.is_integer(ind.dtype):
        raise TypeError(f"put: ind must have an integer type, got {ind.dtype.name}")
    if not (a.size and ind.size and v.size):
        return a
    if mode == "raise":
        raise NotImplementedError(
            "put: mode 'raise' is not supported, since values are unknown while tracing; use 'wrap' or 'clip'"
        )
    if mode not in (None, "wrap", "clip"):
        raise ValueError(f"put: mode should be one of 'wrap' or 'clip'; got mode={abbreviate(mode)}")
    find_common_dtype(a, v)
    return _put(a, ind, v, mode=mode)


@inline_jit
def _put(a: Array, ind: Array, v: Array, *, mode: str | None) -> Array:
    ind = convert_to(ravel(ind), dtypes.int32)
    size, zero = scalar_of(a.size, dtypes.int32), scalar_of(0, dtypes.int32)
    if mode == "wrap":
        ind = elementwise.rem(ind, size)
    if mode != "clip":
        ind = select_n(lt(ind, zero), ind, elementwise.add(ind, size))
    ind = selection.clamp(zero, ind, scalar_of(a.size - 1, dtypes.int32))
    values = convert_to(v if v.size == 1 else resize(v, (ind.size,)), a.dtype)
    values = reshape(values, ()) if values.size == 1 else values
    return reshape(ravel(a).at[ind].set(values, mode="drop"), a.shape)


def put_along_axis(
    arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = True, *,
    mode: object = None,
) -> Array:
    """Return an array with the elements at indices along an axis replaced by values.

    Args:
        arr: an array.
        indices: an array of integers of the rank of `arr`; the other axes broadcast.
        values: an array or a scalar that broadcasts to the shape of `indices`.
        axis: the axis; None for the flattened array.
        inplace: must be False, since arrays are immutable.
        mode: the treatment of indices out of bounds, as in ``x.at[...].set``.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `inplace` is not False, or the shapes do not fit.

    Example:
        >>> jnp.put_along_axis(jnp.array([[1, 2]]), jnp.array([[1]]), 9, axis=1, inplace=False)
        Array([[1, 9]], dtype=int32)
    """
    arr, indices, values = [to_array_operand(x, i) for i, x in enumerate((arr, indices, values))]
    _check_inplace(inplace)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"put_along_axis: indices must have an integer type, got {indices.dtype.name}")
    shape = arr.shape
    if axis is None:
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim. Got arr.ndim={arr.ndim} and "
            f"indices.ndim={indices.ndim}."
        )
    # Promotion is checked as for a strongly typed array.
    common_dtype((convert_to(arr, arr.dtype), values))
    along = canonical_axis(axis, arr.ndim)
    if values.ndim > indices.ndim or any(
        n not in (1, m) for n, m in zip(values.shape[::-1], indices.shape[::-1], strict=False)
    ):
        raise ValueError(
            f"put_along_axis argument 'values' must be broadcastable to 'indices'. Got values.shape={values.shape} and "
            f"indices.shape={indices.shape}."
        )
    mode_of_scatter = None if mode is None else GatherScatterMode.from_any(mode)
    return reshape(_put_along(arr, indices, values, axis=along, mode=mode_of_scatter), shape)


@inline_jit
def _put_along(arr: Array, indices: Array, values: Array, *, axis: int, mode: object) -> Array:
    index = tuple([
        indices if i == axis else reshape(arange(n), [n if j == i else 1 for j in range(arr.ndim)])
        for i, n in enumerate(arr.shape)
    ])
    return arr.at[index].set(values, mode=mode)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """Return an array with its diagonal replaced by values.

    Args:
        a: a matrix, or an array of more axes of one length.
        val: an array or a scalar of values, which is flattened and repeats as needed.
        wrap: not supported; leave it at False.
        inplace: must be False, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `inplace` is not False, or `wrap` is True.
        ValueError: `a` has fewer than two axes, the axes differ in length, or there is no value.

    Example:
        >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
        Array([[5., 0.],
               [0., 5.]], dtype=float32)
    """
    a, val = to_array_operand(a), to_array_operand(val, 1)
    _check_inplace(inplace, NotImplementedError)
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not implemented, must use wrap=False")
    if a.ndim < 2:
        raise ValueError(f"fill_diagonal: the array must be at least 2-d, got shape {a.shape}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"fill_diagonal: all dimensions of input must be of equal length, got shape {a.shape}")
    if not val.size:
        raise ValueError("fill_diagonal: val has no element")
    find_common_dtype(a, val)
    return _set_diagonal(a, val)


@inline_jit
def _set_diagonal(a: Array, val: Array) -> Array:
    count = min(a.shape)
    place = arange(count)
    value = reshape(val, ()) if val.size == 1 else resize(val, (count,))
    return a.at[(place,) * a.ndim].set(convert_to(value, a.dtype), unique_indices=True)
