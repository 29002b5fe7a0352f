"""The buffers of BCOO arrays: elements and their indices, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.annotations import Shape
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.sparse.layouts import Layout, SparseInfo, coordinate_layout
from xtrace.experimental.sparse.batched_storage import BatchedStorage
from xtrace.experimental.sparse.sparse_arrays import infer_mapped_shape
from xtrace.numpy.conversion import asarray

Coordinates = TypeVar("Coordinates", bound="CoordinateStorage")


class CoordinateStorage(BatchedStorage):
    """A sparse array that stores elements ``data[*batch, nse, *dense]`` and ``indices[*batch, nse, n_sparse]``."""

    def __init__(
        self, args: tuple[Any, Any], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        super().__init__(args, shape=shape, indices_sorted=indices_sorted, unique_indices=unique_indices)
        self.data, self.indices = (asarray(x) for x in args)
        self.layout(type(self).__name__)

    @property
    def nse(self) -> int:
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return int(self.indices.ndim) - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return int(self.indices.shape[-1])

    @property
    def _bufs(self) -> tuple[Any, Any]:
        return self.data, self.indices

    def layout(self, function: str = "") -> Layout:
        """Return the numbers of axes of each kind; ValueError, with the name `function`, for wrong buffers."""
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

    def tree_flatten(self) -> tuple[tuple[Any, Any], SparseInfo]:
        return self._bufs, self._info

    @classmethod
    def tree_unflatten(cls, info: SparseInfo, children: Sequence[Any]) -> Any:
        """Return an array from its buffers. Tree functions may pass any objects as buffers."""
        result = object.__new__(cls)
        result.data, result.indices = children
        result.shape, result.indices_sorted, result.unique_indices = info
        indices, data = (getattr(x, "shape", None) for x in (result.indices, result.data))
        if isinstance(indices, tuple) and isinstance(data, tuple) and len(indices) >= 2:
            n_batch = len(indices) - 2
            rest = indices[-1] + len(data) - 1 - n_batch
            if n_batch + rest != len(result.shape):
                full = tuple([max(pair) for pair in zip(data[:n_batch], indices[:n_batch], strict=False)])
                result.shape = infer_mapped_shape(result.shape, full, rest)
        return result


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
