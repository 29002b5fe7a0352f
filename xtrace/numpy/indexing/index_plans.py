"""Plans of indices: an index of integers, slices, masks and arrays is read into the steps that carry it out."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import check_broadcast
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic, largest, range_length, smallest, to_size
from xtrace._src.core.trace import Tracer
from xtrace.numpy.arrays.conversion import asarray

_ACCEPTED = "integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are valid indices"


class Plan(NamedTuple):
    """The steps of an index, in the order of application; each numbers the axes left by the step before.

    inserted: positions of new axes of size 1, which scalar booleans index. starts: the first position of the window
    along each axis, None if it is an operand. sizes: the lengths of the window. strides: its steps. reversed: axes
    with a negative step. squeezed: axes indexed by integers. gathered: axes indexed by arrays; None without arrays.
    block: the position of the index arrays' axes in the result. new_axes: positions of axes that `None` adds to the
    result. signed: for each start that is an operand, whether it may be negative.
    """

    inserted: tuple[int, ...]
    starts: tuple[int | None, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    reversed: tuple[int, ...]
    squeezed: tuple[int, ...]
    gathered: tuple[int, ...] | None
    block: int
    new_axes: tuple[int, ...]
    signed: tuple[bool, ...]


class Reading(NamedTuple):
    """The plan of an index and its operands: the starts of the window, then the index arrays.

    outside: the message of the error for a Python number out of bounds; None if all are in bounds.
    """

    plan: Plan
    operands: tuple[Any, ...]
    outside: str | None = None

    def check(self) -> None:
        """Raise IndexError for a Python number out of bounds if ``jax_check_static_indices`` is set."""
        if self.outside is not None and config.check_static_indices.value:
            raise IndexError(self.outside)


def _make_index_error(entry: object, position: int) -> Exception:
    """Return the error of an index of an unsupported kind."""
    where = f" at position {position}"
    if isinstance(entry, (str, bytes)):
        return TypeError(f"string indexing is not supported; got {abbreviate(entry)}{where}. Only {_ACCEPTED}")
    dtype = getattr(entry, "dtype", None)
    if dtype is not None or isinstance(entry, (float, complex)):
        name = getattr(dtype, "name", type(entry).__name__)
        return TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {name}{where}: {abbreviate(entry)}. "
            f"Only {_ACCEPTED}; convert with x.astype(int)"
        )
    return IndexError(f"only {_ACCEPTED}. Got {abbreviate(entry)}{where}")


def _normalize_entry(entry: Any, position: int) -> Any:
    """Return one item of an index as None, Ellipsis, an int, a bool, a slice, or an array of integers or booleans."""
    kind = type(entry)
    if entry is None or entry is Ellipsis or kind is int or kind is bool or kind is slice:
        return entry
    if isinstance(entry, np.bool_):
        return bool(entry)
    if isinstance(entry, (np.integer, int)):
        return int(entry)
    if isinstance(entry, (list, tuple)):
        entry = asarray(entry) if _has_arrays(entry) else np.asarray(entry) if len(entry) else np.zeros((0,), np.int32)
    if isinstance(entry, (np.ndarray, Array)):
        dtype = entry.dtype
    elif hasattr(entry, "__jax_array__"):
        return _normalize_entry(entry.__jax_array__(), position)
    elif is_symbolic(entry):
        return entry.to_array()
    else:
        raise _make_index_error(entry, position)
    if not dtypes.is_integer(dtype) and not dtypes.is_boolean(dtype):
        raise _make_index_error(entry, position)
    if dtypes.is_boolean(dtype):
        if isinstance(entry, Tracer):
            raise explain.boolean_index(entry)
        return bool(entry) if not entry.shape else np.asarray(entry)
    return entry


def _has_arrays(values: Iterable[Any]) -> bool:
    return any(isinstance(x, Array) or (isinstance(x, (list, tuple)) and _has_arrays(x)) for x in values)


def _normalize_index(index: object) -> list[Any]:
    """Return the items of an index; TypeError for a list, which NumPy takes as a tuple or as an array."""
    if isinstance(index, tuple):
        return [_normalize_entry(x, i) for i, x in enumerate(index)]
    if isinstance(index, (list, range)) or (isinstance(index, Sequence) and not isinstance(index, (str, bytes))):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` instead "
            f"of `arr[seq]`. Got {abbreviate(index)}"
        )
    return [_normalize_entry(index, 0)]


def _count_axes(entry: Any) -> int:
    """Return the number of axes that an item of an index consumes."""
    if isinstance(entry, np.ndarray) and entry.dtype == bool:
        return entry.ndim
    return 0 if entry is None or entry is Ellipsis or type(entry) is bool else 1


def _expand_ellipsis(entries: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Replace the ellipsis and missing items at the end by full slices; an ellipsis for no axes stays."""
    consumed = sum(_count_axes(entry) for entry in entries)
    if consumed > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {consumed} were indexed")
    places = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    full = [slice(None)] * (len(shape) - consumed)
    if places and not full:
        return entries
    place = places[0] if places else len(entries)
    return [*entries[:place], *full, *entries[place + 1 :]]


