"""Reductions that ignore NaN."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import eq, gt
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.operands import refuse, scalar_of, select_or_fill
from xtrace.numpy.reductions import cumulative, reductions, statistics
from xtrace.numpy.reductions.axes import reduced_axes


def _is_number(a: Array) -> Array:
    return eq(a, a)


def _find_extremum(
    name: str, a: ArrayLike, axis: Axes, out: object, keepdims: bool, initial: Any, mask: object
) -> Array:
    refuse(out=out)
    if not dtypes.is_inexact(operand_aval(a, 0).dtype):
        return reductions.find_extremum(name, a, axis, out, keepdims, reductions.to_initial(initial), mask)
    a = to_array_operand(a)
    numbers = _is_number(a)
    filled = select_or_fill(numbers, a, -math.inf if name == "max" else math.inf)
    extremum = reductions.find_extremum(name, filled, axis, None, keepdims, initial, mask)
    if initial is not None:
        return extremum
    return select_or_fill(reductions.any(numbers, axis, keepdims=keepdims), extremum, math.nan)


def _replace_nan(a: Any, replacement: int) -> Any:
    dtype = operand_aval(a, 0).dtype
    if not dtypes.is_inexact(dtype):
        return a
    a = reductions.to_strong(a, dtype)
    return select_or_fill(_is_number(a), a, replacement)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nansum(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: ArrayLike | None = None,
) -> Array:
    """Return the sums of elements over axes, NaN counted as zero.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`; small integers and booleans become the
        default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
        Array(4., dtype=float32)
    """
    start = reductions.to_initial(initial)
    return reductions.sum_or_multiply("sum", _replace_nan(a, 0), axis, dtype, out, keepdims, start, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanprod(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: ArrayLike | None = None,
) -> Array:
    """Return the products of elements over axes, NaN counted as one.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`; small integers and booleans become the
        default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nanprod(jnp.array([1.0, jnp.nan, 3.0]))
        Array(3., dtype=float32)
    """
    start = reductions.to_initial(initial)
    return reductions.sum_or_multiply("prod", _replace_nan(a, 1), axis, dtype, out, keepdims, start, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanmax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None
) -> Array:
    """Return the largest elements over axes, ignoring NaN; NaN if all elements are NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or, without `initial`, `a` is empty or `where` is given.

    Example:
        >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
        Array(3., dtype=float32)
    """
    return _find_extremum("max", a, axis, out, keepdims, initial, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanmin(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None
) -> Array:
    """Return the smallest elements over axes, ignoring NaN; NaN if all elements are NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or, without `initial`, `a` is empty or `where` is given.

    Example:
        >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    return _find_extremum("min", a, axis, out, keepdims, initial, where)


