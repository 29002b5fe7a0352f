"""Sums, products, extrema, statistics and running sums along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, converted, reshape, transpose
from xtrace._src.api.inline_jit import inline_jit, to_number_operand
from xtrace._src.api.operators import multiply, true_divide
from xtrace._src.api.promotion import as_inexact, common_dtype
from xtrace._src.core import config, dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.ops import elementwise, reductions
from xtrace._src.ops.arrays import shape
from xtrace.numpy.creation import broadcast_to, full, to_array_operand, warn_of_lost_part
from xtrace.numpy.operands import axes_of, cast_to, refuse, scalar_of, select_or_fill, type_of

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "nanprod", "nansum", "prod", "ptp", "std", "sum", "var",
]


class _Reduction(NamedTuple):
    """How elements along axes become one: lax's reduction, what joins two results, and what joining leaves alone."""

    reduce: Callable[..., Any]
    join: Callable[[Any, Any], Any]
    identity: Callable[[Any], Any]


def _lowest(dtype: np.dtype[Any]) -> Any:
    return (
        False if dtypes.is_boolean(dtype) else int(dtypes.iinfo(dtype).min) if dtypes.is_integer(dtype) else -math.inf
    )


def _highest(dtype: np.dtype[Any]) -> float:
    return True if dtypes.is_boolean(dtype) else int(dtypes.iinfo(dtype).max) if dtypes.is_integer(dtype) else math.inf


_REDUCTIONS = {
    "sum": _Reduction(reductions.reduce_sum, elementwise.add, lambda dtype: 0),
    "prod": _Reduction(reductions.reduce_prod, elementwise.mul, lambda dtype: 1),
    "max": _Reduction(reductions.reduce_max, elementwise.max, _lowest),
    "min": _Reduction(reductions.reduce_min, elementwise.min, _highest),
    "any": _Reduction(reductions.reduce_or, elementwise.bitwise_or, lambda dtype: False),
    "all": _Reduction(reductions.reduce_and, elementwise.bitwise_and, lambda dtype: True),
}


