"""Primitives on the buffers of BCOO arrays: conversion, transposition, sorting, duplicates."""

from __future__ import annotations

from collections.abc import Sequence

from xtrace._src.algebra.vector_space import broadcast_in_dim, transpose
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.sparse import index_rows
from xtrace._src.sparse.batch_axes import common_batch, map_over_batch
from xtrace._src.sparse.formula_primitives import formula_primitive
from xtrace._src.sparse.layouts import SparseInfo, coordinate_layout

__all__ = [
    "bcoo_extract_p", "bcoo_fromdense_p", "bcoo_sort_indices_p", "bcoo_sum_duplicates_p", "bcoo_todense_p",
    "bcoo_transpose_p",
]


def _todense(data: Array, indices: Array, *, spinfo: SparseInfo) -> Array:
    """Return the dense array of the buffers of a BCOO array."""
    layout = coordinate_layout(data, indices, spinfo.shape, function="bcoo_todense")
    sizes = [spinfo.shape[i] for i in layout.sparse_axes]
    return map_over_batch(
        lambda data, rows: index_rows.add_at_rows(data, rows, sizes), spinfo.shape[: layout.n_batch], data, indices
    )


bcoo_todense_p = formula_primitive("bcoo_todense", ("spinfo",), _todense)


def _fromdense(mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DTypeLike) -> tuple[Array, Array]:
    """Return the buffers of a BCOO array of the first `nse` nonzeros of each batch."""
    sizes = mat.shape[n_batch : mat.ndim - n_dense]

    def fill(mat: Array) -> tuple[Array, Array]:
        values = index_rows.flatten_sparse(mat, len(sizes))
        positions = index_rows.find_true(index_rows.mark_nonzero_rows(values), nse)
        return index_rows.take_rows(values, positions), index_rows.unravel(positions, sizes, index_dtype)

    return map_over_batch(fill, mat.shape[:n_batch], mat)


bcoo_fromdense_p = formula_primitive(
    "bcoo_fromdense", ("nse", "n_batch", "n_dense", "index_dtype"), _fromdense, multiple_results=True
)


def _extract(indices: Array, arr: Array, *, assume_unique: bool) -> Array:
    """Return the elements of a dense array at the indices of a BCOO array."""
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]

    def take(rows: Array, arr: Array) -> Array:
        data = index_rows.gather_axes(arr, rows, range(n_sparse))
        return data if assume_unique else index_rows.mask_rows(data, index_rows.mark_first_occurrences(rows))

    return map_over_batch(take, arr.shape[:n_batch], indices, arr)


bcoo_extract_p = formula_primitive("bcoo_extract", ("assume_unique",), _extract)


def split_permutation(n_batch: int, n_sparse: int, permutation: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the permutations of batch, sparse and dense axes; NotImplementedError if `permutation` mixes kinds."""
    bounds = [0, n_batch, n_batch + n_sparse, len(permutation)]
    parts = []
    for kind, start, end in zip(("batch", "sparse", "dense"), bounds[:-1], bounds[1:], strict=True):
        part = tuple(permutation[start:end])
        if sorted(part) != list(range(start, end)):
            raise NotImplementedError(
                f"bcoo_transpose: the permutation {tuple(permutation)} mixes {kind} axes, {start} to {end - 1}, "
                "with others; change the kinds of axes with bcoo_update_layout first"
            )
        parts.append(tuple([i - start for i in part]))
    return parts


def _transpose(data: Array, indices: Array, *, permutation: Sequence[int], spinfo: SparseInfo) -> tuple[Array, Array]:
    """Return the buffers of a BCOO array with its axes permuted."""
    n_batch, n_sparse, _, _ = coordinate_layout(data, indices, spinfo.shape, function="bcoo_transpose")
    batch, sparse, dense = split_permutation(n_batch, n_sparse, permutation)
    data = transpose(data, (*batch, n_batch, *[n_batch + 1 + i for i in dense]))
    indices = transpose(indices, (*batch, n_batch, n_batch + 1))
    return data, index_rows.select_columns(indices, sparse)


bcoo_transpose_p = formula_primitive(
    "bcoo_transpose", ("permutation", "spinfo"), _transpose, multiple_results=True
)


def _take_in_order(data: Array, order: Array) -> Array:
    """Return the stored elements in `order`; both may have batch axes of size 1."""
    n_batch = order.ndim - 1
    batch = common_batch(n_batch, data, order)
    return map_over_batch(index_rows.take_rows, batch, data, order)


def _sort_indices(data: Array, indices: Array, *, spinfo: SparseInfo) -> tuple[Array, Array]:
    """Return the buffers of a BCOO array with its indices in rising order."""
    n_batch = coordinate_layout(data, indices, spinfo.shape, function="bcoo_sort_indices").n_batch

    def sort(rows: Array) -> tuple[Array, Array]:
        order = index_rows.argsort_rows(rows)
        return index_rows.take_rows(rows, order), order

    indices, order = map_over_batch(sort, indices.shape[:n_batch], indices)
    return _take_in_order(data, order), indices


bcoo_sort_indices_p = formula_primitive("bcoo_sort_indices", ("spinfo",), _sort_indices, multiple_results=True)


def _sum_duplicates(data: Array, indices: Array, *, spinfo: SparseInfo, nse: int) -> tuple[Array, Array]:
    """Return the buffers of a BCOO array with its duplicates summed and its indices in rising order."""
    layout = coordinate_layout(data, indices, spinfo.shape, function="bcoo_sum_duplicates")
    sizes = [spinfo.shape[i] for i in layout.sparse_axes]

    def group(rows: Array) -> tuple[Array, Array, Array]:
        rows, order, groups = index_rows.group_rows(rows, sizes)
        return index_rows.take_group_rows(rows, groups, nse, sizes), order, groups

    def add(data: Array, groups: Array) -> Array:
        return index_rows.add_at_rows(data, expand_dims(groups, (1,)), (nse,))

    indices, order, groups = map_over_batch(group, indices.shape[: layout.n_batch], indices)
    data = _take_in_order(data, order)
    return map_over_batch(add, data.shape[: layout.n_batch], data, groups), indices


bcoo_sum_duplicates_p = formula_primitive(
    "bcoo_sum_duplicates", ("nse", "spinfo"), _sum_duplicates, multiple_results=True
)


def broadcast_batch(x: Array, batch: Sequence[int]) -> Array:
    """Broadcast the leading axes of a buffer to the sizes `batch`."""
    shape = (*batch, *x.shape[len(batch) :])
    return x if x.shape == shape else broadcast_in_dim(x, shape, tuple(range(x.ndim)))
