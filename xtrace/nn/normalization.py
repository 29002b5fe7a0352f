"""Softmax and its relatives, standardization, and one-hot encoding."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from xtrace import numpy as jnp
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.api.operators.promotion import as_inexact, promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import is_array_like
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.collectives.collectives import axis_index, axis_size
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.complex_numbers import real
from xtrace._src.ops.elementwise.elementwise import is_finite, rsqrt, sub
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.reductions.reductions import add_elements, reduce_max
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.operands import select_or_fill
from xtrace.numpy.reductions.axes import ReducedAxes, count_elements, keep_axes, reduce_axes, reduced_axes
from xtrace.numpy.reductions.reductions import check_mask

_INFINITY = math.inf


# Softmax


def _shift_by_max(operand: ArrayLike, axis: Axes, mask: ArrayLike | None) -> tuple[Array, Array, ReducedAxes]:
    """Return ``x - max(x)`` along `axis`, its exponential, 0 where masked, and the axes."""
    x = to_array(promote(operand)[0])
    x = convert_to(x, x.dtype, False)
    axes = reduced_axes(axis, x.ndim)
    kept = x
    if mask is not None:
        kept = select_where(mask, x, -_INFINITY)
        kept = convert_to(kept, kept.dtype, x.weak_type)
    if dtypes.is_boolean(kept.dtype):
        raise TypeError(f"{called_function()} does not accept dtype bool; convert the array to a floating dtype")
    # The shift cancels, so it has no derivative.
    moved = kept - stop_gradient(keep_axes(reduce_axes(reduce_max, kept, axes), axes, kept.shape))
    return moved, jnp.exp(moved), axes


def _sum_unmasked(powers: Array, axes: ReducedAxes, mask: ArrayLike | None) -> Array:
    unmasked = powers if mask is None else select_or_fill(mask, powers, 0)
    return keep_axes(reduce_axes(add_elements, unmasked, axes), axes, powers.shape)


@inline_jit(static=("axis",), public=True)
def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Return ``exp(x)`` divided by its sum along an axis, without overflow.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes or names of mapped axes, or None for all axes of the array.
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
    check_mask(where)
    _, powers, axes = _shift_by_max(x, axis, where)
    shares = powers / _sum_unmasked(powers, axes, where)
    return shares if where is None else select_or_fill(where, shares, 0)


@inline_jit(static=("axis",), public=True)
def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Return the logarithm of `softmax`, without underflow.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes or names of mapped axes, or None for all axes of the array.
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
    check_mask(where)
    moved, powers, axes = _shift_by_max(x, axis, where)
    logarithms = moved - jnp.log(_sum_unmasked(powers, axes, where))
    return logarithms if where is None else select_or_fill(where, logarithms, -_INFINITY)


# Logarithms of sums


@inline_jit(static=("axis", "keepdims", "return_sign"), public=True)
def logsumexp(
    a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: bool = False,
    where: ArrayLike | None = None
) -> Any:
    """Return the logarithm of the sum of ``b * exp(a)`` along an axis, without overflow.

    Args:
        a: an array of numbers.
        axis: the axis, a sequence of axes or names of mapped axes, or None for all axes of the array.
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
    check_mask(where)
    x, *rest = [to_array(y) for y in promote(*([a] if b is None else [a, b]), adjust=as_inexact)]
    weights = rest[0] if rest else None
    if weights is not None:
        # Elements that are masked or have weight 0 count as -inf, so their exponentials cannot overflow.
        weights = weights if where is None else select_or_fill(where, weights, 0)
        x = select_where(weights != 0, x, -_INFINITY)
    elif where is not None:
        x = select_or_fill(where, x, -_INFINITY)
    complex_operands = dtypes.is_complex(x.dtype)
    axes = reduced_axes(axis, x.ndim)
    largest = reduce_axes(reduce_max, real(x) if complex_operands else convert_to(x, x.dtype), axes)
    largest = keep_axes(largest, axes, x.shape)
    shift = stop_gradient(select_where(is_finite(largest), largest, 0))
    terms = jnp.exp(sub(x, convert_to(shift, x.dtype)))
    if weights is not None:
        terms = terms * weights
    total = reduce_axes(add_elements, terms, axes)
    if keepdims:
        total = keep_axes(total, axes, terms.shape)
    else:
        shift = shift.reshape([n for i, n in enumerate(x.shape) if i not in axes])
    if not return_sign:
        return jnp.log(total) + convert_to(shift, total.dtype)
    positive = not complex_operands and weights is None
    return jnp.log(total if positive else jnp.abs(total)) + shift, jnp.sign(total)


@inline_jit(static=("axis", "keepdims"), public=True)
def logmeanexp(x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """Return the logarithm of the mean of ``exp(x)`` along an axis, without overflow.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes or names of mapped axes, or None for all axes of the array.
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
    check_mask(where)
    aval = operand_aval(x, 0)
    axes = reduced_axes(axis, aval.ndim)
    logarithm: Array = logsumexp(x, axes, keepdims=keepdims, where=where)
    if where is None:
        size = count_elements(aval.shape, axes)
        share = jnp.log(size) if is_symbolic(size) else math.log(size) if size else -_INFINITY
        return logarithm - share
    # Broadcast the mask to x, then count its true elements.
    mask = convert_to(to_array(where), dtypes.real_part_dtype(logarithm.dtype))
    whole = broadcast_in_dim(mask, aval.shape, range(aval.ndim - mask.ndim, aval.ndim))
    count = reduce_axes(add_elements, whole, axes)
    count = keep_axes(count, axes, whole.shape) if keepdims else count
    return logarithm - convert_to(jnp.log(count), logarithm.dtype)


# Standardization

_ALGORITHMS = ("fast", "stable")


@inline_jit(static=("axis", "algorithm"), public=True)
def standardize(
    x: ArrayLike, axis: Axes = -1, mean: ArrayLike | None = None, variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5, where: ArrayLike | None = None, *, algorithm: str = "fast",
) -> Array:
    """Return `x` shifted and scaled to mean 0 and variance 1 along an axis.

    Args:
        x: an array of real numbers.
        axis: the axis, a sequence of axes or names of mapped axes, or None for all axes of the array.
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
    reduced_axes(axis, operand_aval(x, 0).ndim)
    check_mask(where)
    x = to_array(promote(x, adjust=as_inexact)[0])
    centre = jnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None and algorithm == "fast":
        # E[x²] - E[x]², which rounding may make negative.
        variance = jnp.clip(jnp.mean(jnp.square(x), axis, keepdims=True, where=where) - jnp.square(centre), 0)
    elif variance is None:
        variance = jnp.mean(jnp.square(x - centre), axis, keepdims=True, where=where)
    return (x - centre) * rsqrt(variance + epsilon)


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
        x: the positions; an array of numbers, or a list of them. A position out of range gives zeros.
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
    x = x if is_array_like(x) else jnp.asarray(x)
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
