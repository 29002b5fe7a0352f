"""Elements chosen by conditions and by indices: select, piecewise, choose, compress, take_along_axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, canonical_shape, converted, reshape
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import truth
from xtrace._src.api.promotion import cast, check_broadcast, common_dtype
from xtrace._src.api.vmap import vmap
from xtrace._src.core import config, dtypes, explain
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.core.trace import Tracer
from xtrace._src.ops import elementwise
from xtrace._src.ops.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.control_flow.cond import switch
from xtrace.numpy.creation import arange, as_array, asarray, zeros
from xtrace.numpy.indexing import flatnonzero, getitem, position_of, take
from xtrace.numpy.operands import only_axis, refuse, scalar_of, spread_to, type_of
from xtrace.numpy.vectorization import vectorize


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Return the elements of the first of `choicelist` whose condition holds, `default` where none does, broadcast.

    ValueError for lists of different lengths or without elements.
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select: condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("select: condlist must be non-empty")
    for i, x in enumerate((*condlist, *choicelist, default)):
        type_of("select", x, i)
    return _selected(*condlist, *choicelist, default)


@inline_jit
def _selected(*operands: Any) -> Any:
    count = len(operands) // 2
    conditions, cases = operands[:count], operands[count:]
    avals, dtype, weak = common_dtype("select", cases)
    shape = check_broadcast("select", [*[type_of("select", x).shape for x in conditions], *[a.shape for a in avals]])
    values = [
        spread_to("select", cast(x, aval, dtype, weak), aval.shape, shape) for x, aval in zip(cases, avals, strict=True)
    ]
    found = values.pop()
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        mask = spread_to("select", truth(condition), type_of("select", condition).shape, shape)
        found = elementwise.select_n(mask, found, value)
    return found


def piecewise(x: Any, condlist: Any, funclist: list[Any], *args: Any, **kw: Any) -> Any:
    """Return for each number of `x` what the function of the last condition that holds gives, in the type of `x`.

    funclist: functions of a number, called with `args` and `kw`, or numbers; one more than conditions is for where none
    holds (otherwise 0). ValueError for another count of them.
    """
    x = as_array("piecewise", x)
    conditions, count = list(condlist), len(condlist)
    if not count:
        raise ValueError("piecewise: condlist must not be empty")
    if len(funclist) not in (count, count + 1):
        raise ValueError(
            f"piecewise: with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(funclist)}"
        )
    chosen = list(funclist) if len(funclist) > count else [*funclist, 0]
    index = _last_true(*[asarray(c) for c in conditions], shape=x.shape)

    def branch(function: Any) -> Callable[[Any], Any]:
        if callable(function):
            return lambda value: asarray(function(value, *args, **kw)).astype(value.dtype)
        return lambda value: asarray(function).astype(value.dtype)

    branches = [branch(f) for f in (chosen[-1], *chosen[:-1])]
    return vectorize(lambda place, value: switch(place, branches, value))(index, x)


@inline_jit
def _last_true(*conditions: Any, shape: tuple[int, ...]) -> Any:
    """Return the number, from 1, of the last condition that holds, and 0 where none does."""
    found = broadcast_in_dim(scalar_of(0, dtypes.int32), shape, ())
    for i, condition in enumerate(conditions):
        mask = spread_to("piecewise", truth(condition), condition.shape, shape)
        found = elementwise.select_n(mask, found, broadcast_in_dim(scalar_of(i + 1, dtypes.int32), shape, ()))
    return found


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Return for each element of the integer array `a` the element of the choice it numbers, all broadcast.

    mode: what a number that is no choice's gives: 'raise' a ValueError, where it is known; 'wrap' the number modulo
    their count; 'clip' the nearest.
    """
    refuse("choose", out=out)
    aval = type_of("choose", a)
    if not dtypes.is_integer(aval.dtype):
        raise ValueError(f"choose: a must be an array of integers, got {aval.dtype.name}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: mode={abbreviated(mode)} not understood. Must be 'raise', 'wrap', or 'clip'")
    cases = list(choices)
    if not cases:
        raise ValueError("choose: choices must not be empty")
    if mode == "raise":
        if isinstance(a, Tracer):
            raise explain.concretization(a, "numpy.choose with mode='raise'; use mode='wrap' or mode='clip'")
        values = np.asarray(a)
        if ((values < 0) | (values >= len(cases))).any():
            raise ValueError(f"choose: invalid entry in choice array: there are {len(cases)} choices")
    for i, x in enumerate(cases):
        type_of("choose", x, 1 + i)
    return _chosen(a, *cases, mode=mode)