def _find_true_elements(mask: np.ndarray[Any, Any], shape: tuple[int, ...], axis: int) -> list[np.ndarray[Any, Any]]:
    """Return the positions of the true elements of a mask, one array for each axis; IndexError for a wrong shape.

    An axis of the mask may be empty, as in NumPy: it has no positions.
    """
    expected = shape[axis : axis + mask.ndim]
    if not all(own in (0, n) for own, n in zip(mask.shape, expected, strict=True)):
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {axis}: got {mask.shape}, expected {expected}"
        )
    return [result.astype(np.int32) for result in np.nonzero(mask)]


def _find_window(entry: slice, length: int, position: int) -> tuple[int, int, int]:
    """Return the first position, the number of elements and the signed step of a slice's window."""
    parts = []
    for part in (entry.start, entry.stop, entry.step):
        if isinstance(part, Tracer):
            raise explain.slice_entry(part, entry, position)
        try:
            parts.append(None if part is None else to_size(part))
        except TypeError:
            raise TypeError(f"slice entries must be integers or None, got {entry} at position {position}") from None
    if parts[2] == 0:
        raise ValueError(f"slice step cannot be zero, got {entry} at position {position}")
    try:
        positions = range(*slice(*parts).indices(length))
    except InconclusiveDimensionOperation:
        return _find_symbolic_window(parts, length)
    count, step = len(positions), positions.step
    if count == 0:
        return min(max(positions.start, 0), length), 0, 1
    return (positions.start if step > 0 else positions[-1]), count, step


def _find_symbolic_window(parts: Sequence[Any], length: Any) -> tuple[Any, Any, int]:
    """Return the window of a slice, as `_find_window`, for lengths that may be symbolic."""
    start, stop, step = parts
    step = 1 if step is None else operator.index(step)

    def position(given: Any, default: Any, lowest: int, highest: Any) -> Any:
        if given is None:
            return default
        return smallest(largest(given + length if given < 0 else given, lowest), highest)

    if step > 0:
        first, end = position(start, 0, 0, length), position(stop, length, 0, length)
        return first, range_length(first, end, step), step
    first, end = position(start, length - 1, -1, length - 1), position(stop, -1, -1, length - 1)
    count = range_length(end, first, -step)
    return largest(first + (count - 1) * step, 0), count, step


def _is_outside(index: int, length: int) -> bool:
    """Return whether an index is certainly out of bounds; False if a symbolic length leaves that open."""
    try:
        return not -length <= index < length
    except InconclusiveDimensionOperation:
        return False


def _clamp_index(index: int, length: int) -> int:
    """Return a position counted from the front and clamped to the axis, as reads out of bounds are."""
    position = index + length if index < 0 else index
    try:
        return min(max(position, 0), length - 1)
    except InconclusiveDimensionOperation:
        return smallest(largest(position, 0), length - 1)  # type: ignore[no-any-return]


def _describe_outside(index: ArrayLike, axis: int, length: int) -> str | None:
    if type(index) is not int or not _is_outside(index, length):
        return None
    return (
        f"index {index} is out of bounds for axis {axis} with size {length}; the setting jax_check_static_indices "
        "makes that an error"
    )


def _place_axes(layout: list[str], arrays: Sequence[Any]) -> tuple[int, tuple[int, ...]]:
    """Return the position of the index arrays' block among the sliced axes, and the positions of new axes.

    NumPy's rule: adjacent index arrays put the block at the position of the first, others put it in front. An empty
    ellipsis between index arrays separates them, too.
    """
    places = [i for i, kind in enumerate(layout) if kind == "a"]
    rank = len(check_broadcast([np.shape(a) for a in arrays], function="indexing")) if arrays else 0
    together = places == list(range(places[0], places[0] + len(places))) if places else True
    first = places[0] if places and together else 0
    axes: list[str] = []
    block = 0
    for i, kind in enumerate(layout if together else ["a", *(k for k in layout if k != "a")]):
        if kind == "a":
            if i == first:
                block = axes.count("s")
                axes.extend(["b"] * rank)
        elif kind != "e":
            axes.append(kind)
    return block, tuple([i for i, kind in enumerate(axes) if kind == "n"])


