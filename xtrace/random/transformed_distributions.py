"""Continuous distributions that are formulas of uniform or normal numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, Shape, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.dtypes import DType
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise import trigonometry
from xtrace._src.ops.elementwise.comparisons import le, lt
from xtrace._src.ops.elementwise.reinterpretation import optimization_barrier
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.elementwise.special import erf, erf_inv
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.reductions.reductions import add_elements
from xtrace.random.continuous import constant, draw_normal, draw_uniform, draw_unit_uniform
from xtrace.random.discrete import draw_signs
from xtrace.random.sampling import (
    broadcast_parameters,
    draw,
    fit_parameter,
    get_parameter_shape,
    sampler,
    split_key,
)

# The default of jax's signature.
_ONE = np.float32(1.0)


def draw_exponential(key: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Draw exponentially distributed numbers."""
    return -lax.log1p(-draw_unit_uniform(key, shape=shape, dtype=dtype))


_exponential = sampler(draw_exponential)


def exponential(key: ArrayLike, shape: ShapeLike = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the exponential distribution of rate 1.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.exponential(random.key(0), (2,))
        Array([2.950128 , 3.8434246], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_exponential, key, shape, dtype, out_sharding)


@sampler
def _laplace(key: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    low = -1 + float(dtypes.finfo(dtype).epsneg)
    drawn = draw_unit_uniform(key, shape=shape, dtype=dtype, low=low)
    return lax.mul(lax.sign(drawn), lax.log1p(-lax.abs(drawn)))


def laplace(key: ArrayLike, shape: ShapeLike = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the Laplace distribution of scale 1.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.laplace(random.key(0), (2,))
        Array([-2.2569816, -3.1502788], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_laplace, key, shape, dtype, out_sharding)


@sampler
def _logistic(key: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    drawn = draw_unit_uniform(key, shape=shape, dtype=dtype, low=dtypes.finfo(dtype).tiny)
    return lax.sub(lax.log(drawn), lax.log1p(-drawn))


def logistic(key: ArrayLike, shape: ShapeLike = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the logistic distribution of scale 1.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.logistic(random.key(0), (2,))
        Array([2.896376 , 3.8217716], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_logistic, key, shape, dtype, out_sharding)


@sampler
def _cauchy(key: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    drawn = draw_unit_uniform(key, shape=shape, dtype=dtype, low=dtypes.finfo(dtype).eps)
    return trigonometry.tan(constant(math.pi, dtype) * (drawn - 0.5))


def cauchy(key: ArrayLike, shape: ShapeLike = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the Cauchy distribution of scale 1.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.cauchy(random.key(0), (2,))
        Array([ 6.0274944, 14.837895 ], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_cauchy, key, shape, dtype, out_sharding)


def draw_maxwell(key: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Draw lengths of normally distributed vectors in three dimensions."""
    # The barrier rounds numbers of a narrow dtype before they are squared.
    vectors = optimization_barrier(draw_normal(key, shape=(*shape, 3), dtype=dtype))
    return lax.sqrt(add_elements(lax.mul(vectors, vectors), (len(shape),)))


_maxwell = sampler(draw_maxwell)


def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the Maxwell distribution of scale 1: lengths of normal vectors in three dimensions.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.maxwell(random.key(0), (2,)).shape
        (2,)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section V.4: norms of normal vectors.
    """
    return draw(_maxwell, key, shape, dtype, out_sharding)


def _append_parameter_shape(shape: Shape, **parameters: object) -> tuple[int, ...]:
    """Return `shape` with the common shape of the parameters after it."""
    own = {name: get_parameter_shape(name, value) for name, value in parameters.items()}
    return (*shape, *broadcast_parameters(own))


@sampler
def _double_sided_maxwell(key: Array, loc: Array, scale: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    shape = _append_parameter_shape(shape, loc=loc, scale=scale)
    first, second = split_key(key, 2)
    side = draw_signs(second, shape=shape, dtype=dtype)
    deviates = lax.mul(side, draw_maxwell(first, shape=shape, dtype=dtype))
    return lax.add(lax.mul(deviates, fit_parameter(scale, shape, dtype)), fit_parameter(loc, shape, dtype))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Draw numbers from the double-sided Maxwell distribution.

    Args:
        key: a random key, typed or legacy.
        loc: the center; a number or array.
        scale: the scale; a positive number or array.
        shape: the leading axes of the result, before the axes of the parameters.
        dtype: the floating dtype of the result; None for the default floating dtype.

    Returns:
        An array of the shape, followed by the broadcast shape of the parameters.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,))
        Array([1.5457209, 1.5741276], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section V.4: norms of normal vectors.
    """
    for name, value in (("loc", loc), ("scale", scale)):
        get_parameter_shape(name, value)
    # The parameters' axes follow those of `shape`, so they are not checked against it.
    return draw(lambda k, **s: _double_sided_maxwell(k, loc, scale, **s), key, shape, dtype)


@sampler
def _weibull_min(
    key: Array, scale: Array, concentration: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    drawn = -lax.log1p(-draw_unit_uniform(key, shape=shape, dtype=dtype))
    power, scale = [convert_to(x, dtype) for x in (concentration, scale)]
    return drawn ** (1.0 / power) * scale


def weibull_min(
    key: ArrayLike, scale: object, concentration: object, shape: ShapeLike = (), dtype: Any = None
) -> Array:
    """Draw numbers from the Weibull distribution.

    Args:
        key: a random key, typed or legacy.
        scale: the scale; a positive number or array.
        concentration: the exponent; a positive number or array.
        shape: the shape of the result, with which the parameters broadcast.
        dtype: the floating dtype of the result; None for the default floating dtype.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.weibull_min(random.key(0), 1.0, 2.0, (2,))
        Array([1.7175937, 1.9604654], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    for name, value in (("scale", scale), ("concentration", concentration)):
        get_parameter_shape(name, value)
    return draw(lambda k, **s: _weibull_min(k, scale, concentration, **s), key, shape, dtype)


@sampler
def _pareto(key: Array, b: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return lax.exp(lax.div(draw_exponential(key, shape=shape, dtype=dtype), fit_parameter(b, shape, dtype)))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the Pareto distribution.

    Args:
        key: a random key, typed or legacy.
        b: the exponent; a positive number or array.
        shape: the shape of the result; None for the shape of `b`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.pareto(random.key(0), 3.0, (2,))
        Array([2.6734667, 3.6007476], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_pareto, key, shape, dtype, out_sharding, b=b)


@sampler
def _rayleigh(key: Array, scale: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    drawn = lax.log(draw_unit_uniform(key, shape=shape, dtype=dtype))
    return lax.mul(fit_parameter(scale, shape, dtype), lax.sqrt(drawn * -2.0))


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the Rayleigh distribution.

    Args:
        key: a random key, typed or legacy.
        scale: the scale; a positive number or array.
        shape: the shape of the result; None for the shape of `scale`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.rayleigh(random.key(0), 2.0, (2,))
        Array([0.65575665, 0.41620055], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_rayleigh, key, shape, dtype, out_sharding, scale=scale)


@sampler
def _wald(key: Array, mean: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    # Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots" (1976).
    first, second = split_key(key, 2)
    mean = fit_parameter(mean, shape, dtype)
    v = draw_normal(first, shape=shape, dtype=dtype)
    z = draw_unit_uniform(second, shape=shape, dtype=dtype)
    y, square = v**2, mean**2
    root = lax.sqrt(4.0 * mean * y + square * y**2)
    x = mean + square * y / 2.0 - mean / 2.0 * root
    return select(le(z, mean / (mean + x)), x, square / x)


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the Wald (inverse Gaussian) distribution of scale 1.

    Args:
        key: a random key, typed or legacy.
        mean: the mean; a positive number or array.
        shape: the shape of the result; None for the shape of `mean`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.wald(random.key(0), 1.0, (2,))
        Array([0.3805977 , 0.41566527], dtype=float32)

    Reference:
        Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots" (1976).
    """
    return draw(_wald, key, shape, dtype, out_sharding, mean=mean)


@sampler
def _lognormal(key: Array, sigma: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return lax.exp(lax.mul(draw_normal(key, shape=shape, dtype=dtype), fit_parameter(sigma, shape, dtype)))


def lognormal(
    key: ArrayLike, sigma: object = _ONE, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Draw numbers whose logarithms are normal, of mean 0.

    Args:
        key: a random key, typed or legacy.
        sigma: the standard deviation of the logarithms; a positive number or array.
        shape: the shape of the result; None for the shape of `sigma`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.lognormal(random.key(0), 0.5, (2,))
        Array([2.2508795, 2.752838 ], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section IX.1: functions of normal variables.
    """
    return draw(_lognormal, key, shape, dtype, out_sharding, complex_too=True, sigma=sigma)


@sampler
def _draw_truncated_normal(key: Array, lower: Array, upper: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    root = constant(math.sqrt(2), dtype)
    lower, upper = convert_to(lower, dtype), convert_to(upper, dtype)
    drawn = draw_uniform(key, erf(lax.div(lower, root)), erf(lax.div(upper, root)), shape=shape, dtype=dtype)
    deviates = lax.mul(root, erf_inv(drawn))
    # Rounding may put a number on or past a bound.
    low = lax.nextafter(stop_gradient(lower), broadcast_to_shape(constant(np.inf, dtype), lower.shape))
    high = lax.nextafter(stop_gradient(upper), broadcast_to_shape(constant(-np.inf, dtype), upper.shape))
    return lax.min(broadcast_to_shape(high, shape), lax.max(broadcast_to_shape(low, shape), deviates))


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Draw normal numbers that lie between two bounds.

    Args:
        key: a random key, typed or legacy.
        lower: the lower bound; a number or array.
        upper: the upper bound; a number or array.
        shape: the shape of the result; None for the broadcast shape of the bounds.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.truncated_normal(random.key(0), -1.0, 1.0, (2,))
        Array([0.8618594, 0.9412883], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_draw_truncated_normal, key, shape, dtype, out_sharding, lower=lower, upper=upper)


@sampler
def _triangular(
    key: Array, left: ArrayLike, mode: ArrayLike, right: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    left, mode, right = [fit_parameter(x, shape, dtype) for x in (left, mode, right)]
    peak = (mode - left) / (right - left)
    drawn = draw_unit_uniform(key, shape=shape, dtype=dtype)
    rising = left + lax.sqrt(drawn * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - drawn) * (right - left) * (right - mode))
    return select(lt(drawn, peak), rising, falling)


def triangular(
    key: ArrayLike, left: object, mode: Any, right: object, shape: Any = None, dtype: Any = None, *,
    out_sharding: Any = None,
) -> Array:
    """Draw numbers from the triangular distribution: its density rises linearly to the mode, then falls linearly.

    Args:
        key: a random key, typed or legacy.
        left: the least value.
        mode: the value of the greatest density.
        right: the greatest value.
        shape: the shape of the result; None for the broadcast shape of the parameters.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.triangular(random.key(0), 0.0, 1.0, 3.0, (2,))
        Array([2.4396448, 2.6415021], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    parameters = {"left": left, "mode": mode, "right": right}
    return draw(_triangular, key, shape, dtype, out_sharding, **parameters)