@inline_jit
def _chosen(a: Any, *cases: Any, mode: str) -> Any:
    avals, dtype, _ = common_dtype("choose", cases)
    own = type_of("choose", a).shape
    shape = check_broadcast("choose", [own, *[aval.shape for aval in avals]])
    index, last = converted(a, dtypes.int32, False), scalar_of(len(cases) - 1, dtypes.int32)
    zero, count = scalar_of(0, dtypes.int32), scalar_of(len(cases), dtypes.int32)
    if mode == "wrap":
        index = elementwise.rem(index, count)
        index = elementwise.select_n(elementwise.lt(index, zero), index, elementwise.add(index, count))
    elif mode == "clip":
        index = elementwise.clamp(zero, index, last)
    values = [spread_to("choose", cast(x, v, dtype, False), v.shape, shape) for x, v in zip(cases, avals, strict=True)]
    return elementwise.select_n(spread_to("choose", index, own, shape), *values) if len(values) > 1 else values[0]


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """Return the array of `shape` whose elements are `function` of their indices, numbers of type `dtype`.

    The function is traced once, by `vmap`, and also gets `kwargs`.
    """
    sizes = canonical_shape("fromfunction", shape)
    kind = requested_dtype("fromfunction", dtype)

    def of_indices(*indices: Any) -> Any:
        return function(*indices, **kwargs)

    for i in reversed(range(len(sizes))):
        of_indices = vmap(of_indices, in_axes=tuple([0 if i == j else None for j in range(len(sizes))]))
    return of_indices(*[arange(n, dtype=kind) for n in sizes])


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Any:
    """Return the slices of `a` along `axis` (None: elements of it flattened) where the vector `condition` holds.

    Their number depends on values, so that under jit `size` gives it; `fill_value` fills the rest. ValueError for a
    condition that is no vector, or holds beyond the end, where that is known.
    """
    refuse("compress", out=out)
    return _compressed("compress", condition, a, axis, size, fill_value)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """Return the elements of `arr` where `condition` is not zero, both flattened; `size` is needed under jit."""
    condition, arr = as_array("extract", condition), as_array("extract", arr, 1)
    return _compressed("extract", reshape(condition, (condition.size,)), arr, None, size, fill_value)


def _compressed(function: str, condition: Any, a: Any, axis: Any, size: Any, fill: Any) -> Any:
    condition, a = as_array(function, condition), as_array(function, a, 1)
    if condition.ndim != 1:
        raise ValueError(f"{function}: condition must be a 1D array, got shape {condition.shape}")
    if axis is None:
        a, axis = reshape(a, (a.size,)), 0
    along = canonical_axis(function, only_axis(function, axis), a.ndim)
    length = a.shape[along]
    if condition.size > length and size is None:
        beyond = getitem(condition, slice(length, None))
        if not isinstance(condition, Tracer) and np.asarray(beyond).any():
            raise ValueError(
                f"{function}: condition contains entries that are out of bounds: it has {condition.size} elements for "
                f"an axis of size {length}"
            )
    condition = getitem(condition, slice(0, length))
    if size is not None and not 0 <= size <= length:
        raise ValueError(
            f"{function}: size must not be negative nor greater than the size of the array axis; got size={size} for "
            f"{length} elements"
        )
    places = flatnonzero(condition, size=size, fill_value=length)
    if not places.size:
        empty = zeros((*a.shape[:along], 0, *a.shape[along + 1 :]), a.dtype)
        return converted(empty, a.dtype, a.weak_type and size is None)
    found = take(a, places, along, mode="fill", fill_value=fill)
    return converted(found, a.dtype, a.weak_type and size is None)