class _PlanBuilder:
    """Reads the items of an index one after another, and builds its plan.

    `layout` has the contribution of each item to the result: 'a' the block of index arrays, 'n' a new axis, 's' a
    sliced axis, 'e' no axis, for an empty ellipsis. `taken` is the number of axes that items have consumed.
    """

    def __init__(self, shape: tuple[int, ...], eager: bool, exact: bool, has_arrays: bool) -> None:
        self.shape, self.eager, self.exact, self.has_arrays = shape, eager, exact, has_arrays
        self.inserted: list[int] = []
        self.starts: list[int | None] = []
        self.sizes: list[int] = []
        self.strides: list[int] = []
        self.backward: list[int] = []
        self.squeezed: list[int] = []
        self.arrays: list[Any] = []
        self.gathered: list[int] = []
        self.scalars: list[Any] = []
        self.signed: list[bool] = []
        self.layout: list[str] = []
        self.outside: str | None = None
        self.taken = 0

    def add(self, entry: Any, position: int) -> None:
        """Add one item, in the form that `_normalize_entry` returns."""
        if entry is None:
            self.layout.append("n")
        elif entry is Ellipsis:
            self.layout.append("e")
        elif type(entry) is bool:
            self.inserted.append(len(self.sizes))
            self._add_array(np.zeros(int(entry), np.int32), 1)
        elif type(entry) is slice:
            self._add_slice(entry, position)
        elif isinstance(entry, np.ndarray) and entry.dtype == bool:
            for positions in _find_true_elements(entry, self.shape, self.taken):
                self._add_array(positions, self._take_length())
        elif not self.has_arrays and self.shape[self.taken] == 0:
            raise IndexError(f"index is out of bounds for axis {self.taken} with size 0")
        else:
            self.outside = self.outside or _describe_outside(entry, self.taken, self.shape[self.taken])
            if self.exact or self.has_arrays:
                self._add_gathered_position(entry)
            else:
                self._add_integer(entry)

    def build(self) -> Reading:
        """Return the plan and its operands."""
        block, new_axes = _place_axes(self.layout, self.arrays)
        plan = Plan(
            tuple(self.inserted), tuple(self.starts), tuple(self.sizes), tuple(self.strides), tuple(self.backward),
            tuple(self.squeezed), tuple(self.gathered) if self.arrays else None, block, new_axes, tuple(self.signed),
        )
        return Reading(plan, (*self.scalars, *self.arrays), self.outside)

    def _take_length(self) -> int:
        self.taken += 1
        return self.shape[self.taken - 1]

    def _add_axis(self, start: int | None, size: int, stride: int = 1) -> int:
        """Add an axis of the window, and return its number."""
        self.starts.append(start)
        self.sizes.append(size)
        self.strides.append(stride)
        return len(self.sizes) - 1

    def _add_operand(self, start: Any, signed: bool) -> None:
        """Add the start of a window that is an operand."""
        self.scalars.append(start)
        self.signed.append(signed)

    def _add_array(self, value: ArrayLike, length: int) -> None:
        self.gathered.append(self._add_axis(0, length))
        self.arrays.append(value)
        self.layout.append("a")

    def _add_slice(self, entry: slice, position: int) -> None:
        length = self._take_length()
        start, count, step = _find_window(entry, length, position)
        stride = abs(step)
        window = count if stride == 1 else largest((count - 1) * stride + 1, 0) if count else 0
        is_operand = self.eager and 0 < window < length
        axis = self._add_axis(None if is_operand else start, window, stride)
        if is_operand:
            self._add_operand(start, False)
        if step < 0:
            self.backward.append(axis)
        self.layout.append("s")

    def _add_gathered_position(self, entry: Any) -> None:
        """Add an integer or an array of integers as an index array."""
        length = self._take_length()
        if type(entry) is int and not self.exact and not _is_outside(entry, length):
            entry = _clamp_index(entry, length)
        self._add_array(entry, length)

    def _add_integer(self, entry: Any) -> None:
        """Add an integer, which removes its axis."""
        length = self._take_length()
        start = None
        if type(entry) is int and not self.eager and _is_outside(entry, length):
            # The program clamps it, so that checkify sees the index.
            entry = entry + length if entry < 0 else entry
        elif type(entry) is int:
            entry = _clamp_index(entry, length)
            start = None if self.eager and length > 1 else entry
        if start is None:
            self._add_operand(entry, not isinstance(entry, int) and dtypes.is_signed(entry.dtype))
        self.squeezed.append(self._add_axis(start, 1))


def read_index(shape: tuple[int, ...], index: object, eager: bool, exact: bool) -> Reading:
    """Return the plan of an index for an operand of `shape`.

    `eager` makes the positions of windows operands, so that one program serves all; `exact` makes integers index
    arrays, so that the mode of the gather applies to them.
    """
    entries = _expand_ellipsis(_normalize_index(index), shape)
    has_arrays = any(type(e) is bool or (isinstance(e, (np.ndarray, Array)) and e.ndim) for e in entries)
    builder = _PlanBuilder(shape, eager, exact, has_arrays)
    for position, entry in enumerate(entries):
        builder.add(entry, position)
    return builder.build()
