"""Indices of references: their form in equations, and reads and writes of arrays at an index.

An index is a static `RefIndexer` and its traced parts. The semantics are NumPy's, for slices with positive steps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, reshape
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import ReferenceIndexError
from xtrace._src.core.jaxprs.ir import scalar_literal
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from xtrace._src.ops.arrays.gather_scatter import gather, scatter, scatter_add
from xtrace._src.ops.arrays.index_vectors import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from xtrace._src.ops.arrays.slicing import pad, slice, zero_like
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.ops.elementwise.selection import select_n

_PythonSlice = type(np.s_[:])


class RefSlice(NamedTuple):
    """A range of an axis; a traced `start` is None."""

    start: int | None
    size: int
    stride: int

    @property
    def span(self) -> int:
        """The number of elements from the first to the last one."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


class DynamicSlice(NamedTuple):
    """A range of an axis as users write it with `ds`; `start` may be traced."""

    start: Any
    size: int
    stride: int


class RefIndexer(NamedTuple):
    """An index in an equation; `entries` has an integer, None or a `RefSlice` for each axis of `shape`.

    None stands for a traced integer or an index array. The traced parts are operands of the equation, in order. arrays:
    the axes with index arrays. broadcast: the common shape of the indices that are no ranges.
    """

    shape: tuple[int, ...]
    entries: tuple[Any, ...]
    arrays: tuple[int, ...]
    broadcast: tuple[int, ...]

    @property
    def traced_count(self) -> int:
        """The number of traced parts."""
        return sum(e is None or (type(e) is RefSlice and e.start is None) for e in self.entries)

    @property
    def points(self) -> tuple[int, ...]:
        """The axes indexed by an integer or an array."""
        return tuple([i for i, e in enumerate(self.entries) if type(e) is not RefSlice])

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the selected part of the array."""
        ranges = [e.size for e in self.entries if type(e) is RefSlice]
        place = self.array_place
        return (*ranges[:place], *self.broadcast, *ranges[place:])

    @property
    def array_place(self) -> int:
        """The position of the axes of index arrays in the result: the place of adjacent indices, otherwise 0."""
        points = self.points
        if not self.arrays or points[-1] - points[0] != len(points) - 1:
            return 0
        return points[0]

    def show(self, names: Sequence[str]) -> str:
        """Return the text of the index; `names` are the names of the traced parts."""
        left, shown = list(names), []
        for size, entry in zip(self.shape, self.entries, strict=True):
            if type(entry) is not RefSlice:
                shown.append(left.pop(0) if entry is None else str(entry))
                continue
            stride = f":{entry.stride}" if entry.stride != 1 else ""
            if entry.start is None:
                start = left.pop(0)
                shown.append(f"{start}:{start}+{entry.span}{stride}")
                continue
            stop = entry.start + entry.span
            first, last = str(entry.start) if entry.start else "", str(stop) if stop != size and not stride else ""
            shown.append(f"{first}:{last}{stride}")
        return f"[{','.join(shown)}]"


def ds(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """Return the range of `size` elements from `start` on, as an index of a reference.

    Args:
        start: the first index, which may be traced; None for 0. Without `size` it is the size of a range from 0 on.
        size: the number of elements, an integer.
        stride: the step from element to element.

    Returns:
        An index.

    Raises:
        TypeError: `size` is traced.

    Example:
        >>> ref = xtrace.new_ref(jnp.arange(5.0))
        >>> ref[xtrace.ds(1, 3)]
        Array([1., 2., 3.], dtype=float32)
    """
    if size is None:
        start, size = 0, start
    try:
        number, step = operator.index(size), 1 if stride is None else operator.index(stride)
    except TypeError:
        raise TypeError(
            f"ds: size and stride must be integers known while tracing, got {abbreviate(size)} and {abbreviate(stride)}"
        ) from None
    if number < 0 or step < 1:
        raise ReferenceIndexError(f"ds: size must not be negative and stride must be 1 or more, got {number}, {step}")
    return DynamicSlice(0 if start is None else start, number, step)


def parse_index(shape: tuple[int, ...], index: Any) -> tuple[tuple[RefIndexer, ...], list[Any]]:
    """Return the indexers of a user's index into an array of shape `shape`, none for the whole, and its traced parts.

    ReferenceIndexError if the index does not fit, TypeError for an object that is no index.
    """
    if index is None or index is Ellipsis or (type(index) is tuple and not index):
        return (), []
    parts = list(index) if type(index) is tuple else [index]
    if sum(p is Ellipsis for p in parts) > 1:
        raise ReferenceIndexError(f"the index {abbreviate(index)} of a reference has more than one ellipsis")
    missing = len(shape) - sum(p is not Ellipsis for p in parts)
    if missing < 0:
        raise ReferenceIndexError(f"a reference of shape {shape} has fewer axes than the {len(parts)} of the index")
    place = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    parts[place : place + 1] = [_PythonSlice(None)] * missing
    traced: list[Any] = []
    entries = [_parse_entry(part, axis, shape[axis], traced) for axis, part in enumerate(parts)]
    shapes = [aval_of(x).shape if e is None else () for e, x in _pair_with_traced(entries, traced)]
    try:
        broadcast = np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ReferenceIndexError(f"the index arrays of a reference do not fit together: {error}") from None
    arrays = tuple([axis for axis, each in enumerate(shapes) if each])
    return (RefIndexer(shape, tuple(entries), arrays, broadcast),), traced


def _pair_with_traced(entries: Sequence[Any], traced: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the entries, each with its traced part or None."""
    left = iter(traced)
    has_part = [e is None or (type(e) is RefSlice and e.start is None) for e in entries]
    return [(e, next(left) if part else None) for e, part in zip(entries, has_part, strict=True)]


