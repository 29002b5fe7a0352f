"""The base class of BCOO and BCSR arrays: batch axes of buffers, and dense axes of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.sparse.layouts import Layout, SparseInfo
from xtrace.experimental.sparse.sparse_arrays import JAXSparse, infer_mapped_shape
from xtrace.numpy.arrays.conversion import asarray


class BatchedStorage(JAXSparse):
    """A sparse array with batch axes of its buffers, and dense axes of its elements."""

    indices: Array
    indices_sorted: bool
    unique_indices: bool
    # The names of the buffers, and the number of axes of one batch of indices.
    _names: ClassVar[tuple[str, ...]]
    _index_axes: ClassVar[int]
    # Arrays with the same pattern object store elements at the same indices.
    pattern: object = None

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        for name, buffer in zip(self._names, args, strict=True):
            setattr(self, name, asarray(buffer))
        self.layout(type(self).__name__)

    @property
    def _bufs(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._names])

    def layout(self, function: str = "") -> Layout:
        """Return the numbers of axes of each kind; ValueError, with the name `function`, for wrong buffers."""
        raise NotImplementedError(f"{type(self).__name__} does not define layout")

    @property
    def nse(self) -> int:
        return int(self.indices.shape[-self._index_axes])

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return int(self.indices.ndim) - self._index_axes

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return int(self.data.ndim) - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def tree_flatten(self) -> tuple[tuple[Any, ...], SparseInfo]:
        return self._bufs, self._info

    @classmethod
    def _count_sparse(cls, indices: Shape) -> int:
        """Return the number of sparse axes for indices of a shape."""
        raise NotImplementedError(f"{cls.__name__} does not define _count_sparse")

    @classmethod
    def tree_unflatten(cls, info: SparseInfo, children: Sequence[Any]) -> Any:
        """Return an array from its buffers. Tree functions may pass any objects as buffers."""
        result = object.__new__(cls)
        for name, buffer in zip(cls._names, children, strict=True):
            setattr(result, name, buffer)
        result.shape, result.indices_sorted, result.unique_indices = info
        shapes: list[Any] = [getattr(x, "shape", None) for x in children]
        if all(isinstance(shape, tuple) for shape in shapes) and len(shapes[1]) >= cls._index_axes:
            n_batch = len(shapes[1]) - cls._index_axes
            rest = cls._count_sparse(shapes[1]) + len(shapes[0]) - 1 - n_batch
            if n_batch + rest != len(result.shape):
                full = tuple([max(sizes) for sizes in zip(*[shape[:n_batch] for shape in shapes], strict=False)])
                result.shape = infer_mapped_shape(result.shape, full, rest)
        return result

    def _description(self) -> str:
        extra = "".join([f", {name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(self, name))])
        return f"nse={self.nse}{extra}"
