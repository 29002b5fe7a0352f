"""Slices, windows, reversals and concatenations of BCOO arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim
from xtrace._src.ops.arrays.index_vectors import GatherDimensionNumbers, GatherScatterMode
from xtrace._src.ops.arrays.slicing import slice as slice_array
from xtrace._src.sparse.bcoo_primitives import broadcast_batch
from xtrace._src.sparse.layouts import count_positions
from xtrace.experimental.sparse.conversions import bcoo_sum_duplicates, bcoo_transpose
from xtrace.experimental.sparse.coordinate_storage import CoordinateStorage, check_coordinates, get_batch_shape
from xtrace.experimental.sparse.layout_changes import bcoo_squeeze, bcoo_update_layout
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.elementwise.ufuncs import clip, maximum
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.padding import pad
from xtrace.numpy.operands import axes_of

__all__ = ["bcoo_concatenate", "bcoo_dynamic_slice", "bcoo_gather", "bcoo_rev", "bcoo_slice"]


def _cut_sparse(
    mat: CoordinateStorage, starts: Sequence[Any], sizes: Sequence[int], strides: Sequence[int]
) -> Any:
    """Slice the sparse axes of an array after its other axes.

    starts: integers or integer scalars. sizes: the sizes of the result.
    """
    layout = mat.layout()
    axes = list(layout.sparse_axes)
    whole = all(
        isinstance(s, int) and s == 0 and n == mat.shape[i] and step == 1
        for i, s, n, step in zip(axes, starts, sizes, strides, strict=True)
    )
    if whole:
        return mat
    columns, kept = [], asarray(True)
    for axis, (start, size, stride) in enumerate(zip(starts, sizes, strides, strict=True)):
        column = mat.indices[..., axis] - asarray(start, dtype=mat.indices.dtype)
        kept = kept & (column >= 0) & (column < (size - 1) * stride + 1)
        if stride != 1:
            kept = kept & (column % stride == 0)
            column = column // stride
        columns.append(column)
    kept = broadcast_to(kept, mat.indices.shape[:-1])
    dtype = mat.indices.dtype
    columns = [where(kept, x, size).astype(dtype)[..., None] for x, size in zip(columns, sizes, strict=True)]
    shape = list(mat.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    data = where(kept.reshape(*kept.shape, *[1] * layout.n_dense), mat.data, zeros((), mat.data.dtype))
    part = mat.remake(data, concatenate(columns, -1) if columns else mat.indices, shape)
    enough = count_positions(shape, layout)
    return part if part.nse <= enough else forget_order(bcoo_sum_duplicates(part, enough))


def forget_order(mat: Any) -> Any:
    """Return an array without the promises that its indices are sorted and unique."""
    return mat.remake(*mat._bufs, mat.shape)


def bcoo_slice(
    mat: Any, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """Cut a slice out of a BCOO array.

    Args:
        mat: a BCOO array.
        start_indices: the first index along each axis.
        limit_indices: the index after the last one along each axis.
        strides: the stride along each axis; None for 1.

    Returns:
        A BCOO array.

    Raises:
        TypeError: `mat` is not a BCOO array.
        ValueError: the indices do not fit the shape, or a stride is not positive.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.arange(6.0).reshape(2, 3))
        >>> sparse.bcoo_slice(mat, start_indices=(0, 1), limit_indices=(2, 3)).todense()
        Array([[1., 2.],
               [4., 5.]], dtype=float32)
    """
    mat = check_coordinates(mat, "mat")
    layout = mat.layout()
    starts, limits = (
        integer_tuple(key, value)
        for key, value in (("start_indices", start_indices), ("limit_indices", limit_indices))
    )
    steps = (1,) * mat.ndim if strides is None else integer_tuple("strides", strides)
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: an array of shape {mat.shape} needs {mat.ndim} start_indices, limit_indices and strides; got "
            f"{starts}, {limits} and {steps}"
        )
    for start, limit, step, size in zip(starts, limits, steps, mat.shape, strict=True):
        if not 0 <= start <= limit <= size or step < 1:
            raise ValueError(
                f"bcoo_slice: start_indices {starts}, limit_indices {limits} and strides {steps} do not fit an array "
                f"of shape {mat.shape}; 0 <= start <= limit <= size and stride >= 1 must hold along each axis"
            )
    sizes = [-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)]
    first_dense = layout.n_batch + layout.n_sparse

    def cut(buffer: Array, axes: Sequence[int | None]) -> Array:
        """Slice a buffer; `axes` maps its axes to axes of the array, or to None for whole axes."""
        if all(i is None for i in axes):
            return buffer
        begin = [0 if i is None else starts[i] for i in axes]
        end = [n if i is None else limits[i] for n, i in zip(buffer.shape, axes, strict=True)]
        return slice_array(buffer, begin, end, [1 if i is None else steps[i] for i in axes])

    batch = {x: [i if n == mat.shape[i] else None for i, n in enumerate(b.shape[: layout.n_batch])]
             for x, b in (("data", mat.data), ("indices", mat.indices))}
    data = cut(mat.data, [*batch["data"], None, *range(first_dense, mat.ndim)])
    indices = cut(mat.indices, [*batch["indices"], None, None])
    sparse = list(layout.sparse_axes)
    shape = [mat.shape[i] if i in sparse else size for i, size in enumerate(sizes)]
    part = mat.remake(data, indices, shape)
    return _cut_sparse(
        part, [starts[i] for i in sparse], [sizes[i] for i in sparse], [steps[i] for i in sparse]
    )


def bcoo_dynamic_slice(mat: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """Cut a slice out of a BCOO array at a position, which may be traced.

    Args:
        mat: a BCOO array.
        start_indices: an integer scalar for each axis; the slice is moved inside the bounds.
        slice_sizes: the size along each axis.

    Returns:
        A BCOO array of shape `slice_sizes`.

    Raises:
        TypeError: `mat` is not a BCOO array, or an index is not an integer.
        ValueError: the sizes do not fit the shape, or an index is not a scalar.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.arange(6.0).reshape(2, 3))
        >>> sparse.bcoo_dynamic_slice(mat, (jnp.array(1), 0), (1, 2)).todense()
        Array([[3., 4.]], dtype=float32)
    """
    mat = check_coordinates(mat, "mat")
    layout = mat.layout()
    sizes = integer_tuple("slice_sizes", slice_sizes)
    starts = [asarray(x) for x in start_indices]
    if len(starts) != mat.ndim or len(sizes) != mat.ndim or any(x.ndim for x in starts):
        raise ValueError(
            f"bcoo_dynamic_slice: an array of shape {mat.shape} needs {mat.ndim} scalars as start_indices and as many "
            f"slice_sizes; got {abbreviate(start_indices)} and {sizes}"
        )
    if any(not 0 <= size <= whole for size, whole in zip(sizes, mat.shape, strict=True)):
        raise ValueError(f"bcoo_dynamic_slice: slice_sizes {sizes} do not fit an array of shape {mat.shape}")
    starts = [
        clip(where(x < 0, x + whole, x), 0, whole - size)
        for x, whole, size in zip(starts, mat.shape, sizes, strict=True)
    ]
    data, indices = mat.data, mat.indices
    for axis in range(layout.n_batch):
        data, indices = [
            dynamic_slice_in_dim(x, starts[axis], sizes[axis], axis) if x.shape[axis] == mat.shape[axis] else x
            for x in (data, indices)
        ]
    for axis in range(layout.n_batch + layout.n_sparse, mat.ndim):
        data = dynamic_slice_in_dim(data, starts[axis], sizes[axis], axis - layout.n_sparse + 1)
    sparse = list(layout.sparse_axes)
    shape = [mat.shape[i] if i in sparse else size for i, size in enumerate(sizes)]
    return _cut_sparse(
        mat.remake(data, indices, shape), [starts[i] for i in sparse], [sizes[i] for i in sparse],
        [1] * len(sparse),
    )


def bcoo_rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Reverse a BCOO array along axes.

    Args:
        operand: a BCOO array.
        dimensions: the axes.

    Returns:
        A BCOO array of the same shape.

    Raises:
        TypeError: `operand` is not a BCOO array.
        ValueError: an axis is out of bounds or given twice.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.arange(3.0)), (0,)).todense()
        Array([2., 1., 0.], dtype=float32)
    """
    mat = check_coordinates(operand, "operand")
    layout = mat.layout()
    axes = axes_of(tuple(dimensions), mat.ndim)
    batch, sparse, dense = layout.split_axes(axes)
    data, indices = mat.data, mat.indices
    data = data[tuple([slice(None, None, -1 if i in (*batch, *dense) else 1) for i in range(data.ndim)])]
    indices = indices[tuple([slice(None, None, -1 if i in batch else 1) for i in range(indices.ndim)])]
    if sparse:
        sizes = asarray([mat.shape[i] for i in layout.sparse_axes], dtype=indices.dtype)
        reversed_axes = asarray([i in sparse for i in range(layout.n_sparse)])
        indices = where(reversed_axes & (indices < sizes), sizes - 1 - indices, indices)
    return mat.remake(data, indices, None, mat.indices_sorted and not sparse, mat.unique_indices)


