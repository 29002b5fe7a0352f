"""Sequences of evenly and logarithmically spaced numbers."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    check_broadcast,
    convert_to,
    operand_aval,
    reshape,
)
from xtrace._src.api.devices import device_put
from xtrace._src.api.jit.inline_jit import inline_jit, to_number_operand
from xtrace._src.api.operators.operators import add, multiply, power, subtract, true_divide
from xtrace._src.api.operators.promotion import as_inexact, check_mapped_ranks, common_dtype
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import has_symbolic, is_symbolic, largest
from xtrace._src.core.tables import memoize
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.elementwise import constants, elementwise
from xtrace._src.runtime.transfer import scalar_to_host
from xtrace.numpy.arrays.creation import SCALARS, fill_array, python_value, to_size
from xtrace.numpy.operands import broadcast_operand_to, cast_to, place_of


def _to_concrete_number(name: str, value: Any) -> Any:
    """Return a Python or NumPy number; the error for traced, complex or non-scalar values names the argument."""
    if isinstance(value, Tracer):
        raise explain.concretization(value, f"numpy.{called_function()} argument {name}")
    aval = operand_aval(value, 0)
    if aval.shape:
        raise ValueError(f"{called_function()}: arguments must be scalars; got {name} of shape {aval.shape}")
    if dtypes.is_complex(aval.dtype):
        raise ValueError(f"{called_function()}: {name} must be real, got the dtype {aval.dtype.name}")
    if type(value) in SCALARS or is_symbolic(value):
        return value
    # NumPy's fixed-size integers would wrap in the arithmetic below; floats keep their rounding.
    return int(value) if dtypes.is_integer(aval.dtype) else np.asarray(value)[()]


def _count_steps(start: ArrayLike, stop: Array, step: ArrayLike) -> int:
    """Return the number of values from `start` to `stop`, not included."""
    if step == 0:
        raise ZeroDivisionError(f"{called_function()}: step must not be zero")
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    if has_symbolic((start, stop, step)):
        return largest(-((start - stop) // step), 0)  # type: ignore[no-any-return]
    length = (stop - start) / step
    if not math.isfinite(length):
        error_class = ValueError if math.isnan(length) else OverflowError
        raise error_class(
            f"{called_function()}: from {start} to {stop} in steps of {step} there is no finite number of values"
        )
    return max(0, math.ceil(length))


def _add_multiples(first: ArrayLike, increment: Any, *, length: int, dtype: np.dtype[Any]) -> Array:
    # Not one program: XLA would fuse product and sum, and values that are exact after two roundings become inexact.
    return add(first, multiply(increment, iota(dtype, length)))


@inline_jit
def _count_from(first: ArrayLike, *, length: int, dtype: np.dtype[Any]) -> Array:
    return add(first, iota(dtype, length))


def arange(
    start: object, stop: object = None, step: object = None, dtype: DTypeLike | None = None, *, device: object = None,
    out_sharding: object = None
) -> Array:
    """Return evenly spaced numbers in an interval, the end not included.

    Args:
        start: the first number; a single argument is `stop`, and the first number is 0.
        stop: the end of the interval.
        step: the distance; None for 1.
        dtype: the dtype; None for the promoted dtype of the arguments.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        A vector.

    Raises:
        ConcretizationTypeError: an argument is traced.
        ValueError: an argument is not a real scalar.
        ZeroDivisionError: `step` is 0.
        OverflowError: there are infinitely many numbers.

    Example:
        >>> jnp.arange(1, 6, 2)
        Array([1, 3, 5], dtype=int32)
    """
    device = place_of(device, out_sharding, 1)
    wanted = requested_dtype(dtype)
    if start is None:
        raise TypeError("arange: start must be a number, got None")
    if stop is None:
        start, stop = None, start
    plain = all(x is None or type(x) in SCALARS for x in (start, stop, step))
    count = _plan_range if plain else _plan_range.__wrapped__
    length, wanted, host = count(config.cache_key(), start, stop, step, wanted)
    if has_symbolic(host):
        host = [convert_to(x.to_array(), wanted) if is_symbolic(x) else x for x in host]
    if step is not None:
        result = _add_multiples(*host, length=length, dtype=wanted)
    elif isinstance(host[0], Tracer) or host[0]:
        result = _count_from(host[0], length=length, dtype=wanted)
    else:
        result = iota(wanted, length)
    return result if device is None else device_put(result, device)


@memoize(1024, typed=True)
def _plan_range(
    _: Any, start: ArrayLike, stop: ArrayLike, step: ArrayLike, dtype: np.dtype[Any] | None
) -> tuple[int, Any, list[Any]]:
    """Return the number of values of `arange`, their dtype, start and step; `_` is the key of the settings."""
    given = {name: value for name, value in (("start", start), ("stop", stop), ("step", step)) if value is not None}
    numbers = {name: _to_concrete_number(name, value) for name, value in given.items()}
    wanted: np.dtype[Any] = common_dtype(list(given.values()))[1] if dtype is None else dtype
    if dtypes.is_boolean(wanted):
        raise TypeError("arange: does not accept dtype bool; count with integers and compare")
    first, increment = numbers.get("start", 0), numbers.get("step", 1)
    length = _count_steps(first, numbers["stop"], increment)
    ends = [
        n if is_symbolic(n) else scalar_to_host(python_value(n, wanted), ShapedArray((), wanted))
        for n in (first, increment)
    ]
    return length, wanted, ends


@inline_jit
def _interpolate_samples(
    start: ArrayLike, stop: ArrayLike, *, num: int, endpoint: bool, axis: int, compute: np.dtype[Any],
    dtype: np.dtype[Any],
) -> tuple[Array, Array]:
    """Return the samples start (1 - t) + stop t for t = 0, 1/n …, `stop` itself last, and their distance."""
    start, stop = (cast_to(x, operand_aval(x, 0), compute) for x in (start, stop))
    avals = [operand_aval(x, 0) for x in (start, stop)]
    bounds = check_broadcast([a.shape for a in avals])
    start, stop = (broadcast_operand_to(x, a.shape, bounds) for x, a in zip((start, stop), avals, strict=True))
    real = dtypes.real_part_dtype(compute)
    divisions = num - 1 if endpoint else num
    start_column, stop_column = (_insert_axis(x, bounds, axis) for x in (start, stop))
    if divisions > 0:
        distance = true_divide(subtract(stop, start), divisions)
    else:
        distance = fill_array(bounds, python_value(math.nan, compute), compute, False, None)
    if divisions <= 0 or num == 1:
        shape = (*bounds[:axis], num, *bounds[axis:])
        samples = broadcast_in_dim(start_column, shape, range(len(shape)))
    else:
        fractions = iota(real, divisions)
        fractions = elementwise.div(fractions, constants.constant_like(fractions, divisions))
        fractions = reshape(fractions, [divisions if i == axis else 1 for i in range(len(bounds) + 1)])
        fractions = convert_to(fractions, compute)
        samples = add(multiply(start_column, subtract(1, fractions)), multiply(stop_column, fractions))
        if endpoint:
            samples = concatenate([samples, stop_column], axis)
    if dtypes.is_integer(dtype) and not dtypes.is_integer(compute):
        samples = elementwise.floor(samples)
    return convert_to(samples, dtype), distance


def _insert_axis(x: ArrayLike, shape: tuple[int, ...], axis: int) -> Array:
    """Return `x`, of the given shape, with a new axis of size 1 at `axis`."""
    return reshape(x, (*shape[:axis], 1, *shape[axis:]))


def _promote_to_inexact(*values: object) -> np.dtype[Any]:
    """Return the inexact dtype that values and dtypes promote to."""
    x64, _, wide = config.promotion_settings()
    pairs = tuple(dtypes.dtype_and_weak(x, x64, wide) for x in values)
    promoted = type_promotion.promote(pairs, *config.promotion_settings())[0]
    return as_inexact(promoted, False)[0]


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike = ..., endpoint: bool = ..., retstep: Literal[False] = ...,
    dtype: DTypeLike | None = ..., axis: int = ..., *, device: object = ...,
) -> Array: ...


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike = ..., endpoint: bool = ..., retstep: bool = ...,
    dtype: DTypeLike | None = ..., axis: int = ..., *, device: object = ...,
) -> Any: ...


def linspace(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0, *, device: object = None,
) -> Any:
    """Return evenly spaced samples.

    Args:
        start, stop: the first and the last sample, scalars or arrays that broadcast.
        num: the number of samples.
        endpoint: whether `stop` is a sample; otherwise it follows the last one.
        retstep: whether the distance is returned, too.
        dtype: the dtype; integers are rounded down. None for a floating dtype.
        axis: the place of the axis of samples.
        device: the device or its position; None for the default device.

    Returns:
        An array, or with `retstep` a pair of it and the distance.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `num` is negative.

    Example:
        >>> jnp.linspace(0, 1, 3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    wanted = requested_dtype(dtype)
    spaced = _linspace(to_number_operand(start), to_number_operand(stop), num, endpoint, retstep, wanted, axis)
    if device is None:
        return spaced
    return (device_put(spaced[0], device), spaced[1]) if retstep else device_put(spaced, device)


@inline_jit(static=("num", "endpoint", "retstep", "dtype", "axis"), public=True)
def _linspace(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike, endpoint: object, retstep: object, dtype: np.dtype[Any] | None,
    axis: int,
) -> Any:
    result, distance = _make_samples(start, stop, num, endpoint, dtype, axis)
    return (result, distance) if retstep else result


def _make_samples(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike, endpoint: object, dtype: np.dtype[Any] | None,
    axis: int,
) -> tuple[Array, Array]:
    count = to_size("num", num)
    start, stop = [x.to_array() if is_symbolic(x) else x for x in (start, stop)]
    shapes_given = [operand_aval(x, i).shape for i, x in enumerate((start, stop))]
    rank = len(check_broadcast(shapes_given)) + 1
    check_mapped_ranks(shapes_given, (0, 0))
    compute = _promote_to_inexact(start, stop) if dtype is None else _promote_to_inexact(dtype)
    return _interpolate_samples(
        start, stop, num=count, endpoint=bool(endpoint), axis=canonical_axis(axis, rank), compute=compute,
        dtype=compute if dtype is None else dtype,
    )


@inline_jit
def _raise_base(exponents: Array, base: ArrayLike, *, dtype: np.dtype[Any]) -> Array:
    powers = power(cast_to(base, operand_aval(base, 0), exponents.dtype), exponents)
    return cast_to(powers, powers.aval, dtype)


def logspace(
    start: ArrayLike, stop: int, num: object = 50, endpoint: bool = True, base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> Array:
    """Return samples that are evenly spaced on a logarithmic scale.

    Args:
        start, stop: the logarithms of the first and the last sample, scalars or arrays that broadcast.
        num: the number of samples.
        endpoint: whether ``base**stop`` is a sample.
        base: the base of the logarithms.
        dtype: the dtype; None for a floating dtype.
        axis: the place of the axis of samples.

    Returns:
        An array.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `num` is negative.

    Example:
        >>> jnp.logspace(0, 3, 4, base=2.0)
        Array([1., 2., 4., 8.], dtype=float32)
    """
    wanted = requested_dtype(dtype)
    start, stop, base = map(to_number_operand, (start, stop, base))
    return _logspace(start, stop, base, num, endpoint, wanted, axis)


@inline_jit(static=("num", "endpoint", "dtype", "axis"), public=True)
def _logspace(
    start: ArrayLike, stop: ArrayLike, base: ArrayLike, num: Any, endpoint: Any, dtype: np.dtype[Any] | None, axis: int
) -> Array:
    compute = _promote_to_inexact(start, stop) if dtype is None else _promote_to_inexact(dtype)
    exponents, _ = _make_samples(start, stop, num, endpoint, compute, axis)
    return _raise_base(exponents, base, dtype=compute if dtype is None else dtype)


def _compute_log10(x: Array) -> Array:
    return multiply(elementwise.log(x), math.log10(math.e))


@inline_jit
def _space_geometrically(
    start: ArrayLike, stop: ArrayLike, *, num: int, endpoint: bool, axis: int, compute: np.dtype[Any],
    dtype: np.dtype[Any],
) -> Array:
    start, stop = (cast_to(x, operand_aval(x, 0), compute) for x in (start, stop))
    # The samples keep the sign of `start`, which the logarithm must not see.
    signs = elementwise.sign(start)
    first, last = [_compute_log10(true_divide(x, signs)) for x in (start, stop)]
    exponents, _ = _make_samples(first, last, num, endpoint, compute, axis)
    bounds = (*exponents.shape[:axis], *exponents.shape[axis + 1 :])
    signs = _insert_axis(broadcast_operand_to(signs, signs.shape, bounds), bounds, axis)
    powers = multiply(signs, _raise_base(exponents, 10.0, dtype=compute))
    return cast_to(powers, powers.aval, dtype)


@inline_jit(static=("num", "endpoint", "dtype", "axis"), public=True)
def geomspace(
    start: ArrayLike, stop: int, num: object = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
) -> Array:
    """Return samples in geometric progression: neighbours have a constant ratio.

    Args:
        start, stop: the first and the last sample, scalars or arrays that broadcast.
        num: the number of samples.
        endpoint: whether `stop` is a sample.
        dtype: the dtype; None for a floating dtype.
        axis: the place of the axis of samples.

    Returns:
        An array.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `num` is negative.

    Example:
        >>> jnp.geomspace(1, 8, 4).round(3)
        Array([1., 2., 4., 8.], dtype=float32)
    """
    wanted = requested_dtype(dtype)
    count = to_size("num", num)
    rank = len(check_broadcast([operand_aval(x, i).shape for i, x in enumerate((start, stop))])) + 1
    compute = _promote_to_inexact(start, stop) if wanted is None else _promote_to_inexact(wanted)
    return _space_geometrically(
        start, stop, num=count, endpoint=bool(endpoint), axis=canonical_axis(axis, rank), compute=compute,
        dtype=compute if wanted is None else wanted,
    )
