"""Medians, percentiles and quantiles, with NaN or without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval, reshape, transpose
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import add, multiply, subtract, true_divide
from xtrace._src.api.operators.promotion import as_inexact, find_common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays import slicing, sorting
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq, ge, le
from xtrace._src.ops.elementwise.selection import select_n
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import full
from xtrace.numpy.elementwise.ufuncs import minimum
from xtrace.numpy.indexing.indexing import DEFAULT, gather_elements
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.operands import axes_of, refuse, scalar_of, select_or_fill
from xtrace.numpy.reductions import cumulative, reductions

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _merge_axes(x: Array, axes: tuple[int, ...]) -> tuple[Any, int]:
    """Return `x` with several axes merged into one, and that axis."""
    if len(axes) == 1:
        return x, axes[0]
    others = [i for i in range(x.ndim) if i not in axes]
    x = transpose(x, [*others, *axes]) if others else x
    return reshape(x, (*x.shape[: len(others)], math.prod(x.shape[len(others) :]))), len(others)


def _move_to_axis(x: Array, axis: int, vector: bool) -> Array:
    """Return positions with the axis of quantiles moved to `axis`, of size 1 for a scalar `q`."""
    if not vector:
        return shapes.expand_dims(x, (axis,))
    return transpose(x, [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])


def _take_positions(x: Array, places: Array, axis: int, shared: bool) -> Array:
    """Return the elements of `x` at `places` along `axis`, the axis of quantiles first.

    shared: `places` hold for all other axes of `x`; otherwise they have these axes, too.
    """
    if shared:
        return gather_elements(x, [places], (axis,), 0, DEFAULT)
    vector = places.ndim == x.ndim
    picked = sorting.take_positions(x, _move_to_axis(places, axis, vector), axis, unique=False)
    if not vector:
        return shapes.squeeze(picked, (axis,))
    return transpose(picked, [axis, *[i for i in range(x.ndim) if i != axis]])


def _append_axes(q: Array, rank: int) -> Array:
    """Return quantiles with `rank` axes of size 1 appended."""
    return q if not q.ndim or not rank else shapes.expand_dims(q, range(1, rank + 1))


def _prepend_axis(x: Array, q: Array) -> Array:
    """Return `x` with an axis of size 1 in front, unless `q` is a scalar."""
    return shapes.expand_dims(x, (0,)) if q.ndim else x


def _interpolate(x: Any, q: Any, counts: Any, axis: int, method: str) -> Array:
    """Return the quantiles `q` of the elements of sorted `x` along `axis`, by one of the methods.

    counts: the numbers of elements that are not NaN; None for all elements.
    """
    shared, rank = counts is None, x.ndim - 1
    q = q if shared else _append_axes(q, rank)
    counts = scalar_of(x.shape[axis], q.dtype) if shared else _prepend_axis(convert_to(counts, q.dtype), q)
    top = subtract(counts, 1)
    index = multiply(q, top)
    one, zero = scalar_of(1, index.dtype), scalar_of(0, index.dtype)
    below, above = elementwise.floor(index), elementwise.ceil(index)
    past = elementwise.sub(index, below)
    before = elementwise.sub(one, past)
    if method == "inverted_cdf":
        below = above = elementwise.sub(elementwise.ceil(multiply(q, counts)), one)

    def at(place: ArrayLike) -> Array:
        place = elementwise.max(zero, minimum(place, top))
        return _take_positions(x, convert_to(place, dtypes.int32), axis, shared)

    if shared:
        past, before = _append_axes(past, rank), _append_axes(before, rank)
    if method in ("lower", "inverted_cdf"):
        return at(below)
    if method == "higher":
        return at(above)
    low, high = at(below), at(above)
    if method == "nearest":
        close = broadcast_to(le(past, scalar_of(0.5, past.dtype)), low.shape)
        return select_n(close, high, low)
    if method == "midpoint":
        return elementwise.mul(elementwise.add(low, high), scalar_of(0.5, low.dtype))
    wide = find_common_dtype(low, past)
    low, high, before, past = [convert_to(value, wide, False) for value in (low, high, before, past)]
    return add(multiply(low, before), multiply(high, past))


def _select_by_weight(x: Array, weights: Array, q: Array, counts: Array | None, axis: int) -> Array:
    """Return the first elements of sorted `x` whose cumulative weight reaches the share `q`; NaN for bad weights."""
    valid = ge(weights, scalar_of(0, weights.dtype))
    is_number = eq(x, x)
    running = cumulative.cumsum(select_or_fill(bitwise_and(is_number, valid), weights, 0), axis)
    length = x.shape[axis]
    total = slicing.slice_in_dim(running, length - 1, length, axis=axis)
    share = convert_to(q, x.dtype)
    along = broadcast_in_dim(share, (*share.shape, *[1] * x.ndim), range(share.ndim))
    reached = multiply(along, _prepend_axis(total, q))
    places = reductions.sum(_prepend_axis(running, q) < reached, axis + q.ndim)
    last = length - 1 if counts is None else _prepend_axis(subtract(counts, 1), q)
    places = elementwise.max(scalar_of(0, places.dtype), minimum(places, last))
    picked = _take_positions(x, places, axis, False)
    return select_or_fill(reductions.all(valid | ~is_number, axis), picked, math.nan)


@inline_jit
def _sort_and_interpolate(
    a: Array, q: ArrayLike, weights: Array | None, *, axes: tuple[int, ...], dtype: np.dtype[Any], method: str,
    keepdims: bool, percent: bool, only_numbers: bool,
) -> Array:
    a, q = convert_to(to_array_operand(a), dtype, False), to_array_operand(q)
    own = a.shape
    q = true_divide(q, 100) if percent else q
    a, axis = _merge_axes(a, axes)
    if weights is None:
        a = sorting.sort(a, axis)
    else:
        weights = convert_to(to_array_operand(weights), dtype, False)
        weights = weights if weights.shape == own else broadcast_in_dim(weights, own, axes)
        a, weights = sorting.sort((a, _merge_axes(weights, axes)[0]), axis)
    length = a.shape[axis]
    counts = reductions.sum(eq(a, a), axis) if only_numbers else None
    if weights is None:
        quantiles = convert_to(_interpolate(a, q, counts, axis, method), dtype, False)
    else:
        quantiles = _select_by_weight(a, weights, q, counts, axis)
    if not only_numbers:
        # A NaN is the last of the sorted elements, and makes all quantiles NaN.
        last = slicing.index_in_dim(a, length - 1, axis, keepdims=False)
        quantiles = select_or_fill(eq(last, last), quantiles, math.nan)
    if keepdims:
        quantiles = reshape(quantiles, (*q.shape, *[1 if i in axes else n for i, n in enumerate(own)]))
    return quantiles


def _compute_quantiles(
    a: Any, q: Any, axis: Any, out: Any, overwrite_input: Any, method: Any, keepdims: bool,
    weights: Any, percent: bool = False, only_numbers: bool = False,
) -> Array:
    if out is not None or overwrite_input:
        raise ValueError(
            f"{called_function()}: out and overwrite_input are not supported, since arrays are immutable; use the "
            "result"
        )
    aval, share = operand_aval(a, 0), operand_aval(q, 1)
    if dtypes.is_complex(aval.dtype):
        raise ValueError(f"{called_function()}: complex numbers have no order; got {aval}. Take abs(x) or x.real")
    if share.ndim > 1:
        raise ValueError(f"{called_function()}: q must have rank <= 1, got shape {share.shape}")
    if not dtypes.is_floating(share.dtype) and not (percent and not dtypes.is_complex(share.dtype)):
        raise TypeError(f"{called_function()}: q must be a float or an array of floats, got dtype {share.dtype.name}")
    if method not in _METHODS:
        raise ValueError(
            f"{called_function()}: method must be one of {', '.join(map(repr, _METHODS))}; got {abbreviate(method)}"
        )
    axes = axes_of(axis, aval.ndim)
    if not aval.ndim:
        # A scalar is a vector of one element, whose axis keepdims keeps, as in JAX.
        a, axes = reshape(to_array_operand(a), (1,)), (0,)
    elif not axes and weights is None:
        # Without axes, each element is its own quantile.
        a, axes, keepdims = reshape(to_array_operand(a), (*aval.shape, 1)), (aval.ndim,), False
    elif not axes:
        raise ValueError(f"{called_function()}: axis=() gives the weights no axis to apply to; name an axis")
    elif 0 in [aval.shape[i] for i in axes]:
        is_nan = only_numbers and weights is None and is_newer()
        if share.size and not is_nan:
            raise ValueError(f"{called_function()}: no elements along axis {axis} of an array of shape {aval.shape}")
        # Without quantiles, the elements do not matter.
        dtype = as_inexact(aval.dtype, False)[0] if is_nan else aval.dtype
        a = full([1 if i in axes else n for i, n in enumerate(aval.shape)], math.nan if is_nan else 0, dtype)
    if weights is not None:
        _check_weights(weights, aval.shape, axis, axes, method)
    return _sort_and_interpolate(
        a, q, weights, axes=axes, dtype=as_inexact(aval.dtype, False)[0], method=method,
        keepdims=bool(keepdims), percent=percent, only_numbers=only_numbers,
    )


def _check_weights(
    weights: Array, own: tuple[int, ...], axis: Axes, axes: tuple[int, ...], method: str
) -> None:
    shape = operand_aval(weights, 2).shape
    if method != "inverted_cdf":
        raise NotImplementedError(
            f"{called_function()}: method {abbreviate(method)} takes no weights; only 'inverted_cdf' does"
        )
    if shape != own and (axis is None or shape != tuple([own[i] for i in axes])):
        raise ValueError(
            f"{called_function()}: weights of shape {shape} fit neither the array's shape {own}, nor its axes "
            f"{'(axis is None)' if axis is None else axis}"
        )


@inline_jit(static=("axis", "out", "overwrite_input", "method", "keepdims"), public=True)
def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles over axes: the values below which given shares of the elements lie.

    Args:
        a: an array or a scalar of real numbers.
        q: the shares, in [0, 1], a number or a vector.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        overwrite_input: not supported; leave it at False.
        method: the estimate between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``,
            ``"nearest"``, or ``"inverted_cdf"``.
        keepdims: whether the reduced axes stay, with size 1.
        weights: weights of the elements, of the shape of `a` or a vector along `axis`, for the method
            ``"inverted_cdf"``.

    Returns:
        An array of a floating dtype, of the remaining axes, with an axis in front for a vector `q`; NaN if an element
        is NaN.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `a` is complex or has no such axis, `method` has another value, or `out` or `overwrite_input` is
            given.

    Example:
        >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.5)
        Array(2., dtype=float32)

    Reference:
        R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician 50 (1996); the
        methods are named as in ``numpy.quantile``.
    """
    return _compute_quantiles(a, q, axis, out, overwrite_input, method, keepdims, weights)


