"""Rows of indices of stored elements: sorting, duplicates, gathers and scatters.

A mask is a vector of booleans, one for each row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, reduce_sum, reshape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import full, iota
from xtrace._src.ops.arrays.gather_scatter import gather, scatter, scatter_add
from xtrace._src.ops.arrays.index_vectors import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.arrays.slicing import index_in_dim, slice_in_dim
from xtrace._src.ops.arrays.sorting import sort
from xtrace._src.ops.elementwise.comparisons import ge, ne
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.elementwise import div, rem
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace._src.ops.reductions.reductions import reduce_or

# A gather reads zeros out of bounds; a scatter drops updates out of bounds.
_MODE = GatherScatterMode.FILL_OR_DROP


def gather_axes(operand: Array, rows: Array, axes: Sequence[int]) -> Array:
    """Return `operand` at the indices `rows` of its `axes`, as [len(rows), *other axes]; zero out of bounds."""
    others = [i for i in range(operand.ndim) if i not in axes]
    if not axes:
        return broadcast_in_dim(operand, (rows.shape[0], *operand.shape), tuple(range(1, operand.ndim + 1)))
    numbers = GatherDimensionNumbers(tuple(range(1, len(others) + 1)), tuple(sorted(axes)), tuple(axes))
    sizes = [1 if i in axes else n for i, n in enumerate(operand.shape)]
    return gather(operand, _wrap(rows, [operand.shape[i] for i in axes]), numbers, sizes, mode=_MODE, fill_value=0)


def take_rows(x: Array, positions: Array) -> Array:
    """Return the entries of `x` at `positions` along its first axis; zero out of bounds."""
    return gather_axes(x, expand_dims(positions, (1,)), (0,))


def add_at_rows(updates: Array, rows: Array, sizes: Sequence[int]) -> Array:
    """Return the sums of `updates`, of shape [len(rows), *rest], at their rows of indices, as [*sizes, *rest]."""
    rest, count = updates.shape[1:], len(sizes)
    if not count:
        return reduce_sum(updates, (0,))
    numbers = ScatterDimensionNumbers(tuple(range(1, len(rest) + 1)), tuple(range(count)), tuple(range(count)))
    if dtypes.is_boolean(updates.dtype):
        return add_at_rows(convert_to(updates, dtypes.int32), rows, sizes) != 0
    start = full((*sizes, *rest), 0, updates.dtype)
    return scatter_add(start, _wrap(rows, sizes), updates, numbers, mode=_MODE)


def _wrap(rows: Array, sizes: Sequence[int]) -> Array:
    """Return rows without negative indices, which count from the end."""
    if not dtypes.is_signed(rows.dtype) or not rows.size:
        return rows
    return select_n(rows < 0, rows, rows + _make_row(sizes, rows))


def _make_row(values: Sequence[int], like: Array) -> Array:
    """Return integers as an array of one row with the dtype of `like`."""
    columns = [full((1, 1), v, like.dtype) for v in values]
    return concatenate(columns, 1) if columns else full((1, 0), 0, like.dtype)


def outside(rows: Array, sizes: Sequence[int]) -> Array:
    """Return a mask of the rows with an index out of bounds, which have no stored element."""
    return reduce_or(ge(rows, broadcast_in_dim(_make_row(sizes, rows), rows.shape, (0, 1))), (1,))


def put_outside(rows: Array, mask: Array, sizes: Sequence[int]) -> Array:
    """Return rows with the indices `sizes`, out of bounds, where `mask` is True."""
    wide = broadcast_in_dim(mask, rows.shape, (0,))
    return select_n(wide, rows, broadcast_in_dim(_make_row(sizes, rows), rows.shape, (0, 1)))


def find_true(mask: Array, size: int) -> Array:
    """Return the first `size` positions where `mask` is True; its length for missing positions."""
    length = mask.shape[0]
    slot = cumsum(convert_to(mask, dtypes.int32), 0) - 1
    slot = select_n(mask, full((length,), size, dtypes.int32), slot)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return scatter(
        full((size,), length, dtypes.int32), expand_dims(slot, (1,)), iota(dtypes.int32, length), numbers, mode=_MODE
    )


def unravel(positions: Array, sizes: Sequence[int], dtype: DTypeLike) -> Array:
    """Return positions in a flat array as rows of indices; `sizes` for a position after the last element."""
    columns = []
    for axis, size in enumerate(sizes):
        later = constant_like(positions, max(math.prod(sizes[axis + 1 :]), 1))
        columns.append(expand_dims(rem(div(positions, later), constant_like(positions, max(size, 1))), (1,)))
    if not columns:
        return full((positions.shape[0], 0), 0, dtype)
    rows = concatenate(columns, 1)
    return convert_to(put_outside(rows, positions >= math.prod(sizes), sizes), dtype)


def ravel(rows: Array, sizes: Sequence[int]) -> Array:
    """Return rows of indices as positions in the flat array; its size for rows out of bounds."""
    position = full((rows.shape[0],), 0, rows.dtype)
    for axis, size in enumerate(sizes):
        position = position * size + index_in_dim(rows, axis, 1, keepdims=False)
    return select_n(outside(rows, sizes), position, full(position.shape, math.prod(sizes), position.dtype))


def argsort_rows(rows: Array) -> Array:
    """Return the stable lexicographic order of rows."""
    count, columns = rows.shape
    order = iota(dtypes.int32, count)
    if not columns:
        return order
    keys = [index_in_dim(rows, i, 1, keepdims=False) for i in range(columns)]
    sorted_order: Array = sort((*keys, order), dimension=0, num_keys=columns)[-1]
    return sorted_order


def _mark_group_starts(rows: Array) -> Array:
    """Return a mask of the sorted rows that differ from the previous row."""
    count = rows.shape[0]
    if not count:
        return full((0,), False, dtypes.bool_)
    changes = reduce_or(ne(slice_in_dim(rows, 1, count), slice_in_dim(rows, 0, count - 1)), (1,))
    return concatenate([full((1,), True, dtypes.bool_), changes], 0)


def group_rows(rows: Array, sizes: Sequence[int]) -> tuple[Array, Array, Array]:
    """Return the sorted rows, with rows out of bounds last, their order, and the number of each row's group."""
    rows = _wrap(rows, sizes)
    rows = put_outside(rows, outside(rows, sizes), sizes)
    order = argsort_rows(rows)
    rows = take_rows(rows, order)
    return rows, order, cumsum(convert_to(_mark_group_starts(rows), dtypes.int32), 0) - 1