def _strong(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an operand as a strongly typed one with element type `dtype`."""
    if isinstance(value, (np.ndarray, np.generic)):
        return cast_to(value, type_of("convert", value), dtype)
    return converted(value, dtype, False)


def _kept(value: Any, axes: tuple[int, ...], own: tuple[int, ...]) -> Array:
    """Return a reduced value with axes of size 1 where `own` was reduced over `axes`."""
    target = tuple([1 if i in axes else n for i, n in enumerate(own)])
    return broadcast_in_dim(value, target, [i for i in range(len(own)) if i not in axes])


@inline_jit
def _reduced(
    a: Array, *options: ArrayLike, name: str, axes: tuple[int, ...], compute: np.dtype[Any], dtype: np.dtype[Any],
    keepdims: bool, masked: bool, initialised: bool,
) -> Array:
    """Reduce `a` in element type `compute`; `options` are the mask and the initial value, where there are any."""
    operation, rest = _REDUCTIONS[name], list(options)
    a = _strong(a, compute)
    if masked:
        a = select_or_fill(rest.pop(0), a, operation.identity(compute))
    result = operation.reduce(a, axes)
    if initialised:
        result = operation.join(_strong(rest.pop(0), compute), result)
    if keepdims:
        result = _kept(result, axes, a.shape)
    return _strong(result, dtype)


def _reduce(
    function: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any = None, mask: Any = None, *,
    name: str | None = None, widen: bool = False,
) -> Any:
    """Check the arguments of a reduction and do it; `dtype` is the result's, None for the operand's."""
    refuse(function, out=out)
    aval = type_of(function, a)
    axes = axes_of(function, axis, aval.ndim)
    dtype = aval.dtype if dtype is None else dtype
    warn_of_lost_part(aval.dtype, dtype)
    options = []
    if mask is not None:
        if not dtypes.is_boolean(type_of(function, mask, 1).dtype):
            raise ValueError(f"{function}: where must be None or a boolean array; got {type_of(function, mask, 1)}")
        options.append(mask)
    if initial is not None:
        if type_of(function, initial, 1).shape:
            raise ValueError(f"{function}: initial must be a scalar; got shape {type_of(function, initial, 1).shape}")
        warn_of_lost_part(type_of(function, initial, 1).dtype, dtype)
        options.append(initial)
    return _reduced(
        a, *options, name=name or function, axes=axes, compute=_accumulator(aval.dtype, dtype) if widen else dtype,
        dtype=dtype, keepdims=bool(keepdims), masked=mask is not None, initialised=initial is not None,
    )


def _accumulator(own: np.dtype[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to add up in: float32 at least where the operand has a smaller floating type."""
    if dtypes.is_floating(own) and own.itemsize < 4 and dtypes.is_floating(dtype) and dtype.itemsize < 4:
        return dtypes.float32
    return dtype


def _sum_dtype(function: str, a: Any, dtype: Any, promote_integers: bool) -> np.dtype[Any]:
    """Return the dtype of a sum: integers narrower than the default one, and booleans, become it."""
    wanted = requested_dtype(function, dtype)
    own = type_of(function, a).dtype
    x64 = config.enable_x64.value
    if wanted is not None:
        return wanted
    if dtypes.is_boolean(own):
        return dtypes.default_int(x64)
    if promote_integers and dtypes.is_integer(own):
        default = dtypes.default_int(x64) if dtypes.is_signed(own) else dtypes.default_uint(x64)
        return default if dtypes.bit_width(own) < dtypes.bit_width(default) else own
    return dtypes.canonicalize(own, config.keeps_wide_dtypes())


def _accumulate(
    function: str, name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any,
    promote_integers: bool = True,
) -> Any:
    """Return the sum or product, as `name` says, for the public function called `function`."""
    sum_dtype = _sum_dtype(function, a, dtype, promote_integers)
    if dtypes.is_boolean(sum_dtype):
        name = {"sum": "any", "prod": "all"}[name]
        return _reduce(function, a, axis, sum_dtype, out, keepdims, initial, where, name=name)
    return _reduce(function, a, axis, sum_dtype, out, keepdims, initial, where, name=name, widen=dtype is None)


@inline_jit(static=("axis", "dtype", "out", "keepdims", "promote_integers"), public=True)
def sum(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Array:
    """Return the sums of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.
        promote_integers: whether small integers and booleans become the default integer.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a` if `promote_integers` does not change it.
        float16 and bfloat16 are added or multiplied in float32.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
    """
    return _accumulate("sum", "sum", a, axis, dtype, out, keepdims, initial, where, promote_integers)


@inline_jit(static=("axis", "dtype", "out", "keepdims", "promote_integers"), public=True)
def prod(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Array:
    """Return the products of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.
        promote_integers: whether small integers and booleans become the default integer.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a` if `promote_integers` does not change it.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 8], dtype=int32)
    """
    return _accumulate("prod", "prod", a, axis, dtype, out, keepdims, initial, where, promote_integers)


def extremum(function: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, mask: Any, name: str) -> Array:
    """Check the arguments of `function` and return the largest or smallest element, as `name` says."""
    aval = type_of(function, a)
    if initial is None:
        if mask is not None:
            raise ValueError(
                f"{function}: to use a where mask one has to specify 'initial', since {name} has no identity"
            )
        if 0 in [aval.shape[i] for i in axes_of(function, axis, aval.ndim)]:
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no identity: shape {aval.shape}, axis "
                f"{axis}; pass initial="
            )
    return _reduce(function, a, axis, None, out, keepdims, initial, mask, name=name)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def max(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Return the largest elements over axes, NaN if there is one.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis, or there is no element or `where` is given without `initial`.

    Example:
        >>> jnp.max(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 4], dtype=int32)
    """
    return extremum("max", a, axis, out, keepdims, initial, where, "max")


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def min(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the smallest elements over axes, NaN if there is one.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis, or there is no element or `where` is given without `initial`.

    Example:
        >>> jnp.min(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1, 2], dtype=int32)
    """
    return extremum("min", a, axis, out, keepdims, initial, where, "min")


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def amax(
    a: ArrayLike, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Return the largest elements over axes, NaN if there is one; another name of `max`.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis, or there is no element or `where` is given without `initial`.

    Example:
        >>> jnp.amax(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 4], dtype=int32)
    """
    return extremum("amax", a, axis, out, keepdims, initial, where, "max")


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def amin(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the smallest elements over axes, NaN if there is one; another name of `min`.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis, or there is no element or `where` is given without `initial`.

    Example:
        >>> jnp.amin(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1, 2], dtype=int32)
    """
    return extremum("amin", a, axis, out, keepdims, initial, where, "min")


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def any(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Return whether any element is true or not zero over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of dtype bool.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.any(jnp.array([[1, 2], [3, 4]]) > 1, axis=1)
        Array([ True,  True], dtype=bool)
    """
    return _reduce("any", a, axis, dtypes.bool_, out, keepdims, None, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def all(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Return whether all elements are true or not zero over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of dtype bool.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.all(jnp.array([[1, 2], [3, 4]]) > 1, axis=1)
        Array([False,  True], dtype=bool)
    """
    return _reduce("all", a, axis, dtypes.bool_, out, keepdims, None, where)


@inline_jit
def _range(a: ArrayLike, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    aval = type_of("ptp", a)
    a = _strong(a, aval.dtype)
    extent = elementwise.sub(reductions.reduce_max(a, axes), reductions.reduce_min(a, axes))
    return _kept(extent, axes, aval.shape) if keepdims else extent


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the largest minus the smallest elements over axes.

    Args:
        a: an array or a scalar of numbers.
        axis: the axis that is reduced, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` has booleans, or is no array and no scalar.
        ValueError: `a` has no such axis, or there is no element.

    Example:
        >>> jnp.ptp(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([2, 2], dtype=int32)
    """
    refuse("ptp", out=out)
    aval = type_of("ptp", a)
    axes = axes_of("ptp", axis, aval.ndim)
    if 0 in [aval.shape[i] for i in axes]:
        raise ValueError(f"ptp: no elements along axis {axis} of an array of shape {aval.shape}")
    return _range(a, axes=axes, keepdims=bool(keepdims))


def _count(own: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return how many elements the axes hold, as a literal."""
    return scalar_of(math.prod([own[i] for i in axes]), dtype)


def _mean_in(a: Any, masks: tuple[Any, ...], axes: tuple[int, ...], compute: Any, keepdims: bool) -> Array:
    """Return the mean of `a`, of element type `compute`, over `axes`."""
    if masks:
        total = reductions.reduce_sum(select_or_fill(masks[0], a, 0), axes)
        count = reductions.reduce_sum(_strong(broadcast_to(masks[0], a.shape), compute), axes)
        count = _kept(count, axes, a.shape) if keepdims else count
    else:
        total, count = reductions.reduce_sum(a, axes), _count(a.shape, axes, compute)
    return elementwise.div(_kept(total, axes, a.shape) if keepdims else total, count)


@inline_jit
def _mean(
    a: ArrayLike, *masks: Array, axes: tuple[int, ...], compute: np.dtype[Any], dtype: np.dtype[Any], keepdims: bool
) -> Any:
    return _strong(_mean_in(_strong(a, compute), masks, axes, compute, keepdims), dtype)


def _inexact_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return as_inexact(dtype, False)[0]


def check_divides(function: str, dtype: DTypeLike) -> None:
    """Raise TypeError if the dtype of a mean or variance is that of truth values."""
    if dtypes.is_boolean(dtype):
        raise TypeError(f"{function}: dtype must be one of numbers, which can be divided; got bool")


def masks_of(function: str, mask: ArrayLike | None) -> tuple[Any, ...]:
    """Return `mask` in a tuple that is empty for None; ValueError if it holds no truth values."""
    if mask is None:
        return ()
    if not dtypes.is_boolean(type_of(function, mask, 1).dtype):
        raise ValueError(f"{function}: where must be None or a boolean array; got {type_of(function, mask, 1)}")
    return (mask,)


@inline_jit(static=("axis", "dtype", "out", "keepdims"), public=True)
def mean(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None
) -> Any:
    """Return the means of elements over axes, NaN if there are none.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`, or the default floating one if that is
        integer or boolean. float16 and bfloat16 are added in float32.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([2., 3.], dtype=float32)
    """
    refuse("mean", out=out)
    aval = type_of("mean", a)
    wanted = requested_dtype("mean", dtype)
    compute = wanted
    if wanted is None:
        wanted = _inexact_dtype(aval.dtype)
        compute = _accumulator(aval.dtype, wanted)
    check_divides("mean", wanted)
    return _mean(
        a, *masks_of("mean", where), axes=axes_of("mean", axis, aval.ndim), compute=compute, dtype=wanted,
        keepdims=bool(keepdims),
    )


@inline_jit
def _variance(
    a: ArrayLike, correction: ArrayLike, *options: Array, axes: tuple[int, ...], compute: np.dtype[Any],
    dtype: np.dtype[Any], keepdims: bool, masked: bool, root: bool,
) -> Any:
    """Return the variance, or its `root`; `options` are the mask and the mean, where they are given."""
    masks, means = (options[:1], options[1:]) if masked else ((), options)
    a = _strong(a, compute)
    centre = means[0] if means else _mean_in(a, masks, axes, compute, True)
    centred = elementwise.sub(a, converted(centre, compute))
    complex_product = dtypes.is_complex(compute)
    squares = (
        elementwise.real(elementwise.mul(centred, elementwise.conj(centred)))
        if complex_product
        else elementwise.square(centred)
    )
    part = squares.dtype
    if masks:
        count = reductions.reduce_sum(_strong(broadcast_to(masks[0], a.shape), part), axes)
        squares = select_or_fill(masks[0], squares, 0)
    else:
        count = _count(a.shape, axes, part)
    # A traced correction keeps the divisor out of XLA's constants, which it would invert first.
    divisor = elementwise.sub(count, _strong(correction, part))
    variance = _strong(elementwise.div(reductions.reduce_sum(squares, axes), divisor), dtype)
    if not dtypes.is_inexact(dtype):
        # An integer dtype is asked for, and there must be room for NaN.
        variance = converted(variance, dtypes.default_float(config.enable_x64.value), True)
    variance = select_or_fill(elementwise.gt(divisor, scalar_of(0, part)), variance, math.nan)
    if root:
        variance = elementwise.sqrt(variance)
    return _kept(variance, axes, a.shape) if keepdims else variance


def variance_dtypes(function: str, own: Any, dtype: DTypeLike) -> tuple[Any, Any]:
    """Return the dtype to compute the variance of elements of dtype `own` in, and the result's; `dtype` asks for it."""
    wanted = requested_dtype(function, dtype)
    inexact = _inexact_dtype(own)
    if wanted is None:
        compute, wanted = _accumulator(inexact, inexact), dtypes.real_part_dtype(inexact)
    elif dtypes.is_complex(inexact) and not dtypes.is_complex(wanted):
        raise ValueError(
            f"{function}: dtype {wanted.name} is real and the array is complex; take x.real, or leave dtype out"
        )
    elif dtypes.is_inexact(own) and dtypes.is_inexact(wanted):
        compute = _common(own, wanted)
        compute = _accumulator(compute, compute)
    else:
        compute = _accumulator(wanted, wanted)
    return compute, wanted


def check_correction(function: str, ddof: ArrayLike) -> None:
    """Raise ValueError if what the number of elements is reduced by is no scalar."""
    shape = type_of(function, ddof, 1).shape
    if shape:
        raise ValueError(f"{function}: ddof must be a scalar; got shape {shape}")


def _correction(function: str, ddof: Any, correction: ArrayLike | None) -> Any:
    """Return the one of two names' values that is given, as an operand."""
    if correction is not None:
        if ddof:
            raise ValueError(f"{function}: ddof and correction can't be provided simultaneously; they mean the same")
        ddof = correction
    return to_number_operand(ddof)


@inline_jit(static=("function", "axis", "dtype", "out", "keepdims", "root"), public=True)
def _checked_variance(
    a: Any, ddof: Any, function: str, axis: Any, dtype: Any, out: Any, keepdims: bool, mask: Any, mean: Any, root: bool
) -> Any:
    refuse(function, out=out)
    aval = type_of(function, a)
    compute, wanted = variance_dtypes(function, aval.dtype, dtype)
    if root and not dtypes.is_inexact(wanted):
        raise ValueError(f"{function}: dtype must be inexact, since a root is no integer; got {wanted.name}")
    check_divides(function, wanted)
    check_correction(function, ddof)
    options = list(masks_of(function, mask))
    if mean is not None:
        options.append(mean)
    return _variance(
        a, ddof, *options, axes=axes_of(function, axis, aval.ndim), compute=compute, dtype=wanted,
        keepdims=bool(keepdims), masked=mask is not None, root=root,
    )


def _common(*own: np.dtype[Any]) -> np.dtype[Any]:
    x64, _, wide = config.promotion()
    return dtypes.promote(tuple((d, False) for d in own), x64, wide=wide)[0]


@inline_jit(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"), public=True)
def var(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: Any = None,
) -> Any:
    """Return the variances of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        ddof: the sums are divided by the number of elements less `ddof`; NaN where that is not positive.
        keepdims: whether the reduced axes stay, with size 1.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.
        mean: the mean, with the reduced axes kept; None to compute it.
        correction: another name of `ddof`.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`, or the default floating one if that is
        integer or boolean, real for complex numbers.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis, or `ddof` and `correction` are given.

    Example:
        >>> jnp.var(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1., 1.], dtype=float32)
    """
    ddof = _correction("var", ddof, correction)
    return _checked_variance(a, ddof, "var", axis, dtype, out, keepdims, where, mean, False)


@inline_jit(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"), public=True)
def std(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: Any = None,
) -> Any:
    """Return the standard deviations of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        ddof: the sums are divided by the number of elements less `ddof`; NaN where that is not positive.
        keepdims: whether the reduced axes stay, with size 1.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.
        mean: the mean, with the reduced axes kept; None to compute it.
        correction: another name of `ddof`.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`, or the default floating one if that is
        integer or boolean, real for complex numbers.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis, or `ddof` and `correction` are given.

    Example:
        >>> jnp.std(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1., 1.], dtype=float32)
    """
    ddof = _correction("std", ddof, correction)
    return _checked_variance(a, ddof, "std", axis, dtype, out, keepdims, where, mean, True)


@inline_jit
def _position(a: ArrayLike, *, name: str, axis: int | None, keepdims: bool) -> Array:
    own = type_of(name, a).shape
    if axis is None:
        a, axis = reshape(a, (math.prod(own),)), 0
        target: tuple[int, ...] = (1,) * len(own)
    else:
        target = (*own[:axis], 1, *own[axis + 1 :])
    position = getattr(reductions, name)(a, axis, dtypes.default_int(config.enable_x64.value))
    return reshape(position, target) if keepdims else position


def position(function: str, a: ArrayLike, axis: Axes, out: Any, keepdims: bool | None, name: str) -> Array:
    """Check the arguments of `function` and return the index of an extremum as lax's operation `name` finds it."""
    refuse(function, out=out)
    aval = type_of(function, a)
    if dtypes.is_complex(aval.dtype):
        raise TypeError(f"{function}: complex numbers have no order; got {aval.dtype.name}. Take abs(x) or x.real")
    along = None if axis is None else canonical_axis(function, axis, aval.ndim)
    if (aval.size if along is None else aval.shape[along]) == 0:
        raise ValueError(f"attempt to get {function} of an empty sequence: shape {aval.shape}, axis {axis}")
    return _position(a, name=name, axis=along, keepdims=bool(keepdims))


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Return the index of the first largest element along an axis, or of the first NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis, an integer; None for the flattened array.
        out: not supported; leave it at None.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An array of the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is complex, or no array and no scalar.
        ValueError: `a` has no such axis, or there is no element.

    Example:
        >>> jnp.argmax(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1, 1], dtype=int32)
    """
    return position("argmax", a, axis, out, keepdims, "argmax")


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Return the index of the first smallest element along an axis, or of the first NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis, an integer; None for the flattened array.
        out: not supported; leave it at None.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An array of the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is complex, or no array and no scalar.
        ValueError: `a` has no such axis, or there is no element.

    Example:
        >>> jnp.argmin(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([0, 0], dtype=int32)
    """
    return position("argmin", a, axis, out, keepdims, "argmin")


@inline_jit
def _running(a: Any, *, name: str, axis: int | None, compute: Any, dtype: np.dtype[Any], initial: bool) -> Array:
    a = _strong(a, compute)
    if axis is None:
        a, axis = reshape(a, (a.size,)), 0
    totals = getattr(reductions, name)(a, axis)
    if initial:
        first = full((*a.shape[:axis], 1, *a.shape[axis + 1 :]), 0 if name == "cumsum" else 1, compute)
        totals = shape.concatenate([first, totals], axis)
    return _strong(totals, dtype)


def running(
    function: str, a: ArrayLike, axis: Axes, dtype: DTypeLike, name: str, promote: bool = False, initial: bool = False
) -> Array:
    """Check the arguments of `function` and return the running results of lax's operation `name`."""
    aval = type_of(function, a)
    wanted = _sum_dtype(function, a, dtype, promote)
    # A scalar counts as a vector of one.
    along = None if axis is None else canonical_axis(function, axis, aval.ndim or 1)
    along = along if aval.ndim else None
    if dtypes.is_boolean(wanted):
        # Sums of booleans are counts before they are truth values again, and only what is not zero counts.
        a, compute = elementwise.ne(a, scalar_of(0, aval.dtype)), dtypes.default_int(config.enable_x64.value)
    else:
        compute = wanted
    return _running(a, name=name, axis=along, compute=compute, dtype=wanted, initial=initial)


@inline_jit(static=("axis", "dtype", "out"), public=True)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the running sums along an axis.

    Args:
        a: an array or a scalar.
        axis: the axis, an integer; None for the flattened array.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `a`, of its dtype; booleans count as the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
    """
    refuse("cumsum", out=out)
    return running("cumsum", a, axis, dtype, "cumsum")


@inline_jit(static=("axis", "dtype", "out"), public=True)
def cumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the running products along an axis.

    Args:
        a: an array or a scalar.
        axis: the axis, an integer; None for the flattened array.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `a`, of its dtype; booleans count as the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    refuse("cumprod", out=out)
    return running("cumprod", a, axis, dtype, "cumprod")


def _cumulative_axis(function: str, x: ArrayLike, axis: int | None) -> Any:
    rank = type_of(function, x).ndim
    if rank == 0:
        raise ValueError(f"{function}: the array must have at least one axis, got a scalar")
    if axis is None and rank > 1:
        raise ValueError(f"{function}: The input array has rank {rank}, however axis was not set to an explicit value")
    return 0 if axis is None else axis


@inline_jit(static=("axis", "include_initial"), public=True)
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the running sums along an axis.

    Args:
        x: an array of at least one axis.
        axis: the axis, which only vectors may leave out.
        dtype: the dtype of the computation and the result; None for the one below.
        include_initial: whether the result begins with a 0 and is one element longer.

    Returns:
        An array of the dtype of `x`; small integers become the default one.

    Raises:
        TypeError: `x` is no array.
        ValueError: `axis` is None and `x` is no vector, or `x` has no such axis.

    Example:
        >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    along = _cumulative_axis("cumulative_sum", x, axis)
    return running("cumulative_sum", x, along, dtype, "cumsum", True, bool(include_initial))


@inline_jit(static=("axis", "include_initial"), public=True)
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the running products along an axis.

    Args:
        x: an array of at least one axis.
        axis: the axis, which only vectors may leave out.
        dtype: the dtype of the computation and the result; None for the one below.
        include_initial: whether the result begins with a 1 and is one element longer.

    Returns:
        An array of the dtype of `x`; small integers become the default one.

    Raises:
        TypeError: `x` is no array.
        ValueError: `axis` is None and `x` is no vector, or `x` has no such axis.

    Example:
        >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    along = _cumulative_axis("cumulative_prod", x, axis)
    return running("cumulative_prod", x, along, dtype, "cumprod", False, bool(include_initial))


@inline_jit
def _nonzero_count(a: ArrayLike, *, axes: tuple[int, ...], keepdims: bool, dtype: np.dtype[Any]) -> Array:
    count = reductions.reduce_sum(
        converted(elementwise.ne(a, scalar_of(0, type_of("count_nonzero", a).dtype)), dtype), axes
    )
    return _kept(count, axes, type_of("count_nonzero", a).shape) if keepdims else count


@inline_jit(static=("axis", "keepdims"), public=True)
def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """Count the elements over axes that are true or not zero.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the axes that are not reduced, of the default integer.

    Raises:
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.count_nonzero(jnp.array([0, 3, 0, 4]))
        Array(2, dtype=int32)
    """
    axes = axes_of("count_nonzero", axis, type_of("count_nonzero", a).ndim)
    return _nonzero_count(a, axes=axes, keepdims=bool(keepdims), dtype=dtypes.default_int(config.enable_x64.value))


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nansum(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: ArrayLike | None = None,
) -> Array:
    """Return the sums of elements over axes, NaN counted as zero.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`; small integers and booleans become the
        default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
        Array(4., dtype=float32)
    """
    begun = begun_with("nansum", initial)
    return _accumulate("nansum", "sum", _without_nan("nansum", a, 0), axis, dtype, out, keepdims, begun, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def nanprod(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: ArrayLike | None = None,
) -> Array:
    """Return the products of elements over axes, NaN counted as one.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        dtype: the dtype of the computation and the result; None for the one below.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a value that takes part; None for none.
        where: an array of booleans that broadcasts against `a`: the elements that take part; None for all.

    Returns:
        An array of the axes that are not reduced, of the dtype of `a`; small integers and booleans become the
        default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is no array and no scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.nanprod(jnp.array([1.0, jnp.nan, 3.0]))
        Array(3., dtype=float32)
    """
    begun = begun_with("nanprod", initial)
    return _accumulate("nanprod", "prod", _without_nan("nanprod", a, 1), axis, dtype, out, keepdims, begun, where)


def begun_with(function: str, initial: ArrayLike) -> Array | None:
    """Return the initial value of a reduction that leaves out NaN: an array, which the program converts, as in jax."""
    return None if initial is None else to_array_operand(function, initial, 1)


def _without_nan(function: str, a: Any, replacement: int) -> Any:
    dtype = type_of(function, a).dtype
    return _without(a, value=replacement) if dtypes.is_inexact(dtype) else a


@inline_jit
def _without(a: Array, *, value: int) -> Array:
    a = _strong(a, type_of("nansum", a).dtype)
    return select_or_fill(elementwise.eq(a, a), a, value)


@inline_jit(static=("axis", "returned", "keepdims"), public=True)
def average(
    a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Return weighted means over axes.

    Args:
        a: an array or a scalar.
        axis: the axis that is reduced, or several; None for all.
        weights: the weights, an array of the shape of `a`, or a vector of its length along `axis`; None for equal
            weights.
        returned: whether the sums of the weights are returned, too.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of a floating or complex dtype, or with `returned` a pair of it and the sums.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: `weights` do not have the shape, or `a` has no such axis.

    Example:
        >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3, 1]))
        Array(1.25, dtype=float32)
    """
    aval = type_of("average", a)
    axes = axes_of("average", axis, aval.ndim)
    if weights is None:
        averages = mean(a, axis, keepdims=keepdims)
        if not returned:
            return averages
        return averages, full(averages.shape, math.prod([aval.shape[i] for i in axes]), averages.dtype)
    own = type_of("average", weights, 1)
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
    averages, total = _weighted(a, weights, axes=axes, keepdims=bool(keepdims))
    return (averages, total) if returned else averages


@inline_jit
def _weighted(a: Any, weights: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    (aval, own), dtype, _ = common_dtype("average", (a, weights), as_inexact)
    a, weights = _strong(a, dtype), _strong(weights, dtype)
    if own.shape != aval.shape:
        ordered = sorted(range(len(axes)), key=lambda i: axes[i])
        weights = broadcast_in_dim(transpose(weights, ordered), aval.shape, sorted(axes))
    total = sum(weights, axes, keepdims=keepdims)
    return true_divide(sum(multiply(a, weights), axes, keepdims=keepdims), total), total
