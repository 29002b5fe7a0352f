"""The buffers of BCOO arrays: elements and their indices, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from xtrace._src.core.annotations import Shape
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.sparse.layouts import Layout, coordinate_layout
from xtrace.experimental.sparse.batched_storage import BatchedStorage

Coordinates = TypeVar("Coordinates", bound="CoordinateStorage")


class CoordinateStorage(BatchedStorage):
    """A sparse array that stores elements ``data[*batch, nse, *dense]`` and ``indices[*batch, nse, n_sparse]``."""

    _names = ("data", "indices")
    _index_axes = 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return int(self.indices.shape[-1])

    def layout(self, function: str = "") -> Layout:
        return coordinate_layout(self.data, self.indices, self.shape, function=function)

    def remake(
        self, data: Any, indices: Any, shape: Sequence[int] | None = None, indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Self:
        """Return an array of the same class with other buffers."""
        shape = self.shape if shape is None else shape
        return type(self)((data, indices), shape=shape, indices_sorted=indices_sorted, unique_indices=unique_indices)

    def with_data(self, data: Any) -> Self:
        """Return an array with other values at the same indices."""
        result = self.remake(data, self.indices, self.shape, self.indices_sorted, self.unique_indices)
        result.pattern = self.pattern
        return result

    @classmethod
    def _count_sparse(cls, indices: Shape) -> int:
        return int(indices[-1])


def check_coordinates(value: Coordinates, argument: str) -> Coordinates:
    """Return `value`; TypeError unless it is a BCOO array."""
    if not isinstance(value, CoordinateStorage):
        raise TypeError(
            f"{called_function()}: {argument} must be a BCOO array, got {abbreviate(value)} of type {type(value)}"
        )
    return value


def get_batch_shape(mat: CoordinateStorage) -> Shape:
    """Return the sizes of the batch axes."""
    return mat.shape[: mat.n_batch]
