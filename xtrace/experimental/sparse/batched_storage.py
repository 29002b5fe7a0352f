"""The base class of BCOO and BCSR arrays: batch axes of buffers, and dense axes of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.sparse.layouts import SparseInfo
from xtrace.experimental.sparse.sparse_arrays import JAXSparse


class BatchedStorage(JAXSparse):
    """A sparse array with batch axes of its buffers, and dense axes of its elements."""

    indices_sorted: bool
    unique_indices: bool
    # Arrays with the same pattern object store elements at the same indices.
    pattern: object = None

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        raise NotImplementedError(f"{type(self).__name__} does not define n_batch")

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return int(self.data.ndim) - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _description(self) -> str:
        extra = "".join([f", {name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(self, name))])
        return f"nse={self.nse}{extra}"