def _parse_entry(part: Any, axis: int, size: int, traced: list[Any]) -> Any:
    """Return the entry of one axis, and append its traced part to `traced`."""
    if isinstance(part, _PythonSlice):
        return _parse_slice(part, axis, size)
    if type(part) is DynamicSlice:
        return _parse_dynamic_slice(part, axis, size, traced)
    if isinstance(part, (list, tuple)):
        part = np.asarray(part)
    if part is None or isinstance(part, (bool, np.bool_)) or not is_array_like(part):
        raise TypeError(
            f"{abbreviate(part)} of type {type(part)} is no index of a reference: give integers, slices, xtrace.ds or "
            "arrays of integers"
        )
    aval = aval_of(part)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(
            f"an index of a reference has the type {aval.str_short(True)}; indices are integers. Masks are written "
            "with jnp.where on the value of the reference"
        )
    if aval.shape or not isinstance(part, (int, np.generic, np.ndarray)):
        traced.append(part)
        return None
    number = int(part)
    if not -size <= number < size:
        raise ReferenceIndexError(f"the index {number} is out of bounds for axis {axis} of a reference, of size {size}")
    return number


def _parse_slice(part: Any, axis: int, size: int) -> RefSlice:
    try:
        start, stop, stride = part.indices(size)
    except TypeError:
        raise TypeError(
            f"the slice {abbreviate(part)} of axis {axis} of a reference has a traced bound: write "
            "xtrace.ds(start, size), whose start may be traced"
        ) from None
    if stride < 1:
        raise ReferenceIndexError(f"a slice of a reference must have a step of 1 or more, got {stride}")
    return RefSlice(start, len(range(start, stop, stride)), stride)


def _parse_dynamic_slice(part: DynamicSlice, axis: int, size: int, traced: list[Any]) -> RefSlice:
    start: Any = part.start
    known = isinstance(start, (int, np.integer)) and not isinstance(start, bool)
    made = RefSlice(int(start) if known else None, part.size, part.stride)
    if made.span > size or (known and not 0 <= start <= size - made.span):
        raise ReferenceIndexError(
            f"{part.size} elements of axis {axis} of a reference, from {start if known else 'a traced position'} on, "
            f"with the stride {part.stride}, are out of bounds: the size of the axis is {size}"
        )
    if not known:
        aval = aval_of(start)
        if aval.shape or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"xtrace.ds: start must be an integer scalar, got {aval.str_short(True)}")
        traced.append(start)
    return made


def indexed_type(aval: ShapedArray, indexers: Sequence[RefIndexer]) -> ShapedArray:
    """Return the type of the part of an array of type `aval` that `indexers` select, one after the other."""
    return aval.update(shape=indexers[-1].result_shape) if indexers else aval


def read_at(x: Any, indexers: Sequence[RefIndexer], traced: Sequence[Any]) -> Any:
    """Return the part of an array at an index; indices out of bounds are clamped."""
    for indexer in indexers:
        x = _Part(indexer, traced[: indexer.traced_count]).read(x)
        traced = traced[indexer.traced_count :]
    return x


def write_at(x: Any, indexers: Sequence[RefIndexer], traced: Sequence[Any], value: Any) -> Any:
    """Return the array with `value` written at an index; entries of index arrays out of bounds are dropped."""
    return _update_at(x, indexers, traced, value, lambda part, x, value: part.write(x, value))


def add_at(x: Any, indexers: Sequence[RefIndexer], traced: Sequence[Any], value: Any) -> Any:
    """Return the array with `value` added at an index; equal indices add to an element several times."""
    return _update_at(x, indexers, traced, value, lambda part, x, value: part.add(x, value))


def _update_at(
    x: Any, indexers: Sequence[RefIndexer], traced: Sequence[Any], value: Any, update: Callable[[_Part, Any, Any], Any]
) -> Any:
    if len(indexers) == 1:
        return update(_Part(indexers[0], traced), x, value)
    count = indexers[0].traced_count
    part = _Part(indexers[0], traced[:count])
    return part.write(x, _update_at(part.read(x), indexers[1:], traced[count:], value, update))