def take_group_rows(rows: Array, groups: Array, count: int, sizes: Sequence[int]) -> Array:
    """Return the row of each of the first `count` groups; `sizes` for missing groups."""
    start = broadcast_in_dim(_make_row(sizes, rows), (count, len(sizes)), (0, 1))
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))
    return scatter(start, expand_dims(groups, (1,)), rows, numbers, mode=_MODE)


def mark_first_occurrences(rows: Array) -> Array:
    """Return a mask of the rows that differ from all earlier rows."""
    order = argsort_rows(rows)
    starts = _mark_group_starts(take_rows(rows, order))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return scatter(full(starts.shape, False, dtypes.bool_), expand_dims(order, (1,)), starts, numbers, mode=_MODE)


def mask_rows(data: Array, mask: Array) -> Array:
    """Return `data` with zeros in the rows where `mask` is False."""
    wide = broadcast_in_dim(mask, data.shape, (0,))
    return select_n(wide, full(data.shape, 0, data.dtype), data)


def mark_nonzero_rows(values: Array) -> Array:
    """Return a mask of the rows with a nonzero element."""
    return reduce_or(values != 0, tuple(range(1, values.ndim)))


def flatten_sparse(x: Array, n_sparse: int) -> Array:
    """Return `x` with its first `n_sparse` axes as one axis."""
    return reshape(x, (math.prod(x.shape[:n_sparse]), *x.shape[n_sparse:]))


def select_columns(indices: Array, columns: Sequence[int]) -> Array:
    """Return the given entries of the last axis, the indices of an element."""
    last = indices.ndim - 1
    if tuple(columns) == tuple(range(indices.shape[-1])):
        return indices
    if not columns:
        return full((*indices.shape[:-1], 0), 0, indices.dtype)
    return concatenate([slice_in_dim(indices, i, i + 1, axis=last) for i in columns], last)
