"""Indexing: ``x[index]``, ``x.at[index]`` and `take`.

An index is read once into a `Plan`: a window of the operand (a slice, or a dynamic slice for a traced position), a
gather for index arrays, and the axes that `None` adds. Equal plans share compiled programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import canonical_axis, check_broadcast, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import scalar_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_known_to_exceed
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.arrays import gather_scatter, index_vectors, slicing
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.runtime.transfer import current_device, scalar_array
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.indexing.index_plans import Plan, Reading, read_index
from xtrace.numpy.operands import broadcast_operand_to, refuse, scalar_of, wrap_indices

with late_modules(globals()):
    from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice


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

