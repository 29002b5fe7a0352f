"""Means, variances and ranges along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval, transpose
from xtrace._src.api.jit.inline_jit import inline_jit, to_number_operand
from xtrace._src.api.operators.operators import multiply, true_divide
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import gt
from xtrace._src.ops.reductions import reductions
from xtrace.numpy.arrays.creation import full, warn_of_lost_part
from xtrace.numpy.operands import axes_of, refuse, scalar_of, select_or_fill
from xtrace.numpy.reductions.axes import ReducedAxes, array_axes, count_elements, keep_axes, reduce_axes, reduced_axes
from xtrace.numpy.reductions.reductions import accumulator_dtype, check_divides, check_mask, sum, to_strong

with late_modules(globals()):
    from xtrace._src.ops.elementwise import complex_numbers
    from xtrace.numpy.manipulation.broadcasting import broadcast_to


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the largest minus the smallest elements over axes.

    Args:
        a: an array or a scalar of numbers.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` has booleans, or is neither an array nor a scalar.
        ValueError: `a` has no such axis, or `a` is empty.

    Example:
        >>> jnp.ptp(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([2, 2], dtype=int32)
    """
    refuse(out=out)
    aval = operand_aval(a, 0)
    axes = reduced_axes(axis, aval.ndim)
    if 0 in [aval.shape[i] for i in array_axes(axes)]:
        raise ValueError(f"ptp: no elements along axis {axis} of an array of shape {aval.shape}")
    a = to_strong(a, aval.dtype)
    largest, smallest = [reduce_axes(reduce, a, axes) for reduce in (reductions.reduce_max, reductions.reduce_min)]
    extent = elementwise.sub(largest, smallest)
    return keep_axes(extent, axes, aval.shape) if keepdims else extent


def square_sizes(x: Array) -> Array:
    """Return the squared absolute values of elements."""
    if dtypes.is_complex(x.dtype):
        return complex_numbers.real(elementwise.mul(x, complex_numbers.conj(x)))
    return elementwise.square(x)


def _compute_mean(a: Any, mask: ArrayLike | None, axes: ReducedAxes, compute: Any, keepdims: bool) -> Array:
    """Return the mean of `a`, of element type `compute`, over `axes`."""
    count: Any
    if mask is not None:
        total = reduce_axes(reductions.reduce_sum, select_or_fill(mask, a, 0), axes)
        count = reduce_axes(reductions.reduce_sum, to_strong(broadcast_to(mask, a.shape), compute), axes)
        count = keep_axes(count, axes, a.shape) if keepdims else count
    else:
        total = reduce_axes(reductions.reduce_sum, a, axes)
        count = scalar_of(count_elements(a.shape, axes), compute)
    return elementwise.div(keep_axes(total, axes, a.shape) if keepdims else total, count)


def _to_inexact_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return as_inexact(dtype, False)[0]


@inline_jit(static=("axis", "dtype", "out", "keepdims"), public=True)
def mean(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None
) -> Array:
    """Return the means of elements over axes; NaN of no elements.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`, for integers and booleans of the
        default floating dtype. float16 and bfloat16 are added in float32.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([2., 3.], dtype=float32)
    """
    refuse(out=out)
    aval = operand_aval(a, 0)
    wanted = requested_dtype(dtype)
    compute = wanted
    if wanted is None:
        wanted = _to_inexact_dtype(aval.dtype)
        compute = accumulator_dtype(aval.dtype, wanted)
    check_divides(wanted)
    warn_of_lost_part(aval.dtype, wanted)
    check_mask(where)
    axes = reduced_axes(axis, aval.ndim)
    return to_strong(_compute_mean(to_strong(a, compute), where, axes, compute, keepdims), wanted)


@inline_jit
def _compute_variance(
    a: ArrayLike, correction: ArrayLike, mask: ArrayLike | None, mean: ArrayLike | None, *, axes: ReducedAxes,
    compute: np.dtype[Any], dtype: np.dtype[Any], keepdims: bool, root: bool,
) -> Array:
    """Return the variance, or its `root`."""
    a = to_strong(a, compute)
    centre = _compute_mean(a, mask, axes, compute, True) if mean is None else mean
    squares = square_sizes(elementwise.sub(a, convert_to(centre, compute)))
    part = squares.dtype
    count: Any
    if mask is not None:
        count = reduce_axes(reductions.reduce_sum, to_strong(broadcast_to(mask, a.shape), part), axes)
        squares = select_or_fill(mask, squares, 0)
    else:
        count = scalar_of(count_elements(a.shape, axes), part)
    # A traced correction keeps the divisor from being a constant, which XLA would replace by its reciprocal.
    divisor = elementwise.sub(count, to_strong(correction, part))
    variance = to_strong(elementwise.div(reduce_axes(reductions.reduce_sum, squares, axes), divisor), dtype)
    if not dtypes.is_inexact(dtype):
        # The requested dtype is integer, but the computation needs NaN.
        variance = convert_to(variance, dtypes.default_float(config.enable_x64.value), True)
    variance = select_or_fill(gt(divisor, scalar_of(0, part)), variance, math.nan)
    if root:
        variance = elementwise.sqrt(variance)
    return keep_axes(variance, axes, a.shape) if keepdims else variance


