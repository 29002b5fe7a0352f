"""Functions of BCSR arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.sparse.layouts import row_layout
from xtrace._src.sparse.rows_and_columns import (
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_todense_p,
    compress_rows,
    expand_rows,
)
from xtrace.experimental.sparse.conversions import bcoo_sort_indices, bcoo_sum_duplicates, eliminate_zeros
from xtrace.experimental.sparse.coordinate_storage import Coordinates, CoordinateStorage
from xtrace.experimental.sparse.indexing import bcoo_concatenate
from xtrace.experimental.sparse.layout_changes import bcoo_broadcast_in_dim, refuse_sharding
from xtrace.experimental.sparse.products import resolve_contraction
from xtrace.experimental.sparse.row_storage import Rows, RowStorage, check_rows
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.numpy.arrays.conversion import asarray

__all__ = [
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_sum_duplicates",
    "bcsr_todense",
]


def to_coordinates(mat: RowStorage, kind: type[Coordinates]) -> Coordinates:
    """Convert a BCSR array to an array of coordinates of the class `kind`."""
    return kind(
        (mat.data, expand_rows(mat.indices, mat.indptr)), shape=mat.shape, indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def from_coordinates(mat: CoordinateStorage, kind: type[Rows]) -> Rows:
    """Convert an array of coordinates to a BCSR array of the class `kind`; ValueError unless it has 2 sparse axes."""
    layout = mat.layout()
    if layout.n_sparse != 2:
        raise ValueError(
            f"{called_function()}: a BCSR array has 2 sparse axes, and {mat} of shape {mat.shape} has "
            f"{layout.n_sparse}; update_layout changes that"
        )
    mat = mat if mat.indices_sorted else bcoo_sort_indices(mat)
    indices, indptr = compress_rows(mat.indices, mat.shape[layout.n_batch])
    return kind((mat.data, indices, indptr), shape=mat.shape)


def bcsr_todense(mat: Any) -> Array:
    """Convert a BCSR array to a dense array; duplicates are added.

    Args:
        mat: a BCSR array.

    Returns:
        An array of the shape and the dtype of `mat`.

    Raises:
        TypeError: `mat` is not a BCSR array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.array([[0.0, 2.0]])))
        Array([[0., 2.]], dtype=float32)
    """
    mat = check_rows(mat, "mat")
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Read the elements of a dense array at the indices of a BCSR array.

    Args:
        indices, indptr: the columns and the row pointers of the BCSR array.
        mat: a dense array.

    Returns:
        The data of the BCSR array.

    Raises:
        TypeError: `indices` or `indptr` are not integers.
        ValueError: they do not fit the shape of `mat`.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.arange(4.0).reshape(2, 2))
        Array([1., 2.], dtype=float32)
    """
    columns, pointers, dense = asarray(indices), asarray(indptr), asarray(mat)
    n_batch = columns.ndim - 1
    data = np.broadcast_to(np.float32(0), (*[1] * n_batch, *columns.shape[-1:], *dense.shape[n_batch + 2 :]))
    row_layout(data, columns, pointers, dense.shape)
    return bcsr_extract_p.bind(columns, pointers, dense)


def bcsr_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """Multiply a BCSR array and a dense one, and sum over pairs of axes.

    Args:
        lhs: a BCSR array.
        rhs: a dense array.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, sequences of axes.
        precision: without effect.
        preferred_element_type: the dtype of the result; None for the common one.
        out_sharding: must be None.

    Returns:
        A dense array. The axes are the batch axes, then the others of `lhs`, then the others of `rhs`.

    Raises:
        NotImplementedError: `lhs` is not a BCSR array, or `rhs` is sparse.
        TypeError: axes and sizes do not agree.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
        >>> sparse.bcsr_dot_general(mat, jnp.array([1.0, 3.0]), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([6., 1.], dtype=float32)
    """
    refuse_sharding(out_sharding)
    if not isinstance(lhs, RowStorage) or isinstance(rhs, JAXSparse):
        raise NotImplementedError(
            f"bcsr_dot_general: the left operand must be a BCSR array and the right one dense; got {type(lhs)} and "
            f"{type(rhs)}. Convert with to_bcoo() for other products"
        )
    rhs = asarray(rhs)
    numbers, result = resolve_contraction(lhs, rhs, dimension_numbers, preferred_element_type)
    return bcsr_dot_general_p.bind(
        *lhs._bufs, rhs, dimension_numbers=numbers, preferred_element_type=np.dtype(result.dtype),
        lhs_spinfo=lhs._info,
    )


