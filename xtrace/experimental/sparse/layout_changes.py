"""Changes of the layout and the shape of BCOO arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.sparse import index_rows
from xtrace._src.sparse.bcoo_primitives import broadcast_batch
from xtrace._src.sparse.layouts import SparseEfficiencyError, SparseEfficiencyWarning
from xtrace.experimental.sparse.conversions import bcoo_transpose
from xtrace.experimental.sparse.coordinate_storage import (
    Coordinates,
    CoordinateStorage,
    check_coordinates,
    get_batch_shape,
)
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.broadcasting import indices as grid_of
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.operands import axes_of
from xtrace.numpy.reductions.reductions import sum as total

__all__ = ["bcoo_broadcast_in_dim", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_squeeze", "bcoo_update_layout"]


class Buffers:
    """The buffers of a BCOO array, broadcast along its batch axes, and the sizes of its axes by kind."""

    def __init__(self, mat: CoordinateStorage) -> None:
        layout = mat.layout()
        self.batch, ndim = get_batch_shape(mat), mat.ndim
        self.sparse = mat.shape[layout.n_batch : ndim - layout.n_dense]
        self.dense = mat.shape[ndim - layout.n_dense :]
        self.data = broadcast_batch(mat.data, self.batch)
        self.indices = broadcast_batch(mat.indices, self.batch)

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return (*self.batch, *self.sparse, *self.dense)

    @property
    def nse(self) -> int:
        """The number of stored elements of each batch."""
        return int(self.indices.shape[-2])

    def make(self, mat: Coordinates, indices_sorted: bool = False, unique_indices: bool = False) -> Coordinates:
        """Return an array of the class of `mat` with these buffers."""
        return mat.remake(self.data, self.indices, self.shape, indices_sorted, unique_indices)

    def _repeat_positions(self, sizes: Shape) -> Array:
        """Return the positions along axes of `sizes` as index columns, repeated for each stored element."""
        grid = grid_of(sizes, dtype=self.indices.dtype).reshape(len(sizes), -1).T
        return broadcast_to(grid, (*self.batch, self.nse, *grid.shape))

    def make_dense_sparse(self, count: int) -> None:
        """Make the first `count` dense axes the last sparse ones."""
        sizes, self.dense = self.dense[:count], self.dense[count:]
        extra = self._repeat_positions(sizes)
        repeats, nse = extra.shape[-2], self.nse * extra.shape[-2]
        own = self.indices[..., None, :]
        own = broadcast_to(own, (*own.shape[:-2], repeats, own.shape[-1]))
        self.indices = concatenate([own, extra], -1).reshape(*self.batch, nse, len(self.sparse) + count)
        self.data = self.data.reshape(*self.batch, nse, *self.dense)
        self.sparse = (*self.sparse, *sizes)

    def make_batch_sparse(self, count: int) -> None:
        """Make the last `count` batch axes the first sparse ones."""
        kept = len(self.batch) - count
        sizes = self.batch[kept:]
        nse = math.prod(sizes) * self.nse
        grid = grid_of(sizes, dtype=self.indices.dtype).reshape(count, *sizes, 1)
        grid = broadcast_to(grid, (count, *self.batch, self.nse))
        columns = [grid[i][..., None] for i in range(count)]
        self.indices = concatenate([*columns, self.indices], -1)
        self.batch, self.sparse = self.batch[:kept], (*sizes, *self.sparse)
        self.indices = self.indices.reshape(*self.batch, nse, len(self.sparse))
        self.data = self.data.reshape(*self.batch, nse, *self.dense)

    def _match_positions(self, columns: range) -> Array:
        """Return masks (*batch, nse, *sizes): True at the position of each stored element along sparse axes."""
        sizes = tuple([self.sparse[i] for i in columns])
        grid = grid_of(sizes, dtype=self.indices.dtype)
        mask = asarray(True)
        for place, column in zip(grid, columns, strict=True):
            here = self.indices[..., column].reshape(*self.batch, self.nse, *[1] * len(sizes))
            mask = mask & (here == place)
        return broadcast_to(mask, (*self.batch, self.nse, *sizes))

    def make_sparse_dense(self, count: int) -> None:
        """Make the last `count` sparse axes the first dense ones."""
        kept = len(self.sparse) - count
        mask = self._match_positions(range(kept, len(self.sparse)))
        mask = mask.reshape(*mask.shape, *[1] * len(self.dense))
        data = self.data.reshape(*self.batch, self.nse, *[1] * count, *self.dense)
        self.data = where(mask, data, zeros((), data.dtype))
        self.sparse, self.dense = self.sparse[:kept], (*self.sparse[kept:], *self.dense)
        self.indices = self.indices[..., :kept]

    def make_sparse_batch(self, count: int) -> None:
        """Make the first `count` sparse axes the last batch ones."""
        sizes, self.sparse = self.sparse[:count], self.sparse[count:]
        whole, self.sparse = self.sparse, (*sizes, *self.sparse)
        mask = self._match_positions(range(count))
        axis = len(self.batch)
        mask = mask.transpose(*range(axis), *range(axis + 1, mask.ndim), axis)
        shape = (*self.batch, *[1] * count, self.nse)
        data = self.data.reshape(*shape, *self.dense)
        self.data = where(mask.reshape(*mask.shape, *[1] * len(self.dense)), data, zeros((), data.dtype))
        self.indices = self.indices[..., count:].reshape(*shape, len(whole))
        self.batch, self.sparse = (*self.batch, *sizes), whole
        self.indices = broadcast_batch(self.indices, self.batch)


_INEFFICIENT = ("error", "warn", None)


def bcoo_update_layout(
    mat: Coordinates, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> Coordinates:
    """Convert a BCOO array to another number of batch and of dense axes.

    Sparse axes that become batch or dense axes are stored in full, which is inefficient unless their sizes are 0 or 1.

    Args:
        mat: a BCOO array.
        n_batch: the number of leading batch axes; None to keep it.
        n_dense: the number of trailing dense axes; None to keep it.
        on_inefficient: ``"error"``, ``"warn"``, or None to allow an inefficient layout.

    Returns:
        A BCOO array of the same elements.

    Raises:
        TypeError: `mat` is not a BCOO array.
        SparseEfficiencyError: the new layout is inefficient, and `on_inefficient` is ``"error"``.
        ValueError: a number of axes is negative or too large, or `on_inefficient` has another value.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.eye(3), n_batch=1)
        >>> sparse.bcoo_update_layout(mat, n_batch=0)
        BCOO(float32[3, 3], nse=3)
    """
    mat = check_coordinates(mat, "mat")
    if on_inefficient not in _INEFFICIENT:
        raise ValueError(
            f"bcoo_update_layout: on_inefficient is 'error', 'warn' or None, got {abbreviate(on_inefficient)}"
        )
    layout = mat.layout()
    batch = layout.n_batch if n_batch is None else to_integer("n_batch", n_batch)
    dense = layout.n_dense if n_dense is None else to_integer("n_dense", n_dense)
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={batch} and n_dense={dense} do not fit an array of {mat.ndim} axes"
        )
    if (batch, dense) == (layout.n_batch, layout.n_dense):
        return mat
    _report_inefficiency(mat, batch, dense, on_inefficient)
    buffers = Buffers(mat)
    if dense < layout.n_dense:
        buffers.make_dense_sparse(layout.n_dense - dense)
    if batch < layout.n_batch:
        buffers.make_batch_sparse(layout.n_batch - batch)
    if dense > layout.n_dense:
        buffers.make_sparse_dense(dense - layout.n_dense)
    if batch > layout.n_batch:
        buffers.make_sparse_batch(batch - layout.n_batch)
    return buffers.make(mat)


def _report_inefficiency(mat: CoordinateStorage, batch: int, dense: int, on_inefficient: str | None) -> None:
    axes = (
        ("n_batch", mat.n_batch, batch, mat.shape[mat.n_batch : batch]),
        ("n_dense", mat.n_dense, dense, mat.shape[mat.ndim - dense : mat.ndim - mat.n_dense]),
    )
    for name, before, after, sizes in axes:
        if after > before and any(size > 1 for size in sizes):
            text = (
                f"bcoo_update_layout: raising {name} from {before} to {after} stores all elements along axes of sizes "
                f"{sizes}, of an array of shape {mat.shape}. If that is what you want, pass "
            )
            if on_inefficient == "error":
                raise SparseEfficiencyError(text + "on_inefficient='warn' or None")
            if on_inefficient == "warn":
                warn_user(text + "on_inefficient=None", SparseEfficiencyWarning)


def bcoo_reduce_sum(mat: Any, *, axes: Sequence[int]) -> Any:
    """Sum a BCOO array over axes; the terms of sums over sparse and batch axes stay stored as duplicates.

    Args:
        mat: a BCOO array.
        axes: the axes to sum over.

    Returns:
        A BCOO array without these axes.

    Raises:
        TypeError: `mat` is not a BCOO array.
        ValueError: an axis is out of bounds or given twice.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_reduce_sum(sparse.BCOO.fromdense(jnp.ones((2, 3))), axes=(0,)).todense()
        Array([2., 2., 2.], dtype=float32)
    """
    mat = check_coordinates(mat, "mat")
    reduced = sorted(axes_of(tuple(axes), mat.ndim))
    layout = mat.layout()
    batch, sparse, dense = layout.split_axes(reduced)
    data = total(mat.data, dense) if dense else mat.data
    last = layout.n_batch + layout.n_sparse
    shape = tuple([n for i, n in enumerate(mat.shape) if i < last or i not in reduced])
    mat = mat.remake(data, mat.indices, shape, mat.indices_sorted, mat.unique_indices)
    if not batch and not sparse:
        return mat
    if batch:
        kept = [i for i in range(layout.n_batch) if i not in batch]
        mat = bcoo_transpose(mat, permutation=(*kept, *batch, *range(layout.n_batch, mat.ndim)))
        mat = bcoo_update_layout(mat, n_batch=len(kept))
        sparse = [*range(len(batch)), *[i + len(batch) for i in sparse]]
    return drop_sparse_axes(mat, sparse)


def drop_sparse_axes(mat: Any, axes: Sequence[int]) -> Any:
    """Sum over sparse axes by dropping their indices: the terms become duplicates."""
    kept = [i for i in range(mat.n_sparse) if i not in axes]
    sizes = [mat.shape[mat.n_batch + i] for i in range(mat.n_sparse)]
    data, indices = mat.data, mat.indices
    if axes:
        bounds = asarray(sizes, dtype=indices.dtype) if sizes else zeros((0,), indices.dtype)
        outside = (indices >= bounds).any(-1)
        if kept:
            last = asarray([sizes[i] for i in kept], dtype=indices.dtype)
            indices = where(outside[..., None], last, index_rows.select_columns(indices, kept))
        else:
            indices = indices[..., :0]
            data = where(outside.reshape(*outside.shape, *[1] * mat.n_dense), zeros((), data.dtype), data)
    shape = [n for i, n in enumerate(mat.shape) if i - mat.n_batch not in axes or i < mat.n_batch]
    return mat.remake(data, indices, shape)


def _split_sizes(old: Sequence[Shape], new: Shape) -> list[Shape]:
    """Split the new sizes into batch, sparse and dense axes with the same products as the old axes."""
    parts, rest = [], new
    for kind, sizes in zip(("batch", "sparse"), old[:2], strict=True):
        wanted = math.prod(sizes)
        ends = [i for i in range(len(rest) + 1) if math.prod(rest[:i]) == wanted]
        if not ends:
            raise ValueError(
                f"{called_function()}: the new shape {new} would mix {kind} axes, of sizes {sizes}, with others; "
                "change the layout with update_layout first"
            )
        # Axes of size 1 belong to the axes before them.
        end = ends[-1]
        parts.append(rest[:end])
        rest = rest[end:]
    if math.prod(rest) != math.prod(old[2]):
        raise ValueError(
            f"{called_function()}: the new shape {new} would mix dense axes, of sizes {old[2]}, with others"
        )
    return [*parts, rest]


def bcoo_reshape(
    mat: Any, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: None = None
) -> Any:
    """Reshape a BCOO array: its batch axes, its sparse axes, and its dense axes.

    Args:
        mat: a BCOO array.
        new_sizes: the new shape, which must not mix axes of different kinds.
        dimensions: a permutation of the axes, applied before; None for the identity.
        sharding: must be None.

    Returns:
        A BCOO array of shape `new_sizes`.

    Raises:
        NotImplementedError: `sharding` is given.
        TypeError: `mat` is not a BCOO array.
        ValueError: the sizes do not agree, or axes of different kinds would be mixed.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_reshape(sparse.BCOO.fromdense(jnp.eye(2)), new_sizes=(4,)).indices.ravel()
        Array([0, 3], dtype=int32)
    """
    mat = check_coordinates(mat, "mat")
    refuse_sharding(sharding)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new = integer_tuple("new_sizes", new_sizes)
    if math.prod(new) != mat.size:
        raise ValueError(
            f"bcoo_reshape: an array of shape {mat.shape}, of {mat.size} elements, cannot have shape {new}"
        )
    buffers = Buffers(mat)
    batch, sparse, dense = _split_sizes((buffers.batch, buffers.sparse, buffers.dense), new)
    count, nse = math.prod(buffers.batch) * buffers.nse, buffers.nse
    rows = buffers.indices.reshape(count, len(buffers.sparse))
    places = index_rows.ravel(rows, buffers.sparse)
    buffers.indices = index_rows.unravel(places, sparse, rows.dtype).reshape(*batch, nse, len(sparse))
    buffers.data = buffers.data.reshape(*batch, nse, *dense)
    buffers.batch, buffers.sparse, buffers.dense = batch, sparse, dense
    return buffers.make(mat)


def refuse_sharding(sharding: object) -> None:
    """Raise NotImplementedError if a sharding is given."""
    if sharding is not None:
        raise NotImplementedError(
            f"{called_function()}: shardings of sparse arrays are not supported; leave it at None"
        )


def bcoo_squeeze(arr: Any, *, dimensions: Sequence[int]) -> Any:
    """Remove axes of size 1 from a BCOO array.

    Args:
        arr: a BCOO array.
        dimensions: the axes to remove.

    Returns:
        A BCOO array without these axes.

    Raises:
        TypeError: `arr` is not a BCOO array.
        ValueError: an axis is out of bounds, given twice, or not of size 1.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_squeeze(sparse.BCOO.fromdense(jnp.ones((1, 3))), dimensions=(0,))
        BCOO(float32[3], nse=3)
    """
    arr = check_coordinates(arr, "arr")
    removed = axes_of(tuple(dimensions), arr.ndim)
    layout = arr.layout()
    long = [i for i in removed if arr.shape[i] != 1]
    if long:
        raise ValueError(f"bcoo_squeeze: axes {long} of an array of shape {arr.shape} are not of size 1")
    batch, sparse, dense = layout.split_axes(removed)
    data, indices = arr.data.squeeze((*batch, *dense)), arr.indices.squeeze(batch)
    shape = [n for i, n in enumerate(arr.shape) if i not in removed or i in layout.sparse_axes]
    if not sparse:
        return arr.remake(data, indices, shape, arr.indices_sorted, arr.unique_indices)
    smaller = drop_sparse_axes(arr.remake(data, indices, shape), sparse)
    return smaller.remake(*smaller._bufs, smaller.shape, arr.indices_sorted, arr.unique_indices)


def bcoo_broadcast_in_dim(
    mat: Any, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> Any:
    """Broadcast a BCOO array to a shape with as many axes or more.

    Args:
        mat: a BCOO array.
        shape: the new shape.
        broadcast_dimensions: the axis of the result that each axis of `mat` becomes, in ascending order. New axes
            before the first sparse axis are batch axes, those after the first dense axis are dense, others are sparse.
        sharding: must be None.

    Returns:
        A BCOO array of shape `shape`.

    Raises:
        NotImplementedError: a new sparse axis is longer than 1, a sparse axis of size 1 would be repeated, or
            `sharding` is given.
        TypeError: `mat` is not a BCOO array.
        ValueError: the shapes and axes do not agree.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.array([0.0, 2.0]))
        >>> sparse.bcoo_broadcast_in_dim(mat, shape=(3, 2), broadcast_dimensions=(1,))
        BCOO(float32[3, 2], nse=1, n_batch=1)
    """
    mat = check_coordinates(mat, "mat")
    refuse_sharding(sharding)
    layout = mat.layout()
    new = integer_tuple("shape", shape)
    places = integer_tuple("broadcast_dimensions", broadcast_dimensions)
    fits = len(places) == mat.ndim and list(places) == sorted(set(places)) and all(0 <= i < len(new) for i in places)
    if not fits or any(n not in (1, new[i]) for n, i in zip(mat.shape, places, strict=True)):
        raise ValueError(
            f"bcoo_broadcast_in_dim: an array of shape {mat.shape} does not broadcast to {new} with its axes at "
            f"{places}"
        )
    first_sparse, first_dense = layout.n_batch, layout.n_batch + layout.n_sparse
    n_dense = len(new) - places[first_dense] if layout.n_dense else 0
    n_batch = places[first_sparse] if layout.n_sparse else len(new) - n_dense
    sparse = list(range(n_batch, len(new) - n_dense))
    repeated = [i for i in sparse if new[i] != 1 and (i not in places or mat.shape[places.index(i)] != new[i])]
    if repeated:
        raise NotImplementedError(
            f"bcoo_broadcast_in_dim: the sparse axes {repeated} of the new shape {new} would repeat elements; make "
            "them batch axes with update_layout first"
        )
    batch_places = places[: layout.n_batch]

    def widen(buffer: Array) -> Array:
        old = buffer.shape[: layout.n_batch]
        sizes = [new[i] if i not in batch_places else old[batch_places.index(i)] for i in range(n_batch)]
        rest = buffer.shape[layout.n_batch :]
        aligned = [1] * n_batch
        for place, size in zip(batch_places, old, strict=True):
            aligned[place] = size
        return broadcast_to(buffer.reshape(*aligned, *rest), (*sizes, *rest))

    data, indices = widen(mat.data), widen(mat.indices)
    if n_dense:
        aligned, start = [1] * n_dense, len(new) - n_dense
        for place, size in zip(places[first_dense:], mat.shape[first_dense:], strict=True):
            aligned[place - start] = size
        lead = data.shape[: n_batch + 1]
        data = broadcast_to(data.reshape(*lead, *aligned), (*lead, *new[start:]))
    columns = []
    for place in sparse:
        own = places.index(place) - first_sparse if place in places else None
        nothing = zeros((*indices.shape[:-1], 1), indices.dtype)
        columns.append(nothing if own is None else indices[..., own : own + 1])
    indices = concatenate(columns, -1) if columns else indices[..., :0]
    return mat.remake(data, indices, new)