def variance_dtypes(own: Any, dtype: DTypeLike) -> tuple[Any, Any]:
    """Return the dtypes of the computation and the result of a variance of `own` elements; `dtype` is requested."""
    wanted = requested_dtype(dtype)
    inexact = _to_inexact_dtype(own)
    if wanted is None:
        compute, wanted = accumulator_dtype(inexact, inexact), dtypes.real_part_dtype(inexact)
    elif dtypes.is_complex(inexact) and not dtypes.is_complex(wanted):
        raise ValueError(
            f"{called_function()}: dtype {wanted.name} is real and the array is complex; take x.real, or leave dtype "
            "out"
        )
    else:
        compute = accumulator_dtype(wanted, wanted)
    return compute, wanted


def check_correction(ddof: ArrayLike) -> None:
    """Raise ValueError unless the correction is a scalar."""
    shape = operand_aval(ddof, 1).shape
    if shape:
        raise ValueError(f"{called_function()}: ddof must be a scalar; got shape {shape}")


def _resolve_correction(ddof: object, correction: ArrayLike | None) -> Any:
    """Return the correction as an operand; ValueError if both of its names are given."""
    if correction is not None:
        if ddof:
            raise ValueError(
                f"{called_function()}: ddof and correction can't be provided simultaneously; they mean the same"
            )
        ddof = correction
    return to_number_operand(ddof)


@inline_jit(static=("axis", "dtype", "out", "keepdims", "root"), public=True)
def _reduce_to_variance(
    a: ArrayLike, ddof: Any, axis: Axes, dtype: Any, out: object, keepdims: bool, mask: Any,
    mean: ArrayLike | None, root: bool,
) -> Array:
    refuse(out=out)
    aval = operand_aval(a, 0)
    compute, wanted = variance_dtypes(aval.dtype, dtype)
    if root and not dtypes.is_inexact(wanted):
        raise ValueError(f"{called_function()}: dtype must be inexact, since roots are not integers; got {wanted.name}")
    check_divides(wanted)
    check_correction(ddof)
    check_mask(mask)
    return _compute_variance(
        a, ddof, mask, mean, axes=reduced_axes(axis, aval.ndim), compute=compute, dtype=wanted, keepdims=bool(keepdims),
        root=root,
    )


@inline_jit(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"), public=True)
def var(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: Any = None,
) -> Array:
    """Return the variances of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        ddof: the divisor is the number of elements minus `ddof`; the result is NaN for a divisor below 1.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.
        mean: the mean, with the reduced axes kept; None to compute it.
        correction: another name of `ddof`.

    Returns:
        An array of the remaining axes, of the dtype of `a`, for integers and booleans of the
        default floating dtype, real for complex numbers.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or `ddof` and `correction` are given.

    Example:
        >>> jnp.var(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1., 1.], dtype=float32)
    """
    ddof = _resolve_correction(ddof, correction)
    return _reduce_to_variance(a, ddof, axis, dtype, out, keepdims, where, mean, False)


@inline_jit(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"), public=True)
def std(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: Any = None,
) -> Array:
    """Return the standard deviations of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        ddof: the divisor is the number of elements minus `ddof`; the result is NaN for a divisor below 1.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.
        mean: the mean, with the reduced axes kept; None to compute it.
        correction: another name of `ddof`.

    Returns:
        An array of the remaining axes, of the dtype of `a`, for integers and booleans of the
        default floating dtype, real for complex numbers.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or `ddof` and `correction` are given.

    Example:
        >>> jnp.std(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1., 1.], dtype=float32)
    """
    ddof = _resolve_correction(ddof, correction)
    return _reduce_to_variance(a, ddof, axis, dtype, out, keepdims, where, mean, True)


@inline_jit(static=("axis", "returned", "keepdims"), public=True)
def average(
    a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Return weighted means over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        weights: the weights, an array of the shape of `a`, or a vector of its length along `axis`; None for equal
            weights.
        returned: whether the sums of the weights are returned, too.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of a floating or complex dtype, or with `returned` a pair of it and the sums.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `weights` have another shape, or `a` has no such axis.

    Example:
        >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3, 1]))
        Array(1.25, dtype=float32)
    """
    aval = operand_aval(a, 0)
    axes = axes_of(axis, aval.ndim)
    if weights is None:
        averages = mean(a, axis, keepdims=keepdims)
        if not returned:
            return averages
        return averages, full(averages.shape, math.prod([aval.shape[i] for i in axes]), averages.dtype)
    own = operand_aval(weights, 1)
    if own.shape != aval.shape:
        if axis is None:
            raise ValueError(
                f"average: Axis must be specified when shapes of a {aval.shape} and weights {own.shape} differ"
            )
        if own.shape != tuple([aval.shape[i] for i in axes]):
            raise ValueError(
                f"average: Shape of weights {own.shape} must be consistent with shape of a {aval.shape} along axis "
                f"{axis}"
            )
    averages, total = _compute_weighted_average(a, weights, axes=axes, keepdims=bool(keepdims))
    return (averages, total) if returned else averages


@inline_jit
def _compute_weighted_average(a: ArrayLike, weights: ArrayLike, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    (aval, own), dtype, _ = common_dtype((a, weights), as_inexact)
    a, weights = to_strong(a, dtype), to_strong(weights, dtype)
    if own.shape != aval.shape:
        ordered = sorted(range(len(axes)), key=lambda i: axes[i])
        weights = broadcast_in_dim(transpose(weights, ordered), aval.shape, sorted(axes))
    total = sum(weights, axes, keepdims=keepdims)
    return true_divide(sum(multiply(a, weights), axes, keepdims=keepdims), total), total
