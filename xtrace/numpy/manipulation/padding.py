"""Arrays padded at their ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.sizes import has_symbolic, to_size
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays import slicing
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.ranges import linspace
from xtrace.numpy.elementwise.rounding import round
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.rearrangement import flip
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import cast_to, scalar_of, slice_axis
from xtrace.numpy.reductions import reductions, statistics
from xtrace.numpy.reductions.quantiles import median

# The keyword arguments of each mode.
_OPTIONS = {
    "constant": {"constant_values"}, "empty": set(), "edge": set(), "linear_ramp": {"end_values"},
    "maximum": {"stat_length"}, "minimum": {"stat_length"}, "mean": {"stat_length"}, "median": {"stat_length"},
    "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}, "wrap": set(),
}
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": statistics.mean, "median": median,
}
Widths = tuple[tuple[int, int], ...]


def _normalize_widths(pad_width: object, rank: int) -> Widths:
    """Return the padding before and after each axis, from any form that NumPy accepts."""
    if isinstance(pad_width, dict):
        pairs: dict[int, tuple[int, int]] = dict.fromkeys(range(rank), (0, 0))
        for axis, widths in pad_width.items():
            pairs[canonical_axis(axis, rank)] = _normalize_widths(widths, 1)[0]
        return tuple(pairs[i] for i in range(rank))
    if isinstance(pad_width, Tracer):
        raise explain.concretization(pad_width, "pad argument pad_width")
    given_widths = np.asarray(pad_width)
    is_open = has_symbolic(given_widths.flat)
    if given_widths.size and given_widths.dtype.kind not in "iu" and not is_open:
        raise TypeError(f"pad: `pad_width` must be of integral type, got {abbreviate(pad_width)}")
    if given_widths.shape not in ((), (1,), (2,), (1, 2), (rank, 2)):
        raise ValueError(
            f"pad: pad_width with nd={rank} has unsupported shape {given_widths.shape}. Valid shapes are {(rank, 2)}, "
            "(1, 2), (2,), (1,), or ()."
        )
    if rank and (given_widths < 0).any():
        raise ValueError(
            f"pad: pad_width can't contain negative values, got {abbreviate(pad_width)}; cut with x[...] instead"
        )
    return tuple((to_size(i), to_size(j)) for i, j in np.broadcast_to(given_widths, (rank, 2)))


def _repeat_end(x: Array, count: int, axis: int) -> Array:
    """Return `x`, of size 1 along `axis`, repeated `count` times."""
    return broadcast_in_dim(x, [count if i == axis else n for i, n in enumerate(x.shape)], range(x.ndim))


def _join_parts(parts: list[Any], axis: int) -> Array:
    parts = [x for x in parts if x.shape[axis]] or parts[:1]
    return parts[0] if len(parts) == 1 else concatenate(parts, axis)


def _pad_by_edge(x: Array, axis: int, widths: tuple[int, int]) -> Array:
    length = x.shape[axis]
    ends = [slice_axis(x, 0, 1, axis), slice_axis(x, length - 1, length, axis)]
    before, after = (_repeat_end(end, width, axis) for end, width in zip(ends, widths, strict=True))
    return _join_parts([before, x, after], axis)


def _pad_by_ramp(x: Array, axis: int, widths: tuple[int, int], ends: Any) -> Array:
    length = x.shape[axis]
    edges = [slice_axis(x, 0, 1, axis), slice_axis(x, length - 1, length, axis)]
    before, after = (
        linspace(ends[axis, side], shapes.squeeze(edge, (axis,)), width, endpoint=False, dtype=x.dtype, axis=axis)
        for side, (edge, width) in enumerate(zip(edges, widths, strict=True))
    )
    ramps = [convert_to(ramp, x.dtype, x.aval.weak_type) for ramp in (before, flip(after, axis))]
    return _join_parts([ramps[0], x, ramps[1]], axis)


def _pad_by_statistic(
    x: Array, axis: int, widths: tuple[int, int], mode: str, counts: tuple[int | None, int | None]
) -> Array:
    length, statistics = x.shape[axis], []
    for side, (width, count) in enumerate(zip(widths, counts, strict=True)):
        used = length if count is None else min(count, length)
        part = slice_axis(x, length - used, length, axis) if side else slice_axis(x, 0, used, axis)
        value = _STATISTICS[mode](part, axis, keepdims=True)
        if dtypes.is_integer(x.dtype) and mode in ("mean", "median"):
            value = round(value)
        statistics.append(_repeat_end(convert_to(value, x.dtype, x.aval.weak_type), width, axis))
    return _join_parts([statistics[0], x, statistics[1]], axis)


def _pad_by_reflection(x: Array, axis: int, widths: tuple[int, int], mode: str, odd: bool) -> Array:
    """Extend both ends by mirrored parts of at most the original length until the widths are reached."""
    skipped = 1 if mode == "reflect" else 0
    longest = x.shape[axis] - skipped
    if not longest:
        return _pad_by_edge(x, axis, widths)
    for side, width in enumerate(widths):
        while width:
            count, length = min(width, longest), x.shape[axis]
            edge = length - 1 if side else 0
            first = length - skipped - count if side else skipped
            part = shapes.rev(slice_axis(x, first, first + count, axis), (axis,))
            if odd:
                part = convert_to(2 * slice_axis(x, edge, edge + 1, axis) - part, x.dtype, x.aval.weak_type)
            x = _join_parts([x, part] if side else [part, x], axis)
            width -= count
    return x


def _pad_by_wrapping(x: Array, axis: int, widths: tuple[int, int]) -> Array:
    length = x.shape[axis]
    (rounds_before, before), (rounds_after, after) = (divmod(width, length) for width in widths)
    whole = [x] * (rounds_before + 1 + rounds_after)
    return _join_parts([slice_axis(x, length - before, length, axis), *whole, slice_axis(x, 0, after, axis)], axis)


@inline_jit
def _extend(x: Array, *ends: Array, mode: str, widths: Widths, counts: Any, odd: bool) -> Array:
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if mode == "edge":
            x = _pad_by_edge(x, axis, width)
        elif mode == "linear_ramp":
            x = _pad_by_ramp(x, axis, width, ends[0])
        elif mode == "wrap":
            x = _pad_by_wrapping(x, axis, width)
        elif mode in _STATISTICS:
            x = _pad_by_statistic(x, axis, width, mode, counts[axis])
        else:
            x = _pad_by_reflection(x, axis, width, mode, odd)
    return x


def _pad_by_function(function: Callable[..., Any], x: Array, widths: Widths, options: dict[str, Any]) -> Array:
    """Let a function fill in the ends of the zero-padded array, one axis after the other, row by row."""
    x = slicing.pad(x, scalar_of(0, x.dtype), [(i, j, 0) for i, j in widths])
    for axis, width in enumerate(widths):
        rows = moveaxis(x, axis, -1)
        flat = reshape(rows, (math.prod(rows.shape[:-1]), rows.shape[-1]))
        padded = vmap(lambda row, a=axis, w=width: function(row, w, a, options))(flat)
        x = moveaxis(reshape(padded, rows.shape), -1, axis)
    return x


def _check_pairs(name: str, shape: tuple[int, ...], rank: int) -> None:
    """Raise ValueError unless values of a shape broadcast to a pair for each axis."""
    if shape not in ((), (1,), (2,), (1, 2), (rank, 2)):
        raise ValueError(f"pad: {name} of shape {shape} do not fit an array of rank {rank}")


def _broadcast_pairs(name: str, values: object, rank: int) -> Any:
    """Return two values for each axis, from any form that NumPy accepts."""
    if not isinstance(values, Array):
        values = asarray(values) if _has_array(values) else np.asarray(values)
    _check_pairs(name, values.shape, rank)
    return broadcast_to(values, (rank, 2)) if isinstance(values, Array) else np.broadcast_to(values, (rank, 2))


def _normalize_stat_lengths(value: object, rank: int, mode: str) -> Any:
    if value is None:
        return ((None, None),) * rank
    lengths = _broadcast_pairs("stat_length", value, rank).tolist()
    if any(count < 0 for pair in lengths for count in pair):
        raise ValueError(f"pad: stat_length can't contain negative values, got {abbreviate(value)}")
    if mode in ("maximum", "minimum") and any(count == 0 for pair in lengths for count in pair):
        raise ValueError(f"pad: a stat_length of 0 yields no value for mode {abbreviate(mode)}")
    return tuple(tuple(pair) for pair in lengths)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """Return an array with elements added before and after each axis.

    Args:
        array: an array or a scalar.
        pad_width: the number of elements, one for all, a pair (before, after), a pair for each axis, or a mapping
            of axes to these.
        mode: the elements: ``"constant"``, ``"edge"``, ``"linear_ramp"``, ``"maximum"``, ``"mean"``, ``"median"``,
            ``"minimum"``, ``"reflect"``, ``"symmetric"``, ``"wrap"``, ``"empty"`` for zeros, or a function of a
            row, its pair, the axis and `kwargs` that returns the row with its ends filled.
        kwargs: `constant_values`, `end_values` of a ramp, `stat_length`, the number of elements next to the end
            that a statistic covers, and `reflect_type`, ``"even"`` or ``"odd"``.

    Returns:
        An array of the dtype of `array`.

    Raises:
        NotImplementedError: `mode` has another value.
        TypeError: `array` is not an array, or a width is not an integer.
        ValueError: a width is negative or does not broadcast to the axes, or the mode lacks a keyword.

    Example:
        >>> jnp.pad(jnp.array([1, 2]), (1, 2), constant_values=9)
        Array([9, 1, 2, 9, 9], dtype=int32)
    """
    if callable(mode):
        array = to_array_operand(array)
        return _pad_by_function(mode, array, _normalize_widths(pad_width, array.ndim), kwargs)
    return _pad(array, pad_width, mode, **kwargs)


@inline_jit(static=("pad_width", "mode", "stat_length", "reflect_type"), public=True)
def _pad(array: Array, pad_width: object, mode: str, **kwargs: object) -> Array:
    array = to_array_operand(array)
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise NotImplementedError(
            f"pad: mode {abbreviate(mode)} is not supported; the modes are {', '.join(map(repr, _OPTIONS))}"
        )
    widths = _normalize_widths(pad_width, array.ndim)
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode {abbreviate(mode)}: {unknown}")
    if mode in ("constant", "empty"):
        return _pad_by_constants(array, kwargs.get("constant_values", 0), widths)
    if mode not in _STATISTICS and any(not n and any(w) for n, w in zip(array.shape, widths, strict=True)):
        raise ValueError(
            f"pad: cannot apply {abbreviate(mode)} padding to an empty axis of an array of shape {array.shape}"
        )
    reflection = kwargs.get("reflect_type", "even")
    if reflection not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {abbreviate(reflection)}")
    ends = (_broadcast_pairs("end_values", kwargs.get("end_values", 0), array.ndim),) if mode == "linear_ramp" else ()
    counts = _normalize_stat_lengths(kwargs.get("stat_length"), array.ndim, mode)
    return _extend(array, *ends, mode=mode, widths=widths, counts=counts, odd=reflection == "odd")


def _pad_by_constants(array: Array, values: Any, widths: Widths) -> Array:
    if not isinstance(values, Array):
        values = asarray(np.asarray(values) if isinstance(values, (tuple, list)) and not _has_array(values) else values)
    _check_pairs("constant_values", values.shape, array.ndim)
    return _pad_with_constants(array, values, widths=widths)


def _has_array(values: object) -> bool:
    if isinstance(values, (tuple, list)):
        return any(_has_array(x) for x in values)
    return isinstance(values, Array)


@inline_jit
def _pad_with_constants(a: Array, values: Any, *, widths: Widths) -> Array:
    values = cast_to(values, values.aval, a.dtype)
    if a.aval.weak_type != values.aval.weak_type:
        values = convert_to(values, a.dtype, a.aval.weak_type)
    if values.size == 1:
        return slicing.pad(a, reshape(values, ()), [(i, j, 0) for i, j in widths])
    for axis, (before, after) in enumerate(widths):
        row = values if values.ndim == 1 else values[axis % values.shape[0]]
        for side, width in enumerate(((before, 0), (0, after))):
            config_of_axis = [(*width, 0) if i == axis else (0, 0, 0) for i in range(a.ndim)]
            a = slicing.pad(a, row[side], config_of_axis)
    return a
