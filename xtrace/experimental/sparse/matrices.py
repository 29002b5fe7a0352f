"""The classes COO, CSR and CSC, sparse matrices without batches, and their functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.api.operators.promotion import promote_dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.pytrees.pytree_registration import register_pytree_node_class
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.sparse.layouts import COOInfo, row_layout
from xtrace._src.sparse.rows_and_columns import (
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)
from xtrace.experimental.sparse.arrays import BCOO, count_diagonal, count_stored
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import ones, zeros
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.elementwise.ufuncs import clip
from xtrace.numpy.sorting.sorts import lexsort

__all__ = [
    "COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat",
    "csr_matvec", "csr_todense",
]


class SparseMatrix(JAXSparse):
    """A sparse array of two axes."""

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        super().__init__(tuple(args), shape=shape)
        if self.ndim != 2:
            raise ValueError(f"{type(self).__name__} must have ndim=2; got shape={self.shape}")

    def _check_axes(self, axes: Any) -> None:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(
                f"{type(self).__name__}: transpose takes no axes but (1, 0), which exchange rows and columns"
            )

    def _multiply(self, other: Any) -> Any:
        """Return the product of the matrix and an array with one or two axes."""
        raise NotImplementedError

    def __matmul__(self, other: Any) -> Any:
        name = type(self).__name__
        if isinstance(other, JAXSparse):
            raise NotImplementedError(f"{name}: products of two sparse matrices are not implemented; use BCOO arrays")
        other = asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"{name}: the product with an array of shape {other.shape}; it has 1 or 2 axes")
        return self._multiply(other)


def _check_matrix(mat: object, kind: type) -> Any:
    if not isinstance(mat, kind):
        raise TypeError(
            f"{called_function()}: mat must be a {kind.__name__} matrix, got {abbreviate(mat)} of type {type(mat)}"
        )
    return mat


def _promote_operands(
    mat: SparseMatrix, value: ArrayLike, argument: str, ndim: int, transpose: object
) -> list[Any]:
    """Return the data of a matrix and the array to multiply, of one dtype; ValueError if the sizes differ."""
    x = asarray(value)
    inner = mat.shape[0] if transpose else mat.shape[1]
    if x.ndim != ndim or x.shape[0] != inner:
        expected = f"({inner},)" if ndim == 1 else f"({inner}, columns)"
        raise ValueError(f"{called_function()}: {argument} must have shape {expected}, got {x.shape}")
    return promote_dtypes((mat.data, x))[1]


@register_pytree_node_class
class COO(SparseMatrix):
    """A sparse matrix in coordinate format.

    Args:
        args: `data`, `row` and `col`, vectors of the same length: the elements, their rows and their columns.
        shape: the numbers of rows and columns.
        rows_sorted: whether the elements are sorted by row.
        cols_sorted: whether the elements are sorted by column.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.COO((jnp.array([2.0, 5.0]), jnp.array([0, 1]), jnp.array([1, 0])), shape=(2, 2))
        >>> mat @ jnp.array([1.0, 3.0])
        Array([6., 5.], dtype=float32)
    """

    def __init__(
        self, args: Sequence[Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        self.data, self.row, self.col = (asarray(x) for x in args)
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)
        if not (self.data.ndim == self.row.ndim == self.col.ndim == 1) or not (
            self.data.shape == self.row.shape == self.col.shape
        ):
            raise ValueError(
                "COO: data, row and col must be vectors of the same length; they have shapes "
                f"{self.data.shape}, {self.row.shape} and {self.col.shape}"
            )

    @property
    def _info(self) -> COOInfo:
        return COOInfo((self.shape[0], self.shape[1]), self._rows_sorted, self._cols_sorted)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.row, self.col

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """Convert a dense matrix to a COO matrix; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32"
    ) -> COO:
        none = zeros((0,), index_dtype)
        return cls((zeros((0,), dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32"
    ) -> COO:
        batched = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        row, col = batched.indices[:, 0], batched.indices[:, 1]
        return cls((batched.data, row, col), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def _sort_indices(self) -> COO:
        """Return the matrix with its elements sorted by row, then by column."""
        order = lexsort((self.col, self.row))
        return COO([x[order] for x in self._bufs], shape=self.shape, rows_sorted=True)

    def todense(self) -> Array:
        return coo_todense(self)

    def transpose(self, axes: Any = None) -> COO:
        self._check_axes(axes)
        return COO(
            (self.data, self.col, self.row), shape=self.shape[::-1], rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    def _multiply(self, other: Any) -> Any:
        return coo_matvec(self, other) if other.ndim == 1 else coo_matmat(self, other)

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], COOInfo]:
        return self._bufs, self._info

    @classmethod
    def tree_unflatten(cls, info: COOInfo, children: Sequence[Any]) -> COO:
        """Return a matrix from its buffers. Tree functions may pass any objects as buffers."""
        result = object.__new__(cls)
        result.data, result.row, result.col = children
        result.shape, result._rows_sorted, result._cols_sorted = info
        return result


def coo_todense(mat: Any) -> Array:
    """Convert a COO matrix to a dense array; duplicates are added.

    Args:
        mat: a COO matrix.

    Returns:
        An array of the shape and the dtype of `mat`.

    Raises:
        TypeError: `mat` is not a COO matrix.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.coo_todense(sparse.COO.fromdense(jnp.array([[0.0, 2.0]])))
        Array([[0., 2.]], dtype=float32)
    """
    mat = _check_matrix(mat, COO)
    return coo_todense_p.bind(*mat._bufs, spinfo=mat._info)


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """Convert a dense matrix to a COO matrix.

    Args:
        mat: a matrix.
        nse: the number of elements to store: further ones are dropped, and zeros fill the rest. None counts the
            nonzeros, which needs a concrete array.
        index_dtype: the dtype of rows and columns.

    Returns:
        A COO matrix with its elements sorted by row.

    Raises:
        ConcretizationTypeError: `mat` is traced and `nse` is not given.
        ValueError: `mat` is not a matrix, or `nse` is negative.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.coo_fromdense(jnp.array([[0.0, 2.0]])).col
        Array([1], dtype=int32)
    """
    dense, count = _prepare_dense(mat, nse)
    buffers = coo_fromdense_p.bind(dense, nse=count, index_dtype=requested_dtype(index_dtype))
    return COO(buffers, shape=dense.shape, rows_sorted=True)


def _prepare_dense(mat: ArrayLike, nse: int | None) -> tuple[Any, int]:
    dense = asarray(mat)
    if dense.ndim != 2:
        raise ValueError(f"{called_function()}: mat must be a matrix, got shape {dense.shape}")
    return dense, count_stored(dense, nse, 0, 0)


def coo_matvec(mat: Any, v: ArrayLike, transpose: bool = False) -> Array:
    """Multiply a COO matrix, or its transpose, by a vector.

    Args:
        mat: a COO matrix.
        v: a vector.
        transpose: whether to multiply by the transpose.

    Returns:
        A vector.

    Raises:
        TypeError: `mat` is not a COO matrix.
        ValueError: the sizes differ.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.coo_matvec(sparse.COO.fromdense(jnp.array([[0.0, 2.0]])), jnp.array([1.0, 3.0]))
        Array([6.], dtype=float32)
    """
    mat = _check_matrix(mat, COO)
    data, x = _promote_operands(mat, v, "v", 1, transpose)
    return coo_matvec_p.bind(data, mat.row, mat.col, x, spinfo=mat._info, transpose=bool(transpose))


def coo_matmat(mat: Any, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Multiply a COO matrix, or its transpose, by a dense matrix.

    Args:
        mat: a COO matrix.
        B: a dense matrix.
        transpose: whether to multiply by the transpose.

    Returns:
        A dense matrix.

    Raises:
        TypeError: `mat` is not a COO matrix.
        ValueError: the sizes differ.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.coo_matmat(sparse.COO.fromdense(jnp.array([[0.0, 2.0]])), jnp.eye(2))
        Array([[0., 2.]], dtype=float32)
    """
    mat = _check_matrix(mat, COO)
    data, x = _promote_operands(mat, B, "B", 2, transpose)
    return coo_matmat_p.bind(data, mat.row, mat.col, x, spinfo=mat._info, transpose=bool(transpose))


class CompressedMatrix(SparseMatrix):
    """A matrix of compressed rows or columns: elements, their positions, and the starts of the rows or columns."""

    # The axis of rows or columns that `indptr` delimits.
    axis = 0

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = (asarray(x) for x in args)
        super().__init__(args, shape=shape)
        row_layout(self.data, self.indices, self.indptr, self._row_shape, function=type(self).__name__)

    @property
    def _row_shape(self) -> tuple[int, ...]:
        return self.shape[::-1] if self.axis else self.shape

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32"
    ) -> Any:
        sizes = integer_tuple("shape", shape, function=cls.__name__)
        if len(sizes) != 2:
            raise ValueError(f"{cls.__name__} must have ndim=2; got shape={sizes}")
        indptr = zeros((sizes[cls.axis] + 1,), index_dtype)
        return cls((zeros((0,), dtype), zeros((0,), index_dtype), indptr), shape=sizes)

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32"
    ) -> Any:
        if cls.axis:
            N, M, k = M, N, -k
        count = count_diagonal(N, M, k)
        start = max(-k, 0)
        indptr = clip(arange(N + 1, dtype=index_dtype) - start, 0, count)
        columns = arange(max(k, 0), max(k, 0) + count, dtype=index_dtype)
        return cls((ones((count,), dtype), columns, indptr), shape=(M, N) if cls.axis else (N, M))

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], tuple[int, ...]]:
        return self._bufs, self.shape

    @classmethod
    def tree_unflatten(cls, shape: tuple[int, ...], children: Sequence[Any]) -> Any:
        """Return a matrix from its buffers. Tree functions may pass any objects as buffers."""
        result = object.__new__(cls)
        result.data, result.indices, result.indptr = children
        result.shape = shape
        return result


@register_pytree_node_class
class CSR(CompressedMatrix):
    """A sparse matrix of compressed rows.

    Args:
        args: `data`, the columns `indices`, and `indptr`: row i has the elements ``indptr[i]`` to ``indptr[i + 1]``.
        shape: the numbers of rows and columns.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [5.0, 0.0]]))
        >>> mat @ jnp.array([1.0, 3.0])
        Array([6., 5.], dtype=float32)
    """

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """Convert a dense matrix to a CSR matrix; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def todense(self) -> Array:
        return csr_todense(self)

    def transpose(self, axes: Any = None) -> CSC:
        self._check_axes(axes)
        return CSC(self._bufs, shape=self.shape[::-1])

    def _multiply(self, other: Any) -> Any:
        return csr_matvec(self, other) if other.ndim == 1 else csr_matmat(self, other)


