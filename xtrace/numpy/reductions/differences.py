"""Differences of neighbours, gradients, integrals, unwrapping and interpolation."""

from __future__ import annotations

import sys
from typing import Any

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import not_equal
from xtrace._src.api.operators.promotion import as_inexact, common_dtype, find_common_dtype, promote
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.ops.arrays import sorting
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.elementwise.ufuncs import abs, clip, mod, subtract
from xtrace.numpy.indexing.indexing import take
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import moveaxis, ravel
from xtrace.numpy.operands import axes_of, cast_to, only_axis, refuse, slice_axis
from xtrace.numpy.reductions.cumulative import cumsum
from xtrace.numpy.reductions.reductions import sum
from xtrace.numpy.sorting.ordering import searchsorted


@inline_jit
def _take_differences(a: Array, *, n: int, axis: int) -> Array:
    step = not_equal if dtypes.is_boolean(a.dtype) else subtract
    for _ in range(min(n, a.shape[axis])):
        length = a.shape[axis]
        a = step(slice_axis(a, 1, length, axis), slice_axis(a, 0, length - 1, axis))
    return a


@inline_jit(static=("n", "axis"), public=True)
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Return the differences of neighbours along an axis; of booleans, whether they differ.

    Args:
        a: an array of at least one axis.
        n: the order: the number of times that differences are taken.
        axis: the axis of the neighbours.
        prepend, append: arrays that are joined to `a` first, or scalars for one element each.

    Returns:
        An array of the dtype of `a`, `n` elements shorter along `axis`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` is a scalar or has no such axis, or `n` is negative.

    Example:
        >>> jnp.diff(jnp.array([1, 4, 9, 16]))
        Array([3, 5, 7], dtype=int32)
    """
    a = to_array_operand(a)
    count = to_integer("n", n)
    if count < 0:
        raise ValueError(f"diff: order must be non-negative but got {n}")
    if not count:
        # Without differences, any integer is accepted as an axis.
        canonical_axis(axis, sys.maxsize)
        return a
    if not a.ndim:
        raise ValueError("diff requires input that is at least one dimensional; got a scalar")
    along = canonical_axis(axis, a.ndim)
    parts = [a]
    for value, place in ((prepend, 0), (append, 2)):
        if value is not None:
            aval = operand_aval(value, 3)
            edge = (*a.shape[:along], 1, *a.shape[along + 1 :])
            parts.insert(place, to_array_operand(value) if aval.ndim else broadcast_to(value, edge))
    return _take_differences(concatenate(parts, along) if len(parts) > 1 else a, n=count, axis=along)


@inline_jit(public=True)
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Return the differences of neighbours in the flattened array.

    Args:
        ary: an array.
        to_end, to_begin: arrays or scalars that are placed after and before the differences.

    Returns:
        A vector of the dtype of `ary`.

    Raises:
        TypeError: `ary` is not an array.

    Example:
        >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
        Array([0, 3, 5], dtype=int32)
    """
    ary = ravel(to_array_operand(ary))
    if dtypes.is_boolean(ary.dtype):
        raise TypeError("ediff1d: truth values have no difference; use diff, or convert with astype")
    parts = [_take_differences(ary, n=1, axis=0)]
    for value, place in ((to_begin, 0), (to_end, 2)):
        if value is not None:
            aval = operand_aval(value, 1)
            ready = cast_to(to_array_operand(value), aval, ary.dtype)
            parts.insert(place, ravel(convert_to(ready, ary.dtype, False)))
    return concatenate(parts) if len(parts) > 1 else parts[0]


def _compute_gradient(f: Array, h: Array, axis: int) -> Array:
    """Return central differences inside and one-sided ones at both ends of `axis`; `h` is a step or coordinates."""
    length = f.shape[axis]
    ends = [slice_axis(f, 1, 2, axis) - slice_axis(f, 0, 1, axis),
            slice_axis(f, length - 1, length, axis) - slice_axis(f, length - 2, length - 1, axis)]
    if not h.ndim:
        inside = (slice_axis(f, 2, length, axis) - slice_axis(f, 0, length - 2, axis)) * 0.5 / h
        return concatenate([ends[0] / h, inside, ends[1] / h], axis)
    steps = broadcast_in_dim(h[1:] - h[:-1], [length - 1 if i == axis else 1 for i in range(f.ndim)], (axis,))
    first, last = (slice_axis(steps, i, i + 1, axis) for i in (0, length - 2))
    # Second order for uneven steps: the parabola through three neighbours (Fornberg, 1988).
    before, after = slice_axis(steps, 0, length - 2, axis), slice_axis(steps, 1, length - 1, axis)
    low, middle, high = (slice_axis(f, i, length - 2 + i, axis) for i in range(3))
    both = before + after
    inside = low * (-after / (before * both)) + middle * ((after - before) / (before * after))
    return concatenate([ends[0] / first, inside + high * (before / (after * both)), ends[1] / last], axis)


@inline_jit(static=("axis", "edge_order"), public=True)
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int | None = None) -> Any:
    """Return the derivatives of samples along axes, by differences that are central inside and one-sided at the ends.

    Args:
        f: an array of samples, at least two along each axis.
        varargs: the distance of the samples, or a vector of their coordinates, for all axes or for each; by default
            1.
        axis: an axis or several; None for all.
        edge_order: not supported; leave it at None.

    Returns:
        An array of the shape of `f` for one axis, otherwise a list of them, one for each axis.

    Raises:
        NotImplementedError: `edge_order` is given.
        TypeError: `f` is not an array, or the number of distances differs from the number of axes.
        ValueError: an axis has fewer than two samples.

    Example:
        >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
        Array([3., 4., 6., 7.], dtype=float32)
    """
    refuse(edge_order=edge_order)
    avals, dtype, _ = common_dtype((f, *varargs), as_inexact)
    axes = axes_of(axis, avals[0].ndim)
    if any(avals[0].shape[i] < 2 for i in axes):
        raise ValueError(
            f"gradient: shape {avals[0].shape} is too small along axes {axes} to calculate a numerical gradient; at "
            "least 2 elements are required"
        )
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"gradient: invalid number of spacing arguments, {len(varargs)} for {len(axes)} axes")
    spacings = list(varargs or (1.0,))
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    for spacing, along in zip(spacings, axes, strict=True):
        shape = operand_aval(spacing, 1).shape
        if len(shape) > 1 or (shape and shape != (avals[0].shape[along],)):
            raise ValueError(
                f"gradient: spacing arrays must be scalars or as long as the axis; got shape {shape} for axis {along} "
                f"of length {avals[0].shape[along]}"
            )
    f = to_array_operand(f)
    f = convert_to(f, dtype, f.weak_type)
    gradients = [
        _compute_gradient(f, convert_to(x, dtype, x.weak_type), i)
        for x, i in zip([to_array_operand(h) for h in spacings], axes, strict=True)
    ]
    return gradients[0] if len(gradients) == 1 else gradients


@inline_jit(static=("axis",), public=True)
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integrate samples along an axis by the trapezoidal rule.

    Args:
        y: an array of samples.
        x: the coordinates of the samples, a vector or an array of the shape of `y`; None for equal distances.
        dx: the distance of samples where `x` is None.
        axis: the axis of integration.

    Returns:
        An array of the other axes, of a floating dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `y` has no such axis.

    Example:
        >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
        Array(2., dtype=float32)
    """
    spacing = dx if x is None else x
    if x is None:
        (y,) = promote(y, adjust=as_inexact)
    avals, dtype, _ = common_dtype((y, spacing), as_inexact)
    axis = only_axis(axis)
    along = canonical_axis(axis, avals[0].ndim)
    if not avals[0].shape[along]:
        raise IndexError(f"trapezoid: axis {along} of an array of shape {avals[0].shape} has no samples")
    axis = to_integer("axis", axis)
    spacing = convert_to(to_array_operand(spacing), dtype, False)
    samples = moveaxis(convert_to(to_array_operand(y), dtype, False), axis, -1)
    if x is None:
        return spacing * (sum(samples, -1) - (samples[..., 0] + samples[..., -1]) * 0.5)
    if spacing.ndim > 1:
        # Coordinates of another rank are differenced along their own axis of that number.
        spacing = moveaxis(spacing, axis, -1)
    steps = spacing[..., 1:] - spacing[..., :-1]
    return 0.5 * sum(steps * (samples[..., 1:] + samples[..., :-1]), -1)


@inline_jit(static=("axis",), public=True)
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 6.283185307179586
) -> Array:
    """Add multiples of a period to angles, so that no step along an axis is longer than half a period.

    Args:
        p: an array of real numbers.
        discont: the smallest step that is changed; None for half a period; smaller values act as that.
        axis: the axis of the steps.
        period: the period, a number.

    Returns:
        An array of the shape of `p`, of a floating dtype unless `p` and `period` are integers.

    Raises:
        TypeError: `p` is not an array.
        ValueError: `p` is complex or has no such axis.

    Example:
        >>> jnp.unwrap(jnp.array([0, 3, 1]), period=4)
        Array([ 0, -1, -3], dtype=int32)
    """
    avals, dtype, _ = common_dtype((p, period))
    if dtypes.is_complex(dtype):
        raise ValueError(f"unwrap: complex numbers have no order; got {avals[0]}")
    if not avals[0].ndim:
        raise IndexError("unwrap: a scalar has no axis to unwrap along")
    along = canonical_axis(axis, avals[0].ndim)
    if not avals[0].shape[along]:
        return to_array_operand(p)
    if discont is not None:
        operand_aval(discont, 1)
    p, period = [convert_to(to_array_operand(x), dtype, False) for x in (p, period)]
    jump: Any = period / 2 if discont is None else discont
    half = period // 2 if dtypes.is_integer(dtype) else period / 2
    steps = _take_differences(p, n=1, axis=along)
    inside = mod(steps + half, period) - half
    # A step up of exactly half a period stays one up.
    inside = where((inside == -half) & (steps > 0), half, inside)
    correction = where(abs(steps) < jump, 0, inside - steps)
    rest = slice_axis(p, 1, p.shape[along], along) + cumsum(correction, along)
    return concatenate([slice_axis(p, 0, 1, along), rest], along)


@inline_jit
def _interpolate(
    x: Any, xp: Any, fp: Any, *options: object, given: tuple[str, ...], dtype: DTypeLike, result: DTypeLike
) -> Any:
    values = dict(zip(given, options, strict=True))
    x, xp = (convert_to(to_array_operand(v), dtype, False) for v in (x, xp))
    fp = convert_to(to_array_operand(fp), result, False)
    if "period" in given:
        period = abs(convert_to(to_array_operand(values["period"]), dtype, False))
        x, xp = mod(x, period), mod(xp, period)
        xp, fp = sorting.sort((xp, fp))
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    length = xp.shape[0]
    above = clip(searchsorted(xp, x, "right"), 1, length - 1)
    first_x, first_f = take(xp, above - 1, mode="clip"), take(fp, above - 1, mode="clip")
    run = take(xp, above, mode="clip") - first_x
    # Points that coincide up to rounding: the slope is undefined, and the first ordinate is taken.
    vertical = abs(run) <= float(dtypes.finfo(dtype).eps) ** 2
    slope = (x - first_x) / where(vertical, 1, run)
    values_at_x = where(vertical, first_f, first_f + slope * (take(fp, above, mode="clip") - first_f))
    if "period" in given:
        return values_at_x
    if "extrapolate left" not in given:
        values_at_x = where(x < xp[0], values.get("left", fp[0]), values_at_x)
    if "extrapolate right" not in given:
        values_at_x = where(x > xp[-1], values.get("right", fp[-1]), values_at_x)
    return values_at_x


@inline_jit(public=True)
def interp(
    x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None = None, right: ArrayLike | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly between points.

    Args:
        x: an array or a scalar of real numbers.
        xp: the abscissas of the points, an increasing vector.
        fp: the ordinates of the points, a vector of the same length, real or complex.
        left, right: the values outside the points; None for the ordinates of the outermost points, ``"extrapolate"``
            to extend the outermost lines.
        period: the period of `x`; with it `xp` may have any order, and `left` and `right` have no effect.

    Returns:
        An array of the shape of `x`, of a floating or complex dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `xp` and `fp` are not vectors of one length, `x` or `xp` is complex.

    Example:
        >>> jnp.interp(2.5, jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 2.0, 0.0]))
        Array(1., dtype=float32)

    Reference:
        Defined as in ``numpy.interp``, in NumPy's manual.
    """
    sides = (("left", left), ("right", right))
    for name, value in sides:
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"interp: {name} must be a number or 'extrapolate', got {abbreviate(value)}")
    numbers = [value for _, value in sides if value is not None and not isinstance(value, str)]
    points, dtype, weak = common_dtype((x, xp), as_inexact)
    values = operand_aval(fp, 2)
    result = as_inexact(find_common_dtype(x, xp, fp, *numbers), False)[0]
    # Integer values become floating ones of the same width.
    _, own, weak_values = common_dtype((fp,), as_inexact)
    both = (result, False), (own, weak_values)
    result = type_promotion.promote(both, config.enable_x64.value, wide=config.keeps_wide_dtypes())[0]
    if points[1].ndim != 1 or values.shape != points[1].shape:
        raise ValueError(
            f"interp: xp and fp must be one-dimensional arrays of equal size; got shapes {points[1].shape} and "
            f"{values.shape}"
        )
    if dtypes.is_complex(dtype):
        raise ValueError(f"interp: complex x values are not supported; got {points[0]} and {points[1]}")
    if not points[1].size:
        raise ValueError("interp: xp and fp have no points")
    options: dict[str, Any] = {}
    if period is not None:
        if operand_aval(period, 5).ndim:
            raise ValueError(f"interp: period must be a scalar; got shape {operand_aval(period, 5).shape}")
        options["period"] = period
    for name, value in sides:
        if isinstance(value, str):
            options[f"extrapolate {name}"] = 0
        elif value is not None:
            options[name] = value
    interpolated = _interpolate(x, xp, fp, *options.values(), given=tuple(options), dtype=dtype, result=result)
    weak = weak and weak_values and all(operand_aval(v, 0).weak_type for v in numbers)
    return convert_to(interpolated, result, weak)
