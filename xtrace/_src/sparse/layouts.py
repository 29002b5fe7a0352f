"""Layouts of sparse arrays: descriptions and checks of their buffers, and warnings about inefficient layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.messages import called_function

__all__ = ["CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning"]


class SparseEfficiencyError(ValueError):
    """A result would need as much memory as a dense array, or more.

    Example:
        >>> from xtrace.experimental import sparse
        >>> try: sparse.BCOO.fromdense(jnp.eye(3)).update_layout(n_batch=1)
        ... except sparse.SparseEfficiencyError: print("inefficient")
        inefficient
    """


class SparseEfficiencyWarning(UserWarning):
    """A result has an inefficient layout.

    Example:
        >>> from xtrace.experimental import sparse
        >>> issubclass(sparse.SparseEfficiencyWarning, UserWarning)
        True
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A kernel of cuSPARSE cannot be used; xtrace never uses one.

    Example:
        >>> from xtrace.experimental import sparse
        >>> issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
        True
    """


class SparseInfo(NamedTuple):
    """The static facts about a sparse array."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class COOInfo(NamedTuple):
    """The static facts about a COO matrix."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


class Layout(NamedTuple):
    """The numbers of batch, sparse and dense axes of a sparse array, in this order, and of stored elements."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int

    @property
    def sparse_axes(self) -> range:
        """The positions of the sparse axes."""
        return range(self.n_batch, self.n_batch + self.n_sparse)

    def split_axes(self, axes: Sequence[int]) -> tuple[tuple[int, ...], list[int], tuple[int, ...]]:
        """Return the batch axes among `axes`, the index columns of the sparse ones, the data axes of the dense ones.

        All are in the order of `axes`.
        """
        batch = tuple([i for i in axes if i < self.n_batch])
        sparse = [i - self.n_batch for i in axes if i in self.sparse_axes]
        dense = tuple([i - self.n_sparse + 1 for i in axes if i >= self.n_batch + self.n_sparse])
        return batch, sparse, dense


def _fits(given: Sequence[int], shape: Sequence[int]) -> bool:
    return len(given) == len(shape) and all(n in (1, size) for n, size in zip(given, shape, strict=True))


def coordinate_layout(data: Any, indices: Any, shape: Sequence[int], *, function: str = "") -> Layout:
    """Return the layout of a BCOO array from its buffers; ValueError if they do not fit.

    function: the function's name; by default the public function of the call.
    """
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{function or called_function()}: the indices must be integers, got {indices.dtype}")
    if indices.ndim < 2:
        raise ValueError(
            f"{function or called_function()}: the indices of a BCOO array have shape [*batch, nse, n_sparse], got "
            f"{indices.shape}"
        )
    n_batch, (nse, n_sparse) = indices.ndim - 2, indices.shape[-2:]
    n_dense = len(shape) - n_batch - n_sparse
    _check_axes(n_batch, n_sparse, n_dense, indices.shape, shape, function=function)
    if not _fits(indices.shape[:n_batch], shape[:n_batch]):
        raise ValueError(
            f"{function or called_function()}: the batch axes {indices.shape[:n_batch]} of the indices do not fit the "
            f"shape {tuple(shape)}; each must be the size in the shape, or 1"
        )
    _check_data(data, n_batch, nse, n_dense, shape, function=function)
    return Layout(n_batch, n_sparse, n_dense, nse)


def row_layout(data: Any, indices: Any, indptr: Any, shape: Sequence[int], *, function: str = "") -> Layout:
    """Return the layout of a BCSR array from its buffers; ValueError if they do not fit.

    function: the function's name; by default the public function of the call.
    """
    for label, buffer in (("indices", indices), ("indptr", indptr)):
        if not dtypes.is_integer(buffer.dtype):
            raise TypeError(f"{function or called_function()}: {label} must be integers, got {buffer.dtype}")
    if indices.ndim < 1 or indptr.ndim != indices.ndim:
        raise ValueError(
            f"{function or called_function()}: the indices of a BCSR array have shape [*batch, nse] and indptr "
            f"[*batch, rows + 1], got {indices.shape} and {indptr.shape}"
        )
    n_batch, nse = indices.ndim - 1, indices.shape[-1]
    n_dense = len(shape) - n_batch - 2
    _check_axes(n_batch, 2, n_dense, indices.shape, shape, function=function)
    if not (_fits(indices.shape[:-1], shape[:n_batch]) and _fits(indptr.shape[:-1], shape[:n_batch])):
        raise ValueError(
            f"{function or called_function()}: the batch axes of the indices {indices.shape} and of indptr "
            f"{indptr.shape} do not fit the shape {tuple(shape)}; each must be the size in the shape, or 1"
        )
    if indptr.shape[-1] != shape[n_batch] + 1:
        raise ValueError(
            f"{function or called_function()}: indptr has {indptr.shape[-1]} entries, and an array of shape "
            f"{tuple(shape)} needs {shape[n_batch] + 1}, one more than it has rows"
        )
    _check_data(data, n_batch, nse, n_dense, shape, function=function)
    return Layout(n_batch, 2, n_dense, nse)


def _check_axes(
    n_batch: int, n_sparse: int, n_dense: int, indices: Sequence[int], shape: Sequence[int], *, function: str = ""
) -> None:
    if n_dense < 0:
        raise ValueError(
            f"{function or called_function()}: indices of shape {tuple(indices)} have {n_batch} batch and {n_sparse} "
            f"sparse axes, more than the shape {tuple(shape)}"
        )


def _check_data(data: Any, n_batch: int, nse: int, n_dense: int, shape: Sequence[int], *, function: str = "") -> None:
    dense = tuple(shape[len(shape) - n_dense :])
    if data.ndim != n_batch + 1 + n_dense or data.shape[n_batch:] != (nse, *dense):
        raise ValueError(
            f"{function or called_function()}: the data have shape {data.shape}; with {n_batch} batch axes, {nse} "
            f"stored elements and the dense axes {dense} it is [*batch, {', '.join(map(str, (nse, *dense)))}]"
        )
    if not _fits(data.shape[:n_batch], shape[:n_batch]):
        raise ValueError(
            f"{function or called_function()}: the batch axes {data.shape[:n_batch]} of the data do not fit the "
            f"shape {tuple(shape)}; each must be the size in the shape, or 1"
        )


def count_positions(shape: Sequence[int], layout: Layout) -> int:
    """Return the number of positions along the sparse axes, the largest useful number of stored elements."""
    return math.prod(shape[layout.n_batch : layout.n_batch + layout.n_sparse])