@inline_jit(static=("axis", "out", "overwrite_input", "method", "keepdims"), public=True)
def nanquantile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles over axes, ignoring NaN.

    Args:
        a: an array or a scalar of real numbers.
        q: the shares, in [0, 1], a number or a vector.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        overwrite_input: not supported; leave it at False.
        method: the estimate between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``,
            ``"nearest"``, or ``"inverted_cdf"``.
        keepdims: whether the reduced axes stay, with size 1.
        weights: weights of the elements, of the shape of `a` or a vector along `axis`, for the method
            ``"inverted_cdf"``.

    Returns:
        An array of a floating dtype, of the remaining axes, with an axis in front for a vector `q`.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `a` is complex or has no such axis, `method` has another value, or `out` or `overwrite_input` is
            given.

    Example:
        >>> jnp.nanquantile(jnp.array([1.0, 2.0, 4.0]), 0.5)
        Array(2., dtype=float32)

    Reference:
        R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician 50 (1996); the
        methods are named as in ``numpy.quantile``.
    """
    return _compute_quantiles(a, q, axis, out, overwrite_input, method, keepdims, weights, False, True)


@inline_jit(static=("axis", "out", "overwrite_input", "method", "keepdims", "out_sharding"), public=True)
def percentile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None, out_sharding: object = None,
) -> Array:
    """Compute percentiles over axes: the values below which given percentages of the elements lie.

    Args:
        a: an array or a scalar of real numbers.
        q: the percentages, in [0, 100], a number or a vector.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        overwrite_input: not supported; leave it at False.
        method: the estimate between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``,
            ``"nearest"``, or ``"inverted_cdf"``.
        keepdims: whether the reduced axes stay, with size 1.
        weights: weights of the elements, of the shape of `a` or a vector along `axis`, for the method
            ``"inverted_cdf"``.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of a floating dtype, of the remaining axes, with an axis in front for a vector `q`; NaN if an element
        is NaN.

    Raises:
        NotImplementedError: `out_sharding` is given.
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `a` is complex or has no such axis, `method` has another value, or `out` or `overwrite_input` is
            given.

    Example:
        >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 50)
        Array(2., dtype=float32)

    Reference:
        R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician 50 (1996); the
        methods are named as in ``numpy.quantile``.
    """
    refuse(out_sharding=out_sharding)
    return _compute_quantiles(a, q, axis, out, overwrite_input, method, keepdims, weights, True)


@inline_jit(static=("axis", "out", "overwrite_input", "method", "keepdims"), public=True)
def nanpercentile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:
    """Compute percentiles over axes, ignoring NaN.

    Args:
        a: an array or a scalar of real numbers.
        q: the percentages, in [0, 100], a number or a vector.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        overwrite_input: not supported; leave it at False.
        method: the estimate between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``,
            ``"nearest"``, or ``"inverted_cdf"``.
        keepdims: whether the reduced axes stay, with size 1.
        weights: weights of the elements, of the shape of `a` or a vector along `axis`, for the method
            ``"inverted_cdf"``.

    Returns:
        An array of a floating dtype, of the remaining axes, with an axis in front for a vector `q`.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `a` is complex or has no such axis, `method` has another value, or `out` or `overwrite_input` is
            given.

    Example:
        >>> jnp.nanpercentile(jnp.array([1.0, 2.0, 4.0]), 50)
        Array(2., dtype=float32)

    Reference:
        R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician 50 (1996); the
        methods are named as in ``numpy.quantile``.
    """
    return _compute_quantiles(a, q, axis, out, overwrite_input, method, keepdims, weights, True, True)


@inline_jit(static=("axis", "out", "overwrite_input", "keepdims"), public=True)
def median(
    a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Compute medians over axes; NaN if an element is NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        overwrite_input: not supported; leave it at False.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of a floating dtype, of the remaining axes: the middle element, or the mean of the middle two.

    Raises:
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` is complex or has no such axis, or `out` or `overwrite_input` is given.

    Example:
        >>> jnp.median(jnp.array([1.0, 2.0, 4.0, 8.0]))
        Array(3., dtype=float32)
    """
    return _compute_quantiles(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None)


@inline_jit(static=("axis", "out", "overwrite_input", "keepdims"), public=True)
def nanmedian(
    a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Compute medians over axes, ignoring NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        overwrite_input: not supported; leave it at False.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of a floating dtype, of the remaining axes: the middle element, or the mean of the middle two.

    Raises:
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` is complex or has no such axis, or `out` or `overwrite_input` is given.

    Example:
        >>> jnp.nanmedian(jnp.array([1.0, 2.0, 4.0, 8.0]))
        Array(3., dtype=float32)
    """
    return _compute_quantiles(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, False, True)