def bcsr_broadcast_in_dim(
    mat: Any, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> Any:
    """Broadcast a BCSR array to a shape with as many axes or more.

    Args:
        mat: a BCSR array.
        shape: the new shape.
        broadcast_dimensions: the axis of the result that each axis of `mat` becomes, in ascending order.
        sharding: must be None.

    Returns:
        A BCSR array of shape `shape`.

    Raises:
        NotImplementedError: a new axis would be a sparse one, or `sharding` is given.
        TypeError: `mat` is not a BCSR array.
        ValueError: the shapes and axes do not agree.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0]]))
        >>> sparse.bcsr_broadcast_in_dim(mat, shape=(3, 1, 2), broadcast_dimensions=(1, 2))
        BCSR(float32[3, 1, 2], nse=1, n_batch=1)
    """
    mat = check_rows(mat, "mat")
    wide = bcoo_broadcast_in_dim(
        to_coordinates(mat, CoordinateStorage), shape=shape, broadcast_dimensions=broadcast_dimensions,
        sharding=sharding,
    )
    if wide.n_sparse != 2:
        raise NotImplementedError(
            f"bcsr_broadcast_in_dim: shape {tuple(shape)} would have {wide.n_sparse} sparse axes; use BCOO"
        )
    return from_coordinates(wide, type(mat))


def bcsr_concatenate(operands: Sequence[Any], *, dimension: int) -> Any:
    """Concatenate BCSR arrays along a batch or a sparse axis.

    Args:
        operands: BCSR arrays with the same batch and dense axes, and the same sizes along the other axes.
        dimension: the axis.

    Returns:
        A BCSR array.

    Raises:
        NotImplementedError: `dimension` is a dense axis.
        TypeError: an operand is not a BCSR array.
        ValueError: there are no operands, their layouts or shapes differ, or `dimension` is out of bounds.

    Example:
        >>> from xtrace.experimental import sparse
        >>> row = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0]]))
        >>> sparse.bcsr_concatenate([row, row], dimension=0)
        BCSR(float32[2, 2], nse=2)
    """
    mats = [check_rows(x, f"operand {i}") for i, x in enumerate(operands)]
    if not mats:
        raise ValueError("bcsr_concatenate: there are no operands")
    parts = [to_coordinates(x, CoordinateStorage) for x in mats]
    return from_coordinates(bcoo_concatenate(parts, dimension=dimension), type(mats[0]))


def bcsr_sum_duplicates(mat: Rows, nse: int | None = None) -> Rows:
    """Sum the duplicates of a BCSR array.

    Args:
        mat: a BCSR array.
        nse: the number of elements to store: further ones are dropped, missing ones get indices out of bounds. None
            counts them, which needs concrete indices.

    Returns:
        A BCSR array with unique indices in ascending order.

    Raises:
        TypeError: `mat` is not a BCSR array.
        ValueError: `nse` is not given although the indices are traced.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCSR((jnp.array([1.0, 2.0]), jnp.array([3, 3]), jnp.array([0, 2])), shape=(1, 5))
        >>> sparse.bcsr_sum_duplicates(mat)
        BCSR(float32[1, 5], nse=1)
    """
    mat = check_rows(mat, "mat")
    return from_coordinates(bcoo_sum_duplicates(to_coordinates(mat, CoordinateStorage), nse), type(mat))


def eliminate_row_zeros(mat: Rows, nse: int | None) -> Rows:
    """Sum duplicates and drop stored zeros."""
    return from_coordinates(eliminate_zeros(to_coordinates(mat, CoordinateStorage), nse), type(mat))
