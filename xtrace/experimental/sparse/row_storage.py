"""The buffers of BCSR arrays: elements, their columns, and the starts of rows, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.sparse.layouts import Layout, SparseInfo, row_layout
from xtrace.experimental.sparse.batched_storage import BatchedStorage
from xtrace.experimental.sparse.sparse_arrays import infer_mapped_shape
from xtrace.numpy.conversion import asarray

Rows = TypeVar("Rows", bound="RowStorage")


class RowStorage(BatchedStorage):
    """A sparse array that stores elements, columns ``indices[*batch, nse]``, and ``indptr[*batch, rows + 1]``."""

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        super().__init__(args, shape=shape, indices_sorted=indices_sorted, unique_indices=unique_indices)
        self.data, self.indices, self.indptr = (asarray(x) for x in args)
        self.layout(type(self).__name__)

    @property
    def nse(self) -> int:
        return int(self.indices.shape[-1])

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return int(self.indices.ndim) - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes, which is 2."""
        return 2

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    def layout(self, function: str = "") -> Layout:
        """Return the numbers of axes of each kind; ValueError, with the name `function`, for wrong buffers."""
        return row_layout(self.data, self.indices, self.indptr, self.shape, function=function)

    def remake(self, data: Any, indices: Any, indptr: Any, shape: Sequence[int] | None = None) -> Self:
        """Return an array of the same class with other buffers."""
        return type(self)((data, indices, indptr), shape=self.shape if shape is None else shape)

    def with_data(self, data: Any) -> Self:
        """Return an array with other values at the same indices."""
        return type(self)(
            (data, self.indices, self.indptr), shape=self.shape, indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], SparseInfo]:
        return self._bufs, self._info

    @classmethod
    def tree_unflatten(cls, info: SparseInfo, children: Sequence[Any]) -> Any:
        """Return an array from its buffers. Tree functions may pass any objects as buffers."""
        result = object.__new__(cls)
        result.data, result.indices, result.indptr = children
        result.shape, result.indices_sorted, result.unique_indices = info
        data, indices, indptr = [getattr(x, "shape", None) for x in children]
        if isinstance(data, tuple) and isinstance(indices, tuple) and isinstance(indptr, tuple) and indices:
            n_batch = len(indices) - 1
            rest = 2 + len(data) - 1 - n_batch
            if n_batch + rest != len(result.shape):
                full = tuple([max(sizes) for sizes in zip(data[:n_batch], indices[:-1], indptr[:-1], strict=False)])
                result.shape = infer_mapped_shape(result.shape, full, rest)
        return result


def check_rows(value: Rows, argument: str) -> Rows:
    """Return `value`; TypeError unless it is a BCSR array."""
    if not isinstance(value, RowStorage):
        raise TypeError(
            f"{called_function()}: {argument} must be a BCSR array, got {abbreviate(value)} of type {type(value)}"
        )
    return value