def bcoo_concatenate(operands: Sequence[Any], *, dimension: int) -> Any:
    """Concatenate BCOO arrays along a batch or a sparse axis.

    Args:
        operands: BCOO arrays with the same batch and dense axes, and the same sizes along the other axes.
        dimension: the axis.

    Returns:
        A BCOO array.

    Raises:
        NotImplementedError: `dimension` is a dense axis.
        TypeError: an operand is not a BCOO array.
        ValueError: there are no operands, their layouts or shapes differ, or `dimension` is out of bounds.

    Example:
        >>> from xtrace.experimental import sparse
        >>> row = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0]]))
        >>> sparse.bcoo_concatenate([row, row], dimension=0)
        BCOO(float32[2, 2], nse=2)
    """
    operands = [check_coordinates(x, f"operand {i}") for i, x in enumerate(operands)]
    if not operands:
        raise ValueError("bcoo_concatenate: there are no operands")
    first = operands[0]
    axis = canonical_axis(dimension, first.ndim)
    layouts = [x.layout()[:3] for x in operands]
    outer = [(*x.shape[:axis], *x.shape[axis + 1 :]) for x in operands]
    if len(set(layouts)) > 1 or len(set(outer)) > 1:
        raise ValueError(
            f"bcoo_concatenate: the operands {operands} must have the same batch and dense axes, and the same sizes "
            f"but along axis {axis}"
        )
    n_batch, n_sparse, _ = layouts[0]
    if axis >= n_batch + n_sparse:
        raise NotImplementedError(
            f"bcoo_concatenate: axis {axis} is a dense axis; make it sparse with update_layout, or concatenate dense "
            "arrays"
        )
    shape = list(first.shape)
    shape[axis] = sum([x.shape[axis] for x in operands])
    sizes = [first.shape[i] if i != axis else shape[axis] for i in range(n_batch, n_batch + n_sparse)]
    buffers = []
    offset = 0
    for x in operands:
        own = [x.shape[i] for i in range(n_batch, n_batch + n_sparse)]
        indices = x.indices
        if axis >= n_batch:
            bounds, ends = (asarray(n, dtype=indices.dtype) for n in (own, sizes))
            moved = indices + asarray([offset if i == axis else 0 for i in range(n_batch, n_batch + n_sparse)],
                                      dtype=indices.dtype)
            outside = (indices >= bounds).any(-1, keepdims=True)
            indices = where(outside, ends, moved)
            offset += x.shape[axis]
        buffers.append((broadcast_batch(x.data, get_batch_shape(x)), broadcast_batch(indices, get_batch_shape(x))))
    if axis >= n_batch:
        joined = [concatenate(parts, n_batch) for parts in zip(*buffers, strict=True)]
        return first.remake(*joined, shape)
    longest = max([x.nse for x in operands])
    joined = [concatenate([_extend_buffer(x, n_batch, longest, fill) for x in parts], axis)
              for parts, fill in zip(zip(*buffers, strict=True), (None, sizes), strict=True)]
    return first.remake(*joined, shape)


