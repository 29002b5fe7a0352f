"""The classes BCOO and BCSR, and their construction from dense arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.pytrees.pytree_registration import register_pytree_node_class
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.trace import Tracer
from xtrace._src.sparse.bcoo_primitives import bcoo_fromdense_p
from xtrace._src.sparse.rows_and_columns import bcsr_fromdense_p
from xtrace.experimental.sparse.conversions import (
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    eliminate_zeros,
)
from xtrace.experimental.sparse.coordinate_storage import CoordinateStorage
from xtrace.experimental.sparse.layout_changes import bcoo_update_layout
from xtrace.experimental.sparse.operators import SparsifiedOperators, apply_operator
from xtrace.experimental.sparse.row_functions import (
    bcsr_sum_duplicates,
    bcsr_todense,
    eliminate_row_zeros,
    from_coordinates,
    to_coordinates,
)
from xtrace.experimental.sparse.row_storage import RowStorage
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import ones, zeros
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.manipulation.joins_and_splits import concatenate

__all__ = ["BCOO", "BCSR", "bcoo_fromdense", "bcsr_fromdense"]


def count_diagonal(rows: int, columns: int, offset: int) -> int:
    """Return the number of elements on a diagonal."""
    return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)


@register_pytree_node_class
class BCOO(SparsifiedOperators, CoordinateStorage):
    """A sparse array in coordinate format: elements and their indices, in batches.

    Args:
        args: the pair of `data`, of shape ``[*batch, nse, *dense]``, and `indices`, of shape
            ``[*batch, nse, n_sparse]``. Duplicates are added, and elements with indices out of bounds are ignored.
        shape: the shape ``[*batch, *sparse, *dense]``.
        indices_sorted: whether the indices are in ascending order.
        unique_indices: whether there are no duplicates.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO((jnp.array([2.0, 5.0]), jnp.array([[0, 1], [2, 2]])), shape=(3, 3))
        >>> mat
        BCOO(float32[3, 3], nse=2)
        >>> mat @ jnp.array([1.0, 2.0, 3.0])
        Array([ 4.,  0., 15.], dtype=float32)
    """

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """Convert a dense array to a BCOO array; see `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Convert a sparse array of SciPy to a BCOO array."""
        _refuse_axes("BCOO", n_batch, n_dense)
        mat = mat.tocoo()
        indices = np.column_stack((mat.row, mat.col))
        return cls((mat.data, asarray(indices, dtype=index_dtype or np.int32)), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
        n_dense: int = 0, n_batch: int = 0, nse: int = 0,
    ) -> BCOO:
        shape = integer_tuple("shape", shape, function="BCOO")
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or min(n_dense, n_batch, nse) < 0:
            raise ValueError(
                f"BCOO: shape={shape}, n_dense={n_dense}, n_batch={n_batch} and nse={nse} do not fit together"
            )
        batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
        outside = asarray(list(sparse), dtype=index_dtype).reshape(n_sparse)
        indices = zeros((*batch, nse, n_sparse), index_dtype) + outside
        data = zeros((*batch, nse, *dense), dtype)
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
        n_batch: int = 0, n_dense: int = 0,
    ) -> BCOO:
        count = count_diagonal(N, M, k)
        rows = arange(max(-k, 0), max(-k, 0) + count, dtype=index_dtype)
        columns = arange(max(k, 0), max(k, 0) + count, dtype=index_dtype)
        matrix = cls(
            (ones((count,), dtype), concatenate([rows[:, None], columns[:, None]], 1)), shape=(N, M),
            indices_sorted=True, unique_indices=True,
        )
        if not n_batch and not n_dense:
            return matrix
        return bcoo_fromdense(matrix.todense(), n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """Return the array with other numbers of batch and of dense axes; see `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return the array with its duplicates added; see `bcoo_sum_duplicates`."""
        return eliminate_zeros(self, nse) if remove_zeros else bcoo_sum_duplicates(self, nse)

    def sort_indices(self) -> BCOO:
        """Return the array with its indices in ascending order."""
        return bcoo_sort_indices(self)

    def todense(self) -> Array:
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        permutation = tuple(range(self.ndim))[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=permutation)


def _refuse_axes(name: str, n_batch: int, n_dense: int) -> None:
    if n_batch or n_dense:
        raise NotImplementedError(
            f"{name}.from_scipy_sparse: SciPy's arrays have no batch and no dense axes; leave n_batch and n_dense at 0"
        )


def count_stored(mat: Array, nse: int | None, n_batch: int, n_dense: int) -> int:
    """Return the number of elements to store for each batch: `nse`, or the largest number of nonzeros."""
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"{called_function()}: n_batch={n_batch} and n_dense={n_dense} do not fit an array of shape {mat.shape}"
        )
    if nse is not None:
        count = to_integer("nse", nse)
        if count < 0:
            raise ValueError(f"{called_function()}: nse must not be negative, got {count}")
        return count
    if isinstance(mat, Tracer):
        raise explain.concretization(mat, f"{called_function()} without nse=, the number of stored elements,")
    stored = np.asarray(mat) != 0
    stored = stored.any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    return int(np.max(stored.sum(tuple(range(n_batch, stored.ndim))), initial=0))


def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCOO:
    """Convert a dense array to a BCOO array.

    Args:
        mat: an array.
        nse: the number of elements to store of each batch: further ones are dropped, missing ones get indices out of
            bounds. None counts the nonzeros, which needs a concrete array.
        n_batch: the number of leading batch axes.
        n_dense: the number of trailing dense axes.
        index_dtype: the dtype of the indices.

    Returns:
        A BCOO array.

    Raises:
        ConcretizationTypeError: `mat` is traced and `nse` is not given.
        ValueError: `n_batch` and `n_dense` do not fit `mat`, or `nse` is negative.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0]])).indices
        Array([[0, 1]], dtype=int32)
    """
    dense = asarray(mat)
    n_batch, n_dense = to_integer("n_batch", n_batch), to_integer("n_dense", n_dense)
    count = count_stored(dense, nse, n_batch, n_dense)
    data, indices = bcoo_fromdense_p.bind(
        dense, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=requested_dtype(index_dtype)
    )
    return BCOO((data, indices), shape=dense.shape, indices_sorted=True, unique_indices=True)


@register_pytree_node_class
class BCSR(RowStorage):
    """A sparse array of compressed rows: elements, their columns, and the starts of rows, in batches.

    Args:
        args: `data`, of shape ``[*batch, nse, *dense]``, the columns `indices`, of shape ``[*batch, nse]``, and
            `indptr`, of shape ``[*batch, rows + 1]``: row i has the elements ``indptr[i]`` to ``indptr[i + 1]``.
        shape: the shape ``[*batch, rows, columns, *dense]``.
        indices_sorted: whether the columns of each row are in ascending order.
        unique_indices: whether there are no duplicates.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> mat.indptr, mat @ jnp.array([1.0, 2.0])
        (Array([0, 1, 2], dtype=int32), Array([4., 3.], dtype=float32))
    """

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """Convert a dense array to a BCSR array; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Convert a sparse array of SciPy to a BCSR array."""
        _refuse_axes("BCSR", n_batch, n_dense)
        mat = mat.tocsr()
        indices, indptr = (asarray(x, dtype=index_dtype or np.int32) for x in (mat.indices, mat.indptr))
        return cls((mat.data, indices, indptr), shape=mat.shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Convert a BCOO array with two sparse axes to a BCSR array."""
        return from_coordinates(arr, cls)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
        n_dense: int = 0, n_batch: int = 0, nse: int = 0,
    ) -> BCSR:
        shape = integer_tuple("shape", shape, function="BCSR")
        if len(shape) - n_dense - n_batch != 2 or min(n_dense, n_batch, nse) < 0:
            raise ValueError(
                f"BCSR: shape={shape}, n_dense={n_dense}, n_batch={n_batch} and nse={nse} do not give 2 sparse axes"
            )
        batch, rows, dense = shape[:n_batch], shape[n_batch], shape[n_batch + 2 :]
        data = zeros((*batch, nse, *dense), dtype)
        indices, indptr = zeros((*batch, nse), index_dtype), zeros((*batch, rows + 1), index_dtype)
        return cls((data, indices + shape[n_batch + 1], indptr), shape=shape)

    def to_bcoo(self) -> BCOO:
        """Convert the array to a BCOO array."""
        return to_coordinates(self, BCOO)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Return the array with its duplicates added; see `bcsr_sum_duplicates`."""
        return eliminate_row_zeros(self, nse) if remove_zeros else bcsr_sum_duplicates(self, nse)

    def todense(self) -> Array:
        return bcsr_todense(self)

    def transpose(self, axes: Any = None) -> Any:
        raise NotImplementedError("BCSR: the transpose stores columns; use to_bcoo().transpose()")

    def __matmul__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x @ y, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        # A BCSR array on the right is multiplied as a BCOO array.
        return apply_operator(lambda x, y: x @ y, other, self.to_bcoo())

    def __getitem__(self, item: Any) -> Any:
        raise NotImplementedError(f"BCSR: indexing with {abbreviate(item)}; use to_bcoo(), which can be indexed")


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCSR:
    """Convert a dense array to a BCSR array.

    Args:
        mat: an array.
        nse: the number of elements to store of each batch: further ones are dropped, missing ones get indices out of
            bounds. None counts the nonzeros, which needs a concrete array.
        n_batch: the number of leading batch axes.
        n_dense: the number of trailing dense axes; two sparse axes must remain.
        index_dtype: the dtype of the indices.

    Returns:
        A BCSR array.

    Raises:
        ConcretizationTypeError: `mat` is traced and `nse` is not given.
        ValueError: the number of sparse axes is not two, or `nse` is negative.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcsr_fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0]])).indptr
        Array([0, 1, 1], dtype=int32)
    """
    dense = asarray(mat)
    n_batch, n_dense = to_integer("n_batch", n_batch), to_integer("n_dense", n_dense)
    count = count_stored(dense, nse, n_batch, n_dense)
    if dense.ndim - n_batch - n_dense != 2:
        raise ValueError(
            f"bcsr_fromdense: a BCSR array has 2 sparse axes; shape {dense.shape} with n_batch={n_batch} and "
            f"n_dense={n_dense} has {dense.ndim - n_batch - n_dense}"
        )
    data, indices, indptr = bcsr_fromdense_p.bind(
        dense, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=requested_dtype(index_dtype)
    )
    return BCSR((data, indices, indptr), shape=dense.shape)