@register_pytree_node_class
class CSC(CompressedMatrix):
    """A sparse matrix of compressed columns.

    Args:
        args: `data`, the rows `indices`, and `indptr`: column i has the elements ``indptr[i]`` to ``indptr[i + 1]``.
        shape: the numbers of rows and columns.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.CSC.fromdense(jnp.array([[0.0, 2.0], [5.0, 0.0]]))
        >>> mat.data, mat @ jnp.array([1.0, 3.0])
        (Array([5., 2.], dtype=float32), Array([6., 5.], dtype=float32))
    """

    axis = 1

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """Convert a dense matrix to a CSC matrix; see `csr_fromdense`."""
        return csr_fromdense(asarray(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    def todense(self) -> Array:
        return csr_todense(self.T).T

    def transpose(self, axes: Any = None) -> CSR:
        self._check_axes(axes)
        return CSR(self._bufs, shape=self.shape[::-1])

    def _multiply(self, other: Any) -> Any:
        function = csr_matvec if other.ndim == 1 else csr_matmat
        return function(self.T, other, transpose=True)


def csr_todense(mat: Any) -> Array:
    """Convert a CSR matrix to a dense array; duplicates are added.

    Args:
        mat: a CSR matrix.

    Returns:
        An array of the shape and the dtype of `mat`.

    Raises:
        TypeError: `mat` is not a CSR matrix.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.csr_todense(sparse.CSR.fromdense(jnp.array([[0.0, 2.0]])))
        Array([[0., 2.]], dtype=float32)
    """
    mat = _check_matrix(mat, CSR)
    return csr_todense_p.bind(*mat._bufs, shape=mat.shape)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """Convert a dense matrix to a CSR matrix.

    Args:
        mat: a matrix.
        nse: the number of elements to store: further ones are dropped, and zeros fill the rest. None counts the
            nonzeros, which needs a concrete array.
        index_dtype: the dtype of columns and row pointers.

    Returns:
        A CSR matrix.

    Raises:
        ConcretizationTypeError: `mat` is traced and `nse` is not given.
        ValueError: `mat` is not a matrix, or `nse` is negative.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.csr_fromdense(jnp.array([[0.0, 2.0]])).indptr
        Array([0, 1], dtype=int32)
    """
    dense, count = _prepare_dense(mat, nse)
    buffers = csr_fromdense_p.bind(dense, nse=count, index_dtype=requested_dtype(index_dtype))
    return CSR(buffers, shape=dense.shape)


def csr_matvec(mat: Any, v: ArrayLike, transpose: bool = False) -> Array:
    """Multiply a CSR matrix, or its transpose, by a vector.

    Args:
        mat: a CSR matrix.
        v: a vector.
        transpose: whether to multiply by the transpose.

    Returns:
        A vector.

    Raises:
        TypeError: `mat` is not a CSR matrix.
        ValueError: the sizes differ.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.csr_matvec(sparse.CSR.fromdense(jnp.array([[0.0, 2.0]])), jnp.array([1.0, 3.0]))
        Array([6.], dtype=float32)
    """
    mat = _check_matrix(mat, CSR)
    data, x = _promote_operands(mat, v, "v", 1, transpose)
    return csr_matvec_p.bind(data, mat.indices, mat.indptr, x, shape=mat.shape, transpose=bool(transpose))


def csr_matmat(mat: Any, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Multiply a CSR matrix, or its transpose, by a dense matrix.

    Args:
        mat: a CSR matrix.
        B: a dense matrix.
        transpose: whether to multiply by the transpose.

    Returns:
        A dense matrix.

    Raises:
        TypeError: `mat` is not a CSR matrix.
        ValueError: the sizes differ.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.csr_matmat(sparse.CSR.fromdense(jnp.array([[0.0, 2.0]])), jnp.eye(2))
        Array([[0., 2.]], dtype=float32)
    """
    mat = _check_matrix(mat, CSR)
    data, x = _promote_operands(mat, B, "B", 2, transpose)
    return csr_matmat_p.bind(data, mat.indices, mat.indptr, x, shape=mat.shape, transpose=bool(transpose))
