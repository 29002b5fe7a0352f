"""Indexing: ``x[index]``, ``x.at[index]`` and `take`.

An index is read once into a `Plan`: a window of the operand (a slice, or a dynamic slice for a traced position), a
gather for index arrays, and the axes that `None` adds. Equal plans share compiled programs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, check_broadcast, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import scalar_aval
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import (
    is_known_to_exceed,
    is_symbolic,
    largest,
    range_length,
    smallest,
    to_size,
)
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.ops.arrays import gather_scatter, index_vectors, slicing
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.runtime.transfer import current_device, scalar_array
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.operands import broadcast_operand_to, refuse, scalar_of, wrap_indices

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


class Options(NamedTuple):
    """The out-of-bounds mode of a gather, and promises about its index arrays."""

    mode: Any = None
    fill_value: Any = None
    sorted: bool = False
    unique: bool = False
    wrap: bool = True


DEFAULT = Options()


# Clips positions that are out of bounds, without an error.
CLIPPED = Options(index_vectors.GatherScatterMode.CLIP)


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


def read_index(shape: tuple[int, ...], index: object, eager: bool, exact: bool) -> Reading:
    """Return the plan of an index for an operand of `shape`.

    `eager` makes the positions of windows operands, so that one program serves all; `exact` makes integers index
    arrays, so that the mode of the gather applies to them.
    """
    entries = _expand_ellipsis(_normalize_index(index), shape)
    has_arrays = any(type(e) is bool or (isinstance(e, (np.ndarray, Array)) and e.ndim) for e in entries)
    advanced = exact or has_arrays
    inserted: list[int] = []
    starts: list[int | None] = []
    sizes: list[int] = []
    strides: list[int] = []
    backward: list[int] = []
    squeezed: list[int] = []
    arrays: list[Any] = []
    gathered: list[int] = []
    scalars: list[Any] = []
    signed: list[bool] = []
    # What each item adds to the result: 'a' the block of index arrays, 'n' a new axis, 's' a sliced axis,
    # 'e' no axis: an empty ellipsis.
    layout: list[str] = []
    outside: str | None = None
    taken = 0

    def axis_of_length(start: int | None, size: int, stride: int = 1) -> int:
        starts.append(start)
        sizes.append(size)
        strides.append(stride)
        return len(sizes) - 1

    def add_array(value: ArrayLike, length: int) -> None:
        gathered.append(axis_of_length(0, length))
        arrays.append(value)
        layout.append("a")

    for position, entry in enumerate(entries):
        if entry is None:
            layout.append("n")
        elif entry is Ellipsis:
            layout.append("e")
        elif type(entry) is bool:
            inserted.append(len(sizes))
            add_array(np.zeros(int(entry), np.int32), 1)
        elif type(entry) is slice:
            length = shape[taken]
            start, count, step = _find_window(entry, length, position)
            stride = abs(step)
            window = count if stride == 1 else largest((count - 1) * stride + 1, 0) if count else 0
            axis = axis_of_length(start, window, stride)
            if eager and 0 < window < length:
                starts[axis] = None
                scalars.append(start)
                signed.append(False)
            if step < 0:
                backward.append(axis)
            layout.append("s")
            taken += 1
        elif isinstance(entry, np.ndarray) and entry.dtype == bool:
            vectors = _find_true_elements(entry, shape, taken)
            for values in vectors:
                add_array(values, shape[taken])
                taken += 1
        elif not has_arrays and shape[taken] == 0:
            raise IndexError(f"index is out of bounds for axis {taken} with size 0")
        elif advanced:
            length = shape[taken]
            outside = outside or _describe_outside(entry, taken, length)
            if type(entry) is int and not exact and not _is_outside(entry, length):
                entry = _clamp_index(entry, length)
            add_array(entry, length)
            taken += 1
        else:
            length = shape[taken]
            outside = outside or _describe_outside(entry, taken, length)
            if type(entry) is int and not eager and _is_outside(entry, length):
                # The program clamps it, so that checkify sees the index.
                entry = entry + length if entry < 0 else entry
                axis = axis_of_length(None, 1)
            elif type(entry) is int:
                entry = _clamp_index(entry, length)
                axis = axis_of_length(None if eager and length > 1 else entry, 1)
            else:
                axis = axis_of_length(None, 1)
            if starts[axis] is None:
                scalars.append(entry)
                signed.append(not isinstance(entry, int) and dtypes.is_signed(entry.dtype))
            squeezed.append(axis)
            taken += 1
    block, new_axes = _place_axes(layout, arrays)
    plan = Plan(
        tuple(inserted), tuple(starts), tuple(sizes), tuple(strides), tuple(backward), tuple(squeezed),
        tuple(gathered) if arrays else None, block, new_axes, tuple(signed),
    )
    return Reading(plan, (*scalars, *arrays), outside)


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


@inline_jit
def _apply_plan(x: Array, *operands: ArrayLike, plan: Plan, options: Options) -> Array:
    """Carry out a plan; `operands` are its starts and its index arrays."""
    rest = list(operands)
    x = shapes.expand_dims(x, plan.inserted)
    x = _take_window(x, rest, plan)
    if plan.reversed:
        x = shapes.rev(x, plan.reversed)
    if plan.squeezed:
        x = shapes.squeeze(x, plan.squeezed)
    if plan.gathered is not None:
        x = gather_elements(x, rest, plan.gathered, plan.block, options)
    if plan.new_axes:
        x = shapes.expand_dims(x, plan.new_axes)
    return x


def _take_window(x: Array, operands: list[Any], plan: Plan) -> Array:
    """Return the window of `x`, and remove its starts from the list of operands."""
    starts: list[Any] = list(plan.starts)
    strides = plan.strides if max(plan.strides, default=1) > 1 else None
    if None in starts:
        dtype = dtypes.int32
        signs = list(plan.signed)
        for axis, start in enumerate(starts):
            starts[axis] = (
                scalar_of(start, dtype)
                if start is not None
                else to_position(operands.pop(0), x.shape[axis], signs.pop(0), dtype)
            )
        x = dynamic_slice(x, starts, plan.sizes, allow_negative_indices=False)
        return x if strides is None else slicing.slice(x, (0,) * x.ndim, plan.sizes, strides)
    limits = [start + size for start, size in zip(starts, plan.sizes, strict=True)]
    if strides is None and tuple(plan.sizes) == x.shape:
        return x
    return slicing.slice(x, starts, limits, strides)


def to_position(index: Any, length: int, signed: bool, dtype: DTypeLike) -> Any:
    """Return an index as a position of type `dtype`; a negative one counts from the end if `signed`."""
    if isinstance(index, np.ndarray):
        return np.where((index < 0) & signed, index + length, index).astype(dtype)
    aval = operand_aval(index, 0, function="indexing")
    if signed:
        if is_known_to_exceed(length, dtypes.iinfo(aval.dtype).max):
            index = convert_to(index, dtype)
            aval = operand_aval(index, 0, function="indexing")
        moved = elementwise.add(index, scalar_of(length, aval.dtype))
        index = select_n(lt(index, scalar_of(0, aval.dtype)), index, moved)
    return convert_to(index, dtype)


def gather_elements(x: Any, indices: Sequence[Any], axes: tuple[int, ...], block: int, options: Options) -> Array:
    """Return `x` indexed along `axes` by index arrays, which broadcast; their axes come at position `block`."""
    avals = [operand_aval(i, 0, function="indexing") for i in indices]
    shape = check_broadcast([a.shape for a in avals], function="indexing")
    others = [n for i, n in enumerate(x.shape) if i not in axes]
    whole = (*others[:block], *shape, *others[block:])
    if 0 in whole:
        return convert_to(zeros(whole, x.dtype), x.dtype, x.weak_type)
    for axis in axes:
        if x.shape[axis] == 0:
            raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    x64 = config.enable_x64.value
    dtype = dtypes.int64 if x64 and any(a.dtype.itemsize == 8 for a in avals) else dtypes.int32
    positions = []
    for index, aval, axis in zip(indices, avals, axes, strict=True):
        position = to_position(index, x.shape[axis], options.wrap and dtypes.is_signed(aval.dtype), dtype)
        position = broadcast_operand_to(position, aval.shape, shape, function="indexing")
        positions.append(shapes.expand_dims(position, (-1,)))
    start_indices = positions[0] if len(positions) == 1 else concatenate(positions, len(shape))
    offsets = tuple([i for i in range(x.ndim - len(axes) + len(shape)) if not block <= i < block + len(shape)])
    numbers = index_vectors.GatherDimensionNumbers(offset_dims=offsets, collapsed_slice_dims=axes, start_index_map=axes)
    return gather_scatter.gather(
        x, start_indices, numbers, [1 if i in axes else n for i, n in enumerate(x.shape)],
        unique_indices=options.unique or not shape, indices_are_sorted=options.sorted or not shape,
        mode=index_vectors.GatherScatterMode.PROMISE_IN_BOUNDS if options.mode is None else options.mode,
        fill_value=options.fill_value,
    )


# Plans of indices without arrays, by the operand's shape and the index.
_readings = Table(8192)


def _find_reading(shape: tuple[int, ...], index: object, eager: bool) -> Reading:
    key = _make_key(index)
    if key is None:
        return read_index(shape, index, eager, False)
    whole = (shape, eager, key)
    reading = _readings.get(whole)
    if reading is None:
        reading = read_index(shape, index, eager, False)
        _readings.remember(whole, reading)
    return reading


def _make_key(index: Any) -> Any:
    """Return a key for an index of numbers, slices, None and an ellipsis; None for any other."""
    kind = type(index)
    if kind is int or index is None or index is Ellipsis:
        return (index,)
    if kind is slice:
        parts = (index.start, index.stop, index.step)
        return (parts,) if all(p is None or type(p) is int for p in parts) else None
    if kind is tuple:
        entries = []
        for item in index:
            key = None if type(item) is tuple else _make_key(item)
            if key is None:
                return None
            entries.append(key[0])
        return tuple(entries)
    return None


def getitem(x: Array, index: Any) -> Array:
    """Return ``x[index]`` as NumPy does; positions out of bounds are moved to the nearest end.

    Raises IndexError for too many indices, a mask of another shape, and a traced mask; TypeError for floats, strings
    and lists.
    """
    eager = current_trace.get() is base_trace
    if eager and isinstance(x.aval.dtype, dtypes.ExtendedDType) and config.debug_key_reuse.value:
        # The check of key reuse needs the positions in the program.
        eager = False
    reading = _find_reading(x.aval.shape, index, eager)
    reading.check()
    plan = reading.plan
    untouched = plan.gathered is None and not (plan.new_axes or plan.squeezed or plan.reversed)
    if untouched and plan.sizes == x.aval.shape and max(plan.strides, default=1) == 1:
        return x
    operands = [_to_operand(i) for i in reading.operands] if eager else reading.operands
    return _apply_plan(x, *operands, plan=plan, options=DEFAULT)


def _to_operand(value: Array | int) -> Array | int:
    """Return an operand of a compiled program; int32 numbers, which repeat, are cached on the device."""
    if type(value) is int and -(2**31) <= value < 2**31:
        return scalar_array(value, scalar_aval(int), current_device())
    return value


def get_at(
    x: Any, index: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
    fill_value: ArrayLike | None = None, wrap_negative_indices: bool = True,
) -> Array:
    """Return ``x[index]``, with `mode` for positions out of bounds.

    mode: 'promise_in_bounds' or 'clip' take the nearest element, 'fill' or 'drop' give `fill_value` (by default NaN,
    the smallest signed or the largest unsigned integer, or True). ValueError for other modes.
    """
    if mode is None and wrap_negative_indices:
        return getitem(x, index)
    reading = read_index(x.aval.shape, index, False, True)
    mode_of_gather = None if mode is None else index_vectors.GatherScatterMode.from_any(mode)
    if mode_of_gather in (None, index_vectors.GatherScatterMode.PROMISE_IN_BOUNDS):
        reading.check()
    fill = None if fill_value is None else np.asarray(fill_value).item()
    options = Options(mode_of_gather, fill, bool(indices_are_sorted), bool(unique_indices), bool(wrap_negative_indices))
    return _apply_plan(x, *reading.operands, plan=reading.plan, options=options)


@inline_jit(static=("axis", "out", "mode", "unique_indices", "indices_are_sorted", "fill_value"), public=True)
def take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: Any = None, unique_indices: bool = False,
    indices_are_sorted: bool = False, fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements of `a` at indices along an axis.

    Args:
        a: an array or a scalar.
        indices: an array or a scalar of integers, negative ones count from the end; booleans are 0 and 1.
        axis: the axis; None for the flattened array.
        out: not supported; leave it at None.
        mode: the result for an index out of bounds: ``"fill"``, the default, gives `fill_value`; ``"clip"`` the
            nearest element, also for negative indices; ``"wrap"`` the element at the index modulo the length.
        unique_indices: a promise that no index repeats.
        indices_are_sorted: a promise that the indices rise.
        fill_value: a number; None for NaN, the smallest signed or the largest unsigned integer.

    Returns:
        An array of the dtype of `a`, with the axes of `indices` in place of `axis`.

    Raises:
        IndexError: the axis has no elements, and there are indices.
        NotImplementedError: `out` is given, or `mode` is ``"raise"``.
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `indices` has no integers, `mode` has another value, or `a` has no such axis.

    Example:
        >>> jnp.take(jnp.array([5, 6, 7]), jnp.array([2, 0]))
        Array([7, 5], dtype=int32)
    """
    refuse(out=out)
    a = to_array_operand(a)
    aval = operand_aval(indices, 1)
    if dtypes.is_boolean(aval.dtype):
        indices = convert_to(indices, dtypes.int32)
    elif not dtypes.is_integer(aval.dtype):
        raise ValueError(f"take: indices must have an integer type, got dtype {aval.dtype.name}")
    if mode == "raise":
        raise NotImplementedError(
            "take: mode 'raise' is not supported, since values are unknown while tracing; use 'fill'"
        )
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"take: mode must be 'fill', 'clip' or 'wrap', got {abbreviate(mode)}; .at has others")
    if axis is None:
        a, along = reshape(a, (a.size,)), 0
    else:
        along = canonical_axis(axis, a.ndim)
    if a.shape[along] == 0:
        if aval.size:
            raise IndexError("take: indices are out of bounds for an axis without elements; pass no indices")
        return convert_to(zeros((*a.shape[:along], *aval.shape, *a.shape[along + 1 :]), a.dtype), a.dtype, a.weak_type)
    if mode == "wrap":
        indices = wrap_indices(convert_to(indices, dtypes.int32), a.shape[along])
    return get_at(
        a, ((slice(None),) * along) + (indices,), mode={None: "fill", "wrap": "promise_in_bounds"}.get(mode, mode),
        unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, fill_value=fill_value,
        wrap_negative_indices=mode != "clip",
    )