def _find_position(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    refuse(out=out)
    if not dtypes.is_floating(operand_aval(a, 0).dtype):
        return reductions.find_position(name, a, axis, out, keepdims)
    a = to_array_operand(a)
    numbers = _is_number(a)
    filled = select_or_fill(numbers, a, -math.inf if name == "argmax" else math.inf)
    position = reductions.find_position(name, filled, axis, None, keepdims)
    return select_or_fill(reductions.any(numbers, axis, keepdims=bool(keepdims)), position, -1)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Return the index of the first largest element along an axis, ignoring NaN; -1 if all elements are NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis, an integer; None for the flattened array.
        out: not supported; leave it at None.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An array of the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is complex, or neither an array nor a scalar.
        ValueError: `a` has no such axis, or `a` is empty.

    Example:
        >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
        Array(2, dtype=int32)
    """
    return _find_position("argmax", a, axis, out, keepdims)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Return the index of the first smallest element along an axis, ignoring NaN; -1 if all elements are NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis, an integer; None for the flattened array.
        out: not supported; leave it at None.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An array of the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is complex, or neither an array nor a scalar.
        ValueError: `a` has no such axis, or `a` is empty.

    Example:
        >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 3.0]))
        Array(0, dtype=int32)
    """
    return _find_position("argmin", a, axis, out, keepdims)


@inline_jit(static=("axis", "out"), public=True)
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Return the running sums along an axis, NaN counted as zero.

    Args:
        a: an array or a scalar.
        axis: the axis, an integer; None for the flattened array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `a`, of its dtype; booleans count as the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
        Array([1., 1., 4.], dtype=float32)
    """
    refuse(out=out)
    return _accumulate("cumsum", a, axis, dtype)


@inline_jit(static=("axis", "out"), public=True)
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Return the running products along an axis, NaN counted as one.

    Args:
        a: an array or a scalar.
        axis: the axis, an integer; None for the flattened array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `a`, of its dtype; booleans count as the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nancumprod(jnp.array([1.0, jnp.nan, 3.0]))
        Array([1., 1., 3.], dtype=float32)
    """
    refuse(out=out)
    return _accumulate("cumprod", a, axis, dtype)


def _accumulate(name: str, a: ArrayLike, axis: int | None, dtype: Any) -> Array:
    aval = operand_aval(a, 0)
    if not dtypes.is_inexact(aval.dtype):
        return cumulative.accumulate(a, axis, dtype, name)
    along = None if axis is None else canonical_axis(axis, aval.ndim or 1)
    a = to_array_operand(a)
    filled = select_or_fill(_is_number(a), a, 0 if name == "cumsum" else 1)
    return cumulative.accumulate(filled, along, requested_dtype(dtype), name)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanmean(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    where: ArrayLike | None = None
) -> Array:
    """Return the means over axes, ignoring NaN; NaN if all elements are NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`, for integers and booleans of the
        default floating dtype.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
        Array(2., dtype=float32)
    """
    refuse(out=out)
    aval = operand_aval(a, 0)
    axes = reduced_axes(axis, aval.ndim)
    if not dtypes.is_inexact(aval.dtype):
        return statistics.mean(a, axes, dtype, None, keepdims, where=where)
    wanted = requested_dtype(dtype)
    wanted = aval.dtype if wanted is None else wanted
    reductions.check_divides(wanted)
    reductions.check_mask(where)
    a = to_array_operand(a)
    numbers = _is_number(a)
    terms = numbers, select_or_fill(numbers, a, 0)
    count, total = [reductions.sum(x, axes, wanted, keepdims=keepdims, where=where) for x in terms]
    return elementwise.div(total, count)


def _compute_variance(
    a: ArrayLike, ddof: Any, axis: Axes, dtype: Any, out: Any, keepdims: bool, mask: Any, mean: Any, root: bool
) -> Array:
    """Return the variance of the numbers in `a`, or its `root`."""
    refuse(out=out)
    aval = operand_aval(a, 0)
    axes = reduced_axes(axis, aval.ndim)
    compute, wanted = statistics.variance_dtypes(aval.dtype, dtype)
    reductions.check_divides(wanted)
    reductions.check_mask(mask)
    statistics.check_correction(ddof)
    a = convert_to(to_array_operand(a), compute, False)
    numbers = _is_number(a)
    centre = nanmean(a, axes, compute, keepdims=True, where=mask) if mean is None else mean
    centred = select_or_fill(numbers, elementwise.sub(a, convert_to(centre, compute, False)), 0)
    squares = statistics.square_sizes(centred)
    integer = dtypes.default_int(config.enable_x64.value)
    count = reductions.sum(convert_to(numbers, integer), axes, keepdims=keepdims, where=mask)
    divisor = count - ddof
    enough = gt(divisor, scalar_of(0, divisor.dtype))
    total = reductions.sum(squares, axes, keepdims=keepdims, where=mask)
    if not dtypes.is_inexact(total.dtype):
        total = convert_to(total, dtypes.default_float(config.enable_x64.value), False)
    total = select_or_fill(enough, total, math.nan)
    variance = elementwise.div(total, convert_to(select_or_fill(enough, divisor, 1), total.dtype, False))
    variance = convert_to(variance, wanted, False)
    return elementwise.sqrt(variance) if root else variance


@inline_jit(static=("axis", "dtype", "out", "keepdims"), public=True)
def nanvar(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: object = 0,
    keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
) -> Array:
    """Return the variances over axes, ignoring NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        ddof: the divisor is the number of elements minus `ddof`; the result is NaN for a divisor below 1.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.
        mean: the mean, with the reduced axes kept; None to compute it.

    Returns:
        An array of the remaining axes, of the dtype of `a`, for integers and booleans of the
        default floating dtype, real for complex numbers.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    return _compute_variance(a, ddof, axis, dtype, out, keepdims, where, mean, False)


@inline_jit(static=("axis", "dtype", "out", "keepdims"), public=True)
def nanstd(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: object = 0,
    keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
) -> Array:
    """Return the standard deviations over axes, ignoring NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        ddof: the divisor is the number of elements minus `ddof`; the result is NaN for a divisor below 1.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.
        mean: the mean, with the reduced axes kept; None to compute it.

    Returns:
        An array of the remaining axes, of the dtype of `a`, for integers and booleans of the
        default floating dtype, real for complex numbers.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    return _compute_variance(a, ddof, axis, dtype, out, keepdims, where, mean, True)