class _Part:
    """The part of an array at one index: a block that ranges cut out, and index arrays that select its elements."""

    def __init__(self, indexer: RefIndexer, traced: Sequence[Any]) -> None:
        self.indexer = indexer
        arrays = bool(indexer.arrays)
        self.starts: list[Any] = []
        self.spans: list[int] = []
        self.strides: list[int] = []
        self.points: list[Any] = []
        for size, (entry, part) in zip(indexer.shape, _pair_with_traced(indexer.entries, traced), strict=True):
            if type(entry) is RefSlice:
                start, span, stride = part if entry.start is None else entry.start, entry.span, entry.stride
            else:
                point = _wrap(part, size) if entry is None else entry % size
                self.points.append(point)
                # Index arrays select elements of the whole axis.
                start, span, stride = (0, size, 1) if arrays else (point, 1, 1)
            self.starts.append(start)
            self.spans.append(span)
            self.strides.append(stride)
        self.sizes = [-(-span // stride) for span, stride in zip(self.spans, self.strides, strict=True)]

    @property
    def _is_static(self) -> bool:
        return all(type(s) is int for s in self.starts)

    @property
    def _block_shape(self) -> tuple[int, ...]:
        """The shape of the block without the axes of scalar indices."""
        if self.indexer.arrays:
            return tuple(self.sizes)
        return self.indexer.result_shape

    def _cut(self, x: Any) -> Any:
        """Return the range of `x` that the block spans."""
        if self.spans == list(self.indexer.shape):
            return x
        if self._is_static:
            return slice(x, self.starts, [a + n for a, n in zip(self.starts, self.spans, strict=True)])
        return dynamic_slice(x, self.starts, self.spans)

    def read(self, x: Any) -> Any:
        block = self._cut(x)
        if any(s != 1 for s in self.strides):
            block = slice(block, [0] * len(self.spans), self.spans, self.strides)
        if aval_of(block).shape != self._block_shape:
            block = reshape(block, self._block_shape)
        if not self.indexer.arrays:
            return block
        windows, points = self._windows()
        sizes = [1 if i in points else n for i, n in enumerate(self.sizes)]
        numbers = GatherDimensionNumbers(windows, points, points)
        return gather(block, self._index_vectors(), numbers, sizes, mode=GatherScatterMode.CLIP)

    def write(self, x: Any, value: Any) -> Any:
        return self._put(x, scatter(self._take_block(x), *self._scatter(value)) if self.indexer.arrays else value)

    def add(self, x: Any, value: Any) -> Any:
        if self.indexer.arrays:
            return self._put(x, scatter_add(self._take_block(x), *self._scatter(value)))
        return self.write(x, add(self.read(x), value))

    def _take_block(self, x: Any) -> Any:
        block = self._cut(x)
        return slice(block, [0] * len(self.spans), self.spans, self.strides) if self.spans != self.sizes else block

    def _scatter(self, value: Any) -> tuple[Any, Any, ScatterDimensionNumbers]:
        windows, points = self._windows()
        return self._index_vectors(), value, ScatterDimensionNumbers(windows, points, points)

    def _windows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the axes of the result that are ranges, and the axes of the block that index arrays index."""
        place, rank = self.indexer.array_place, len(self.indexer.broadcast)
        count = len(self.indexer.result_shape)
        return tuple([i for i in range(count) if not place <= i < place + rank]), self.indexer.points

    def _index_vectors(self) -> Any:
        shape = self.indexer.broadcast
        columns = []
        for point in self.points:
            value = np.int32(point) if type(point) is int else point
            own = aval_of(value).shape
            axes = range(len(shape) - len(own), len(shape))
            columns.append(broadcast_in_dim(value, (*shape, 1), axes))
        return concatenate(columns, len(shape))

    def _put(self, x: Any, block: Any) -> Any:
        """Return `x` with the block in its place."""
        sizes = tuple(self.sizes)
        if aval_of(block).shape != sizes:
            block = reshape(block, sizes)
        if self.spans != self.sizes:
            gaps = [(0, n - ((m - 1) * s + 1), s - 1) for n, m, s in zip(self.spans, sizes, self.strides, strict=True)]
            inside = pad(np.ones(sizes, np.bool_), np.False_, gaps)
            block = select_n(inside, self._cut(x), pad(block, zero_like(block), gaps))
        if self.spans == list(self.indexer.shape):
            return block
        return dynamic_update_slice(x, block, self.starts)


def _wrap(index: Any, size: int) -> Any:
    """Return traced indices counted from the front."""
    aval = aval_of(index)
    if not dtypes.is_signed(aval.dtype):
        return index
    below = lt(index, scalar_literal(0, aval.dtype))
    return select_n(below, index, add(index, scalar_literal(size, aval.dtype)))
