"""The buffers of BCSR arrays: elements, their columns, and the starts of rows, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.sparse.layouts import Layout, row_layout
from xtrace.experimental.sparse.batched_storage import BatchedStorage

Rows = TypeVar("Rows", bound="RowStorage")


class RowStorage(BatchedStorage):
    """A sparse array that stores elements, columns ``indices[*batch, nse]``, and ``indptr[*batch, rows + 1]``."""

    _names = ("data", "indices", "indptr")
    _index_axes = 1
    indptr: Array

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes, which is 2."""
        return 2

    def layout(self, function: str = "") -> Layout:
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

    @classmethod
    def _count_sparse(cls, indices: Shape) -> int:
        return 2


def check_rows(value: Rows, argument: str) -> Rows:
    """Return `value`; TypeError unless it is a BCSR array."""
    if not isinstance(value, RowStorage):
        raise TypeError(
            f"{called_function()}: {argument} must be a BCSR array, got {abbreviate(value)} of type {type(value)}"
        )
    return value