@inline_jit(static=("axis", "mode", "fill_value", "wrap_negative_indices"), public=True)
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """Return for each position the element of `arr` whose index along `axis` is in `indices`; other axes broadcast.

    mode: 'fill' (the default) gives `fill_value` out of bounds (by default NaN, the smallest signed or the largest
    unsigned integer), 'clip' the nearest, 'promise_in_bounds' any. Negative indices count from the end, unless
    `wrap_negative_indices` is False, the default of a promise. ``axis=None`` takes from the flattened array.
    TypeError for indices that are no integers, ValueError for another rank or sizes that do not broadcast.
    """
    aval = type_of("take_along_axis", indices, 1)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {aval.dtype.name}")
    arr = as_array("take_along_axis", arr)
    if axis is None:
        arr, axis = reshape(arr, (arr.size,)), 0
    if aval.ndim != arr.ndim:
        raise ValueError(
            f"take_along_axis: indices and arr must have the same number of dimensions; {aval.ndim} vs. {arr.ndim}, "
            f"of shapes {aval.shape} and {arr.shape}"
        )
    along = canonical_axis("take_along_axis", axis, arr.ndim)
    found = GatherScatterMode.FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode)
    if found is GatherScatterMode.ONE_HOT:
        found, fill_value = GatherScatterMode.FILL_OR_DROP, 0
    fill = None if fill_value is None else np.asarray(fill_value).item()
    wrap = wrap_negative_indices
    if wrap is None:
        wrap = found is not GatherScatterMode.PROMISE_IN_BOUNDS
    return _taken_along(arr, indices, axis=along, mode=found, fill=fill, wrap=wrap)


@inline_jit
def _taken_along(arr: Any, indices: Any, *, axis: int, mode: Any, fill: Any, wrap: bool) -> Any:
    shape, own = arr.shape, indices.shape
    whole = check_broadcast(
        "take_along_axis", [tuple([1 if i == axis else n for i, n in enumerate(x)]) for x in (shape, own)]
    )
    whole = tuple([own[i] if i == axis else n for i, n in enumerate(whole)])
    if 0 in whole or not shape[axis]:
        return zeros(whole, arr.dtype)
    # An axis that the indices lack is a window; one that the array lacks is dropped; where both have it they go
    # together.
    kept = [i for i in range(len(own)) if i == axis or own[i] != 1]
    dropped = [i for i in kept if i != axis and shape[i] == 1]
    left = [i for i in range(len(shape)) if i not in dropped]
    together = [i for i in kept if i != axis and i not in dropped]
    aval = type_of("take_along_axis", indices)
    wide = config.enable_x64.value and aval.dtype.itemsize == 8
    places = position_of(
        indices, shape[axis], wrap and dtypes.is_signed(aval.dtype), dtypes.int64 if wide else dtypes.int32
    )
    numbers = GatherDimensionNumbers(
        offset_dims=tuple([i for i in range(len(shape)) if i not in kept]),
        collapsed_slice_dims=(left.index(axis),),
        start_index_map=(left.index(axis),),
        operand_batching_dims=tuple([left.index(i) for i in together]),
        start_indices_batching_dims=tuple([kept.index(i) for i in together]),
    )
    return gather(
        squeeze(arr, dropped) if dropped else arr, reshape(places, [*[own[i] for i in kept], 1]), numbers,
        [1 if i in kept else shape[i] for i in left], mode=mode, fill_value=fill,
    )
