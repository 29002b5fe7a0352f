"""Statistics of samples: their most frequent value, their ranks and the error of their mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.sorting import sort
from xtrace._src.ops.reductions.cumulative import cummax, cummin, cumsum
from xtrace.numpy.arrays.creation import full, ones, zeros
from xtrace.numpy.elementwise.floating_point import isnan
from xtrace.numpy.elementwise.logic import logical_not
from xtrace.numpy.elementwise.ufuncs import sqrt
from xtrace.numpy.indexing.selection import take_along_axis
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import atleast_1d, ravel
from xtrace.numpy.reductions.nan_reductions import nanstd
from xtrace.numpy.reductions.reductions import any, argmax, max, sum
from xtrace.numpy.reductions.statistics import std

_POLICIES = ("propagate", "omit", "raise")


class ModeResult(NamedTuple):
    """The most frequent values and their counts."""

    mode: Array
    count: Any


def _check_policy(nan_policy: str) -> None:
    if nan_policy not in _POLICIES:
        raise ValueError(
            f"{called_function()}: nan_policy must be one of {', '.join(_POLICIES)}; got {abbreviate(nan_policy)}"
        )
    if nan_policy == "omit":
        raise NotImplementedError(f"{called_function()}: nan_policy='omit' is not implemented; remove NaN beforehand")
    if nan_policy == "raise":
        raise NotImplementedError(
            f"{called_function()}: nan_policy='raise' is not implemented, as values are not known while a program is "
            "traced; check for NaN beforehand"
        )


def _slice_axis(x: Array, axis: int, part: slice) -> Array:
    return x[(slice(None),) * axis + (part,)]


def _mark_starts(ordered: Array, axis: int) -> Array:
    """Mark the starts of runs of equal values along a sorted axis; NaN values form one run."""
    here, before = _slice_axis(ordered, axis, slice(1, None)), _slice_axis(ordered, axis, slice(None, -1))
    differ = here != before
    if dtypes.is_inexact(ordered.dtype):
        differ = differ & ~(isnan(here) & isnan(before))
    shape = [1 if i == axis else n for i, n in enumerate(ordered.shape)]
    return concatenate([ones(shape, bool), differ], axis)


def _make_positions(x: Array, axis: int) -> Array:
    return broadcasted_iota(dtypes.default_int(config.enable_x64.value), x.shape, axis)


def _find_mode(a: Array, axis: int, keepdims: bool) -> tuple[Array, ...]:
    ordered = sort(a, axis)
    places = _make_positions(ordered, axis)
    first = cummax(select_where(_mark_starts(ordered, axis), places, 0), axis)
    lengths = places - first + 1
    # Argmax finds the first of the longest runs, which has the smallest value.
    value = take_along_axis(ordered, take_along_axis(first, argmax(lengths, axis, keepdims=True), axis), axis)
    count = max(lengths, axis, keepdims=True)
    return (value, count) if keepdims else (value.squeeze(axis), count.squeeze(axis))


@inline_jit(static=("axis", "nan_policy", "keepdims"), public=True)
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """Return the most frequent values along an axis, with their counts.

    Args:
        a: an array.
        axis: the axis; None for all elements.
        nan_policy: ``"propagate"``, the only policy.
        keepdims: whether the axis remains, with size 1.

    Returns:
        A pair of arrays: the smallest of the most frequent values, and its count. NaN count as one value.

    Raises:
        NotImplementedError: the policy is ``"omit"`` or ``"raise"``.
        TypeError: `a` is not an array.
        ValueError: there is no such policy or axis.

    Example:
        >>> scipy.stats.mode(jnp.array([3, 1, 3]))
        ModeResult(mode=Array(3, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy(nan_policy)
    aval = operand_aval(a, 0)
    rank = aval.ndim
    x = atleast_1d(a) if axis is not None else ravel(a)
    along = 0 if axis is None else canonical_axis(axis, x.ndim)
    if not x.shape[along]:
        kept = [1 if i == along else n for i, n in enumerate(x.shape) if keepdims or i != along]
        dtype = dtypes.default_float(config.enable_x64.value)
        result = ModeResult(full(kept, math.nan, dtype), zeros(kept, dtype))
    else:
        result = ModeResult(*_find_mode(x, along, keepdims))
    return ModeResult(*[x.reshape((1,) * rank) for x in result]) if axis is None and keepdims and rank > 1 else result


def _compute_ranks(a: Any, axis: int, method: str) -> Array:
    dtype = dtypes.default_float(config.enable_x64.value)
    if not a.shape[axis]:
        return zeros(a.shape, dtype)
    places = _make_positions(a, axis)
    ordered, order = sort((a, places), axis)
    if method == "ordinal":
        ranks = places + 1
    elif method == "dense":
        ranks = cumsum(convert_to(_mark_starts(ordered, axis), places.dtype), axis)
    else:
        starts, n = _mark_starts(ordered, axis), a.shape[axis]
        first = cummax(select_where(starts, places, 0), axis) + 1
        last_of_all = zeros([1 if i == axis else m for i, m in enumerate(a.shape)], bool)
        ends = concatenate([_slice_axis(starts, axis, slice(1, None)), ~last_of_all], axis)
        last = cummin(select_where(ends, places, n - 1), axis, reverse=True) + 1
        ranks = {"min": first, "max": last, "average": convert_to(first + last, dtype) / 2}[method]
    # Sorting by the original positions moves the ranks back to them.
    ranks = convert_to(sort((order, ranks), axis)[1], dtype)
    if dtypes.is_inexact(a.dtype):
        return select_where(any(isnan(a), axis, keepdims=True), math.nan, ranks)
    return ranks


@inline_jit(static=("method", "axis", "nan_policy"), public=True)
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Return the ranks of elements, from 1 on.

    Args:
        a: an array.
        method: the rank of equal elements: their ``"average"``, ``"min"`` or ``"max"``, ``"ordinal"`` for different
            ones, or ``"dense"`` for the minimum without gaps.
        axis: the axis; None for all elements.
        nan_policy: ``"propagate"``, the only policy: a NaN makes its whole axis NaN.

    Returns:
        An array of the default floating dtype.

    Raises:
        NotImplementedError: the policy is ``"omit"`` or ``"raise"``.
        TypeError: `a` is not an array.
        ValueError: there is no such method, policy or axis.

    Example:
        >>> scipy.stats.rankdata(jnp.array([10, 30, 10]))
        Array([1.5, 3. , 1.5], dtype=float32)
    """
    _check_policy(nan_policy)
    methods = ("average", "min", "max", "dense", "ordinal")
    if method not in methods:
        raise ValueError(f"rankdata: method must be one of {', '.join(methods)}; got {abbreviate(method)}")
    aval = operand_aval(a, 0)
    if axis is None:
        return _compute_ranks(ravel(a), 0, method)
    return _compute_ranks(a, canonical_axis(axis, aval.ndim), method)


@inline_jit(static=("axis", "nan_policy", "keepdims"), public=True)
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: ArrayLike = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """Return the standard error of the mean, ``std(a, ddof) / sqrt(n)``.

    Args:
        a: an array.
        axis: the axis; None for all elements.
        ddof: the number subtracted from n in the deviation.
        nan_policy: ``"propagate"``, or ``"omit"`` to ignore NaN.
        keepdims: whether the axis remains, with size 1.

    Returns:
        An array without the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: there is no such policy or axis.

    Example:
        >>> scipy.stats.sem(jnp.array([1.0, 3.0]))
        Array(0.99999994, dtype=float32)
    """
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"sem: nan_policy must be 'propagate' or 'omit'; got {abbreviate(nan_policy)}")
    aval = operand_aval(a, 0)
    along = None if axis is None else canonical_axis(axis, aval.ndim)
    deviation = nanstd if nan_policy == "omit" else std
    error = deviation(a, along, ddof=ddof, keepdims=bool(keepdims))
    if nan_policy == "omit":
        counted = sum(logical_not(isnan(a)), along, keepdims=bool(keepdims))
        error = error / convert_to(sqrt(counted), error.dtype)
    else:
        size = aval.size if along is None else aval.shape[along]
        error = error / (sqrt(convert_to(size, error.dtype)) if is_symbolic(size) else math.sqrt(size))
    # Complex data give a complex error, as in JAX.
    return convert_to(error, aval.dtype if dtypes.is_complex(aval.dtype) else error.dtype)
