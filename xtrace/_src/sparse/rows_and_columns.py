"""Primitives on the buffers of COO, CSR and BCSR arrays: conversion, and products with dense arrays."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.core.annotations import DTypeLike, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import full
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.arrays.slicing import index_in_dim, slice_in_dim
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace._src.sparse import bcoo_primitives, index_rows
from xtrace._src.sparse.batch_axes import common_batch, map_over_batch
from xtrace._src.sparse.contractions import Numbers, bcoo_dot_general_p
from xtrace._src.sparse.formula_primitives import formula_primitive
from xtrace._src.sparse.layouts import COOInfo, SparseInfo, row_layout

__all__ = [
    "bcsr_dot_general_p", "bcsr_extract_p", "bcsr_fromdense_p", "bcsr_todense_p", "coo_fromdense_p", "coo_matmat_p",
    "coo_matvec_p", "coo_todense_p", "csr_fromdense_p", "csr_matmat_p", "csr_matvec_p", "csr_todense_p",
]

_MATRIX: Numbers = (((1,), (0,)), ((), ()))


def _expand_indptr(indptr: Array, nse: int) -> Array:
    """Return the row of each stored element; the number of rows for elements after the last row."""
    ends = slice_in_dim(indptr, 1, indptr.shape[0])
    ones = full(ends.shape, 1, indptr.dtype)
    return cumsum(index_rows.add_at_rows(ones, expand_dims(ends, (1,)), (nse,)), 0)


def expand_rows(indices: Array, indptr: Array) -> Array:
    """Return the indices of a BCSR array as indices of a BCOO array."""

    def expand(columns: Array, indptr: Array) -> Array:
        rows = convert_to(_expand_indptr(indptr, columns.shape[0]), columns.dtype)
        return concatenate([expand_dims(rows, (1,)), expand_dims(columns, (1,))], 1)

    n_batch = indices.ndim - 1
    return map_over_batch(expand, common_batch(n_batch, indices, indptr), indices, indptr)


def compress_rows(indices: Array, count: int) -> tuple[Array, Array]:
    """Return the columns and the row pointers for the sorted indices of a BCOO array with `count` rows."""

    def compress(pairs: Array) -> tuple[Array, Array]:
        rows, columns = _split_columns(pairs)
        counts = index_rows.add_at_rows(full(rows.shape, 1, rows.dtype), expand_dims(rows, (1,)), (count,))
        return columns, concatenate([full((1,), 0, rows.dtype), cumsum(counts, 0)], 0)

    return map_over_batch(compress, indices.shape[:-2], indices)


def _bcsr_todense(data: Array, indices: Array, indptr: Array, *, spinfo: SparseInfo) -> Array:
    """Return the dense array of the buffers of a BCSR array."""
    row_layout(data, indices, indptr, spinfo.shape, function="bcsr_todense")
    plain = SparseInfo(spinfo.shape)
    return bcoo_primitives.bcoo_todense_p.bind(data, expand_rows(indices, indptr), spinfo=plain)


bcsr_todense_p = formula_primitive("bcsr_todense", ("spinfo",), _bcsr_todense)


def _bcsr_fromdense(
    mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DTypeLike
) -> tuple[Array, Array, Array]:
    """Return the buffers of a BCSR array of the first `nse` nonzeros of each batch."""
    data, indices = bcoo_primitives.bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    return data, *compress_rows(indices, mat.shape[n_batch])


bcsr_fromdense_p = formula_primitive(
    "bcsr_fromdense", ("nse", "n_batch", "n_dense", "index_dtype"), _bcsr_fromdense, multiple_results=True
)


def _bcsr_extract(indices: Array, indptr: Array, mat: Array) -> Array:
    """Return the elements of a dense array at the indices of a BCSR array."""
    return bcoo_primitives.bcoo_extract_p.bind(expand_rows(indices, indptr), mat, assume_unique=True)


bcsr_extract_p = formula_primitive("bcsr_extract", (), _bcsr_extract)


def _bcsr_dot_general(
    lhs_data: Array, lhs_indices: Array, lhs_indptr: Array, rhs: Array, *, dimension_numbers: Numbers,
    preferred_element_type: Any, lhs_spinfo: SparseInfo,
) -> Array:
    """Contract a BCSR array with a dense array."""
    row_layout(lhs_data, lhs_indices, lhs_indptr, lhs_spinfo.shape, function="bcsr_dot_general")
    return bcoo_dot_general_p.bind(
        lhs_data, expand_rows(lhs_indices, lhs_indptr), rhs, dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type, lhs_spinfo=SparseInfo(lhs_spinfo.shape),
    )


bcsr_dot_general_p = formula_primitive(
    "bcsr_dot_general", ("dimension_numbers", "preferred_element_type", "lhs_spinfo"), _bcsr_dot_general
)


def _join_columns(row: Array, col: Array) -> Array:
    return concatenate([expand_dims(row, (1,)), expand_dims(convert_to(col, row.dtype), (1,))], 1)


def _coo_todense(data: Array, row: Array, col: Array, *, spinfo: COOInfo) -> Array:
    """Return the dense matrix of the buffers of a COO matrix."""
    return bcoo_primitives.bcoo_todense_p.bind(data, _join_columns(row, col), spinfo=SparseInfo(spinfo.shape))


coo_todense_p = formula_primitive("coo_todense", ("spinfo",), _coo_todense)


def _coo_fromdense(mat: Array, *, nse: int, index_dtype: DTypeLike) -> tuple[Array, Array, Array]:
    """Return the buffers of a COO matrix of the first `nse` nonzeros."""
    data, indices = bcoo_primitives.bcoo_fromdense_p.bind(mat, nse=nse, n_batch=0, n_dense=0, index_dtype=index_dtype)
    # As in JAX, missing elements are zeros at the first position.
    missing = index_rows.outside(indices, mat.shape)
    row, col = [select_n(missing, x, full(x.shape, 0, x.dtype)) for x in _split_columns(indices)]
    return data, row, col


def _split_columns(indices: Array) -> list[Array]:
    return [index_in_dim(indices, i, 1, keepdims=False) for i in (0, 1)]


coo_fromdense_p = formula_primitive("coo_fromdense", ("nse", "index_dtype"), _coo_fromdense, multiple_results=True)


def _coo_matmat(data: Array, row: Array, col: Array, B: Array, *, spinfo: COOInfo, transpose: bool) -> Array:
    """Multiply a COO matrix, or its transpose, by a dense matrix."""
    shape = spinfo.shape[::-1] if transpose else spinfo.shape
    return bcoo_dot_general_p.bind(
        data, _join_columns(col, row) if transpose else _join_columns(row, col), B, dimension_numbers=_MATRIX,
        preferred_element_type=data.dtype, lhs_spinfo=SparseInfo(tuple(shape)),
    )


def _coo_matvec(data: Array, row: Array, col: Array, v: Array, *, spinfo: COOInfo, transpose: bool) -> Array:
    """Multiply a COO matrix, or its transpose, by a dense vector."""
    return _coo_matmat(data, row, col, v, spinfo=spinfo, transpose=transpose)


coo_matmat_p = formula_primitive("coo_matmat", ("spinfo", "transpose"), _coo_matmat)
coo_matvec_p = formula_primitive("coo_matvec", ("spinfo", "transpose"), _coo_matvec)


def _csr_todense(data: Array, indices: Array, indptr: Array, *, shape: Shape) -> Array:
    """Return the dense matrix of the buffers of a CSR matrix."""
    return _bcsr_todense(data, indices, indptr, spinfo=SparseInfo(shape))


csr_todense_p = formula_primitive("csr_todense", ("shape",), _csr_todense)


def _csr_fromdense(mat: Array, *, nse: int, index_dtype: DTypeLike) -> tuple[Array, Array, Array]:
    """Return the buffers of a CSR matrix of the first `nse` nonzeros."""
    data, columns, indptr = _bcsr_fromdense(mat, nse=nse, n_batch=0, n_dense=0, index_dtype=index_dtype)
    # As in JAX, missing elements are zeros at the first position.
    return data, select_n(columns >= mat.shape[1], columns, full(columns.shape, 0, columns.dtype)), indptr


csr_fromdense_p = formula_primitive("csr_fromdense", ("nse", "index_dtype"), _csr_fromdense, multiple_results=True)


def _csr_matmat(data: Array, indices: Array, indptr: Array, B: Array, *, shape: Shape, transpose: bool) -> Array:
    """Multiply a CSR matrix, or its transpose, by a dense matrix."""
    row_layout(data, indices, indptr, shape, function="csr_matmat")
    row = convert_to(_expand_indptr(indptr, indices.shape[0]), indices.dtype)
    return _coo_matmat(data, row, indices, B, spinfo=COOInfo(shape), transpose=transpose)


def _csr_matvec(data: Array, indices: Array, indptr: Array, v: Array, *, shape: Shape, transpose: bool) -> Array:
    """Multiply a CSR matrix, or its transpose, by a dense vector."""
    return _csr_matmat(data, indices, indptr, v, shape=shape, transpose=transpose)


csr_matmat_p = formula_primitive("csr_matmat", ("shape", "transpose"), _csr_matmat)
csr_matvec_p = formula_primitive("csr_matvec", ("shape", "transpose"), _csr_matvec)