def _extend_buffer(buffer: Array, axis: int, length: int, fill: Sequence[int] | None) -> Array:
    """Extend a buffer to `length` stored elements with zeros, or with the indices `fill`."""
    missing = length - buffer.shape[axis]
    if not missing:
        return buffer
    if fill is None:
        return pad(buffer, [(0, missing if i == axis else 0) for i in range(buffer.ndim)])
    row = asarray(list(fill), dtype=buffer.dtype).reshape(len(fill))
    return concatenate([buffer, broadcast_to(row, (*buffer.shape[:axis], missing, len(fill)))], axis)


def bcoo_gather(
    operand: Any, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None,
) -> Any:
    """Gather windows of a BCOO array.

    Args:
        operand: a BCOO array.
        start_indices: an array of integers whose last axis holds index vectors.
        dimension_numbers: a `GatherDimensionNumbers` without batching axes.
        slice_sizes: the sizes of the windows along each axis of `operand`.
        unique_indices, indices_are_sorted: promises about the index vectors; without effect.
        mode: None, ``"clip"`` or ``"promise_in_bounds"``; windows are moved inside the bounds.
        fill_value: must be None.

    Returns:
        A BCOO array. The axes of the index vectors are batch axes if they come first, and sparse axes otherwise.

    Raises:
        NotImplementedError: another mode, a fill value, or batching axes are given.
        TypeError: `operand` is not a BCOO array.
        ValueError: the shapes and `dimension_numbers` do not agree.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.arange(6.0).reshape(3, 2))
        >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
        >>> sparse.bcoo_gather(mat, jnp.array([[2], [0]]), numbers, (1, 2)).todense()
        Array([[4., 5.],
               [0., 1.]], dtype=float32)
    """
    mat, vectors = check_coordinates(operand, "operand"), asarray(start_indices)
    mat.layout()
    out_of_bounds = None if mode is None else GatherScatterMode.from_any(mode)
    if out_of_bounds is GatherScatterMode.FILL_OR_DROP or fill_value is not None:
        raise NotImplementedError(
            "bcoo_gather: windows outside of a sparse array cannot be filled; pass mode='clip' or 'promise_in_bounds', "
            "without a fill_value"
        )
    numbers = GatherDimensionNumbers(*[tuple(x) for x in dimension_numbers])
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: batching axes are not supported; map the function with vmap")
    sizes = integer_tuple("slice_sizes", slice_sizes)
    lead = vectors.shape[:-1]
    windows = [i for i in range(mat.ndim) if i not in numbers.collapsed_slice_dims]
    if (
        vectors.ndim < 1 or vectors.shape[-1] != len(numbers.start_index_map) or len(sizes) != mat.ndim
        or len(numbers.offset_dims) != len(windows) or any(sizes[i] != 1 for i in numbers.collapsed_slice_dims)
    ):
        raise ValueError(
            f"bcoo_gather: indices of shape {vectors.shape}, slice_sizes {sizes} and {numbers} do not fit an operand "
            f"of shape {mat.shape}"
        )

    def window(vector: Array) -> Any:
        starts: list[Any] = [0] * mat.ndim
        for place, axis in enumerate(numbers.start_index_map):
            starts[axis] = maximum(vector[place], 0)
        return bcoo_squeeze(bcoo_dynamic_slice(mat, starts, sizes), dimensions=numbers.collapsed_slice_dims)

    gathered = window
    for _ in lead:
        gathered = vmap(gathered)
    part = gathered(vectors)
    rank, count = part.ndim, len(lead)
    order: list[Any] = [None] * rank
    for place, axis in enumerate(numbers.offset_dims):
        order[axis] = count + place
    rest = iter(range(count))
    order = [next(rest) if axis is None else axis for axis in order]
    if order == list(range(rank)):
        return forget_order(part)
    moved = {i for i, axis in enumerate(order) if axis != i}
    layout = part.layout()
    n_batch = min(layout.n_batch, *moved)
    n_dense = min(layout.n_dense, rank - 1 - max(moved))
    part = bcoo_update_layout(part, n_batch=n_batch, n_dense=n_dense)
    return forget_order(bcoo_transpose(part, permutation=order))
