"""Softmax and its relatives, standardization, and one-hot encoding."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace import numpy as jnp
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, operand_aval
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import select_where
from xtrace._src.api.promotion import as_inexact, promote
from xtrace._src.core import config, dtypes, explain
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.collectives import axis_index, axis_size
from xtrace._src.ops.comparisons import eq
from xtrace._src.ops.complex_numbers import real
from xtrace._src.ops.elementwise import is_finite, rsqrt, sub
from xtrace._src.ops.reductions import add_elements, reduce_max
from xtrace._src.ops.stop_gradient import stop_gradient
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.operands import axes_of, select_or_fill

_INFINITY = math.inf


def _to_masks(where: ArrayLike | None) -> tuple[Any, ...]:
    """Return the mask as a tuple of operands, empty for None."""
    if where is None:
        return ()
    aval = operand_aval(where, 1)
    if not dtypes.is_boolean(aval.dtype):
        raise ValueError(f"{called_function()}: where must be None or a boolean array; got {aval.str_short(True)}")
    return (where,)


def _make_hashable(axis: Axes) -> Axes:
    return tuple(axis) if isinstance(axis, list) else axis


def _reduce_keeping_axes(reduce: Callable[..., Any], x: Array, axes: Sequence[int]) -> Array:
    """Reduce `x` along `axes`, which keep size 1."""
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    return broadcast_in_dim(reduce(x, axes), shape, [i for i in range(x.ndim) if i not in axes])


# Softmax


def _shift_by_max(operand: ArrayLike, axis: Axes, masks: Sequence[Any]) -> tuple[Array, Array, Shape]:
    """Return ``x - max(x)`` along `axis`, its exponential, 0 where masked, and the axes."""
    x = to_array(promote(operand)[0])
    x = convert_to(x, x.dtype, False)
    axes = axes_of(axis, x.ndim)
    kept = x
    if masks:
        kept = select_where(masks[0], x, -_INFINITY)
        kept = convert_to(kept, kept.dtype, x.weak_type)
    if dtypes.is_boolean(kept.dtype):
        raise TypeError(f"{called_function()} does not accept dtype bool; convert the array to a floating dtype")
    # The shift cancels, so it has no derivative.
    moved = kept - stop_gradient(_reduce_keeping_axes(reduce_max, kept, axes))
    return moved, jnp.exp(moved), axes


def _sum_unmasked(powers: Array, axes: Sequence[int], masks: Sequence[Any]) -> Array:
    return _reduce_keeping_axes(add_elements, select_or_fill(masks[0], powers, 0) if masks else powers, axes)


@inline_jit
def _softmax(x: ArrayLike, *masks: ArrayLike, axis: Axes) -> Array:
    _, powers, axes = _shift_by_max(x, axis, masks)
    shares = powers / _sum_unmasked(powers, axes, masks)
    return select_or_fill(masks[0], shares, 0) if masks else shares


def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Return ``exp(x)`` divided by its sum along an axis, without overflow.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes, or None for all axes.
        where: a boolean array that broadcasts against the operand; elements where it is False are ignored.

    Returns:
        An array of the shape of `x` and its floating dtype, 0 where `where` is False.

    Raises:
        TypeError: `x` is an array of booleans, or no array.
        ValueError: there is no such axis, or `where` is not boolean.

    Example:
        >>> nn.softmax(jnp.array([0.0, 0.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    return _softmax(x, *_to_masks(where), axis=_make_hashable(axis))


@inline_jit
def _log_softmax(x: ArrayLike, *masks: ArrayLike, axis: Axes) -> Array:
    moved, powers, axes = _shift_by_max(x, axis, masks)
    logarithms = moved - jnp.log(_sum_unmasked(powers, axes, masks))
    return select_or_fill(masks[0], logarithms, -_INFINITY) if masks else logarithms


@inline_jit(static=("axis",), public=True)
def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Return the logarithm of `softmax`, without underflow.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes, or None for all axes.
        where: a boolean array that broadcasts against the operand; elements where it is False are ignored.

    Returns:
        An array of the shape of `x` and its floating dtype, -inf where `where` is False.

    Raises:
        TypeError: `x` is an array of booleans, or no array.
        ValueError: there is no such axis, or `where` is not boolean.

    Example:
        >>> nn.log_softmax(jnp.array([0.0, 0.0]))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _log_softmax(x, *_to_masks(where), axis=_make_hashable(axis))


# Logarithms of sums


@inline_jit
def _logsumexp(
    a: ArrayLike, *rest: ArrayLike, axis: Axes, keepdims: bool, return_sign: bool, weighted: bool, masked: bool
) -> Any:
    """Compute `logsumexp`; `rest` holds the weights if `weighted`, then the mask if `masked`."""
    operands = [to_array(x) for x in promote(a, *rest[:weighted], adjust=as_inexact)]
    x = operands[0]
    weights = operands[1] if weighted else None
    if weights is not None:
        # Elements that are masked or have weight 0 count as -inf, so their exponentials cannot overflow.
        weights = select_or_fill(rest[-1], weights, 0) if masked else weights
        x = select_where(weights != 0, x, -_INFINITY)
    elif masked:
        x = select_or_fill(rest[-1], x, -_INFINITY)
    complex_operands = dtypes.is_complex(x.dtype)
    axes = axes_of(axis, x.ndim)
    largest = _reduce_keeping_axes(reduce_max, convert_to(x, x.dtype) if not complex_operands else real(x), axes)
    shift = stop_gradient(select_where(is_finite(largest), largest, 0))
    terms = jnp.exp(sub(x, convert_to(shift, x.dtype)))
    if weights is not None:
        terms = terms * weights
    if keepdims:
        total = _reduce_keeping_axes(add_elements, terms, axes)
    else:
        total, shift = add_elements(terms, axes), shift.reshape([n for i, n in enumerate(x.shape) if i not in axes])
    if not return_sign:
        return jnp.log(total) + convert_to(shift, total.dtype)
    positive = not complex_operands and weights is None
    return jnp.log(total if positive else jnp.abs(total)) + shift, jnp.sign(total)


def logsumexp(
    a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: bool = False,
    where: ArrayLike | None = None
) -> Any:
    """Return the logarithm of the sum of ``b * exp(a)`` along an axis, without overflow.

    Args:
        a: an array of numbers.
        axis: the axis, a sequence of axes, or None for all axes.
        b: the weights, which broadcast against `a`; None for 1.
        keepdims: whether the axes remain, with size 1.
        return_sign: whether a pair is returned: the logarithm of the absolute value of the sum, and its sign.
        where: a boolean array that broadcasts against `a`; elements where it is False are ignored.

    Returns:
        An array of the floating dtype of `a`, NaN for negative sums without `return_sign`; or a pair of arrays.

    Raises:
        TypeError: an operand is neither an array nor a number.
        ValueError: there is no such axis, or `where` is not boolean.

    Example:
        >>> nn.logsumexp(jnp.zeros(3))
        Array(1.0986123, dtype=float32)
    """
    given = () if b is None else (b,)
    return _logsumexp(
        a, *given, *_to_masks(where), axis=_make_hashable(axis), keepdims=bool(keepdims),
        return_sign=bool(return_sign), weighted=b is not None, masked=where is not None,
    )


@inline_jit
def _logmeanexp(x: ArrayLike, *masks: ArrayLike, axis: Axes, keepdims: bool) -> Array:
    logarithm: Array = _logsumexp(
        x, *masks, axis=axis, keepdims=keepdims, return_sign=False, weighted=False, masked=bool(masks)
    )
    aval = aval_of(x)
    axes = axes_of(axis, aval.ndim)
    if not masks:
        size = math.prod([aval.shape[i] for i in axes])
        share = jnp.log(size) if is_symbolic(size) else math.log(size) if size else -_INFINITY
        return logarithm - share
    # Broadcast the mask to x, then count its true elements.
    mask = convert_to(to_array(masks[0]), dtypes.real_part_dtype(logarithm.dtype))
    whole = broadcast_in_dim(mask, aval.shape, range(aval.ndim - mask.ndim, aval.ndim))
    count = _reduce_keeping_axes(add_elements, whole, axes) if keepdims else add_elements(whole, axes)
    return logarithm - convert_to(jnp.log(count), logarithm.dtype)


@inline_jit(static=("axis", "keepdims"), public=True)
def logmeanexp(x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """Return the logarithm of the mean of ``exp(x)`` along an axis, without overflow.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes, or None for all axes.
        where: a boolean array that broadcasts against the operand; elements where it is False are ignored.
        keepdims: whether the axes remain, with size 1.

    Returns:
        An array of the floating dtype of `x`.

    Raises:
        TypeError: `x` is neither an array nor a number.
        ValueError: there is no such axis, or `where` is not boolean.

    Example:
        >>> nn.logmeanexp(jnp.zeros(3))
        Array(0., dtype=float32)
    """
    return _logmeanexp(x, *_to_masks(where), axis=_make_hashable(axis), keepdims=bool(keepdims))


# Standardization

_ALGORITHMS = ("fast", "stable")


@inline_jit
def _standardize(
    x: ArrayLike, epsilon: ArrayLike, *rest: ArrayLike, axis: Axes, given: tuple[str, ...], algorithm: str
) -> Array:
    """Standardize `x`; `rest` holds the operands that `given` names."""
    options = dict(zip(given, rest, strict=True))
    mask = options.get("where")
    x = to_array(promote(x, adjust=as_inexact)[0])
    centre, variance = options.get("mean"), options.get("variance")
    if centre is None:
        centre = jnp.mean(x, axis, keepdims=True, where=mask)
    if variance is None and algorithm == "fast":
        # E[x²] - E[x]², which rounding may make negative.
        variance = jnp.clip(jnp.mean(jnp.square(x), axis, keepdims=True, where=mask) - jnp.square(centre), 0)
    elif variance is None:
        variance = jnp.mean(jnp.square(x - centre), axis, keepdims=True, where=mask)
    return (x - centre) * rsqrt(variance + epsilon)


@inline_jit(static=("axis", "algorithm"), public=True)
def standardize(
    x: ArrayLike, axis: Axes = -1, mean: ArrayLike | None = None, variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5, where: ArrayLike | None = None, *, algorithm: str = "fast",
) -> Array:
    """Return `x` shifted and scaled to mean 0 and variance 1 along an axis.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes, or None for all axes.
        mean: the mean; None to compute it.
        variance: the variance; None to compute it.
        epsilon: a number that is added to the variance.
        where: a boolean array that broadcasts against `x`; elements where it is False are ignored.
        algorithm: "fast" computes the variance from the mean of squares, "stable" from centered elements.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.
        ValueError: there is no such axis, `where` is not boolean, or the algorithm is unknown.

    Example:
        >>> nn.standardize(jnp.array([1.0, 3.0]))
        Array([-0.99999505,  0.99999505], dtype=float32)
    """
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"standardize: Unknown algorithm {abbreviate(algorithm)}. Expected 'fast' or 'stable'.")
    axes_of(axis, operand_aval(x, 0).ndim)
    _to_masks(where)
    options = {"mean": mean, "variance": variance, "where": where}
    given = {name: value for name, value in options.items() if value is not None}
    return _standardize(
        x, epsilon, *given.values(), axis=_make_hashable(axis), algorithm=algorithm, given=tuple(given)
    )


# One-hot encoding


@inline_jit
def _one_hot(x: ArrayLike, *, count: int, dtype: np.dtype[Any], axis: int) -> Array:
    x = to_array(promote(x)[0])
    shape = [1] * (x.ndim + 1)
    shape[axis] = count
    positions = broadcasted_iota(x.dtype, shape, axis)
    return convert_to(expand_dims(x, (axis,)) == positions, dtype)


@inline_jit
def _encode_mapped_axis(x: ArrayLike, *, dtype: DType, axis: int) -> Array:
    x = to_array(promote(x)[0])
    return convert_to(eq(x, convert_to(axis_index(axis), x.dtype)), dtype)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1) -> Array:
    """Return arrays with 1 at a position of a new axis, and 0 elsewhere.

    Args:
        x: the positions; an array of numbers. A position out of range gives zeros.
        num_classes: the size of the new axis.
        dtype: the dtype of the result; None for the default floating dtype.
        axis: the place of the new axis, or the name of a mapped axis of that size.

    Returns:
        An array with one more axis than `x`.

    Raises:
        TypeError: `num_classes` is not an integer.
        ValueError: there is no such axis, or it has another size.

    Example:
        >>> nn.one_hot(jnp.array([2, 0]), 3)
        Array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    if isinstance(num_classes, Tracer):
        raise explain.concretization(num_classes, "nn.one_hot argument num_classes")
    count = to_integer("num_classes", num_classes)
    aval = operand_aval(x, 0)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_boolean(aval.dtype)):
        warn_user(
            f"one_hot: x should be of an integer dtype, got {aval.dtype.name}; convert it with x.astype(int)",
            DeprecationWarning,
        )
    wanted = requested_dtype(dtype)
    wanted = dtypes.default_float(config.enable_x64.value) if wanted is None else wanted
    try:
        position = operator.index(axis)
    except TypeError:
        size = axis_size(axis)
        if count != size:
            raise ValueError(
                f"one_hot: num_classes must be the size {size} of the mapped axis {abbreviate(axis)}, got {count}"
            ) from None
        return _encode_mapped_axis(x, dtype=wanted, axis=axis)
    return _one_hot(x, count=count, dtype=wanted, axis=canonical_axis(position, aval.ndim + 1))
