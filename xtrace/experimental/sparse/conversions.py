"""BCOO arrays: conversion to dense arrays, transposition, sorting, and sums of duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.trace import Tracer
from xtrace._src.sparse.batch_axes import common_batch
from xtrace._src.sparse.bcoo_primitives import (
    bcoo_extract_p,
    bcoo_sort_indices_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    bcoo_transpose_p,
    broadcast_batch,
    split_permutation,
)
from xtrace.experimental.sparse.coordinate_storage import Coordinates, check_coordinates
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.indexing.where import where

__all__ = ["bcoo_extract", "bcoo_sort_indices", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose"]


def bcoo_todense(mat: Any) -> Array:
    """Convert a BCOO array to a dense array; duplicates are added.

    Args:
        mat: a BCOO array.

    Returns:
        An array of the shape and the dtype of `mat`.

    Raises:
        TypeError: `mat` is not a BCOO array.
        ValueError: its buffers do not fit its shape.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_todense(sparse.BCOO.fromdense(jnp.array([0.0, 2.0])))
        Array([0., 2.], dtype=float32)
    """
    mat = check_coordinates(mat, "mat")
    return bcoo_todense_p.bind(*mat._bufs, spinfo=mat._info)


def bcoo_extract(sparr: Any, arr: ArrayLike, *, assume_unique: bool | None = None) -> Any:
    """Read the elements of a dense array at the indices of a BCOO array.

    Args:
        sparr: a BCOO array, for its indices.
        arr: an array of the same shape.
        assume_unique: whether each duplicate gets the element; otherwise the first one gets it, and the others zero.
            None for ``sparr.unique_indices``.

    Returns:
        A BCOO array with the indices of `sparr`.

    Raises:
        TypeError: `sparr` is not a BCOO array.
        ValueError: the shapes differ.

    Example:
        >>> from xtrace.experimental import sparse
        >>> pattern = sparse.BCOO.fromdense(jnp.array([0.0, 2.0]))
        >>> sparse.bcoo_extract(pattern, jnp.array([5.0, 7.0])).data
        Array([7.], dtype=float32)
    """
    sparr, dense = check_coordinates(sparr, "sparr"), asarray(arr)
    sparr.layout()
    if dense.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: arr has shape {dense.shape}, and sparr {sparr.shape}; they must be equal")
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    return sparr.with_data(bcoo_extract_p.bind(sparr.indices, dense, assume_unique=unique))


def to_permutation(permutation: Any, ndim: int) -> tuple[int, ...]:
    """Convert a permutation of `ndim` axes to integers from 0; ValueError if it is not one."""
    axes = tuple([canonical_axis(axis, ndim) for axis in permutation])
    if sorted(axes) != list(range(ndim)):
        raise ValueError(f"{called_function()}: {abbreviate(permutation)} is not a permutation of {ndim} axes")
    return axes


def bcoo_transpose(mat: Coordinates, *, permutation: Sequence[int]) -> Coordinates:
    """Transpose a BCOO array: permute its batch axes, its sparse axes, and its dense axes.

    Args:
        mat: a BCOO array.
        permutation: the axis of `mat` that each axis of the result is; axes of different kinds cannot change places.

    Returns:
        A BCOO array.

    Raises:
        NotImplementedError: axes of different kinds would change places.
        TypeError: `mat` is not a BCOO array.
        ValueError: `permutation` is not a permutation of the axes.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_transpose(sparse.BCOO.fromdense(jnp.ones((2, 3))), permutation=(1, 0))
        BCOO(float32[3, 2], nse=6)
    """
    mat = check_coordinates(mat, "mat")
    axes = to_permutation(permutation, mat.ndim)
    layout = mat.layout()
    _, sparse, _ = split_permutation(layout.n_batch, layout.n_sparse, axes)
    data, indices = bcoo_transpose_p.bind(*mat._bufs, permutation=axes, spinfo=mat._info)
    in_order = mat.indices_sorted and sparse == tuple(range(layout.n_sparse))
    return mat.remake(data, indices, [mat.shape[i] for i in axes], in_order, mat.unique_indices)


def bcoo_sort_indices(mat: Coordinates) -> Coordinates:
    """Sort the stored elements of a BCOO array by their indices.

    Args:
        mat: a BCOO array.

    Returns:
        A BCOO array of the same elements.

    Raises:
        TypeError: `mat` is not a BCOO array.
        ValueError: its buffers do not fit its shape.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[4], [3]])), shape=(5,))
        >>> sparse.bcoo_sort_indices(mat).data
        Array([2., 1.], dtype=float32)
    """
    mat = check_coordinates(mat, "mat")
    data, indices = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return mat.remake(data, indices, None, True, mat.unique_indices)


def bcoo_sum_duplicates(mat: Coordinates, nse: int | None = None) -> Coordinates:
    """Sum the duplicates of a BCOO array.

    Args:
        mat: a BCOO array.
        nse: the number of elements to store: further ones are dropped, missing ones get indices out of bounds. None
            counts them, which needs concrete indices.

    Returns:
        A BCOO array with unique indices in ascending order.

    Raises:
        TypeError: `mat` is not a BCOO array.
        ValueError: `nse` is not given although the indices are traced.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [3]])), shape=(5,))
        >>> sparse.bcoo_sum_duplicates(mat)
        BCOO(float32[5], nse=1)
    """
    mat = check_coordinates(mat, "mat")
    layout = mat.layout()
    if nse is None:
        if isinstance(mat.indices, Tracer):
            raise ValueError(
                "bcoo_sum_duplicates: nse must be given inside of jit, vmap and other transformations, where the "
                "indices are not known; nse=mat.nse always suffices"
            )
        nse = _count_unique(np.asarray(mat.indices), [mat.shape[i] for i in layout.sparse_axes])
    count = to_integer("nse", nse)
    data, indices = bcoo_sum_duplicates_p.bind(*mat._bufs, nse=count, spinfo=mat._info)
    return mat.remake(data, indices, None, True, True)


def _count_unique(indices: np.ndarray[Any, Any], sizes: Sequence[int]) -> int:
    """Return the largest number of distinct in-bounds indices of a batch."""
    if not sizes:
        # Without sparse axes all stored elements are duplicates.
        return int(0 not in indices.shape[:-1])
    batches = indices.reshape(-1, *indices.shape[-2:])
    inside: Any = (batches < np.array(sizes, np.int64)).all(-1)
    return max([len(np.unique(rows[mask], axis=0)) for rows, mask in zip(batches, inside, strict=True)], default=0)


def eliminate_zeros(mat: Coordinates, nse: int | None) -> Coordinates:
    """Sum duplicates and drop stored zeros, whose indices move out of bounds."""
    layout = mat.layout()
    axes = tuple(range(layout.n_batch + 1, mat.data.ndim))
    is_zero = (mat.data == 0).all(axes) if axes else mat.data == 0
    batch = common_batch(layout.n_batch, mat.data, mat.indices)
    indices, is_zero = broadcast_batch(mat.indices, batch), broadcast_batch(is_zero, batch)
    if not layout.n_sparse:
        return bcoo_sum_duplicates(mat, nse)
    outside = asarray([mat.shape[i] for i in layout.sparse_axes], dtype=indices.dtype)
    indices = where(is_zero[..., None], outside, indices)
    return bcoo_sum_duplicates(mat.remake(mat.data, indices), nse)
