"""The gamma distribution and its relatives: beta, chi-square, Dirichlet, F, Student's t, generalized normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_shape, convert_to, reshape, with_axis
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun, repeat_while
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_or, eq, ge, le
from xtrace._src.ops.elementwise.incomplete_functions import random_gamma_grad
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.random.keys import is_key, random_split
from xtrace._src.ops.reductions.reductions import add_elements, reduce_max, reduce_or
from xtrace.random.continuous import constant, draw_normal, draw_unit_uniform
from xtrace.random.discrete import draw_signs
from xtrace.random.sampling import broadcast_parameters, draw, fit_parameter, sampler, split_key
from xtrace.random.transformed_distributions import draw_exponential


def _gamma_abstract(key: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
    """Return the type of samples of gamma distributions of the shapes `a`, or of their logarithms."""
    if not is_key(key) or key.shape != a.shape[: key.ndim]:
        raise TypeError(f"random_gamma: keys {key.str_short(True)} do not fit the parameters {a.str_short(True)}")
    return ShapedArray(a.shape, a.dtype)


def _split_each(keys: Array, count: int) -> list[Any]:
    """Return `count` new keys for each key of a vector."""
    subkeys = random_split.bind_positional((keys,), ((count,),))
    return [index_in_dim(subkeys, i, 1, keepdims=False) for i in range(count)]


def _gamma_formula(key: Array, a: Array, *, log_space: bool) -> Array:
    # Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); below a = 1 a sample for a + 1
    # is multiplied by a power of a uniform number (section 6). Each element has its own key and stops independently.
    shape, dtype, leading = aval_of(a).shape, aval_of(a).dtype, aval_of(key).shape
    size = math.prod(shape)
    count = size // max(math.prod(leading), 1)
    keys = reshape(random_split.bind_positional((key,), ((count,),)), (size,))
    a = reshape(a, (size,))

    def number(value: float) -> Array:
        return broadcast_to_shape(constant(value, dtype), (size,))

    large = ge(a, number(1))
    d = lax.sub(select(large, a, a + 1), number(1 / 3))
    c = lax.div(number(1 / 3), lax.sqrt(d))
    keys, boost_keys = _split_each(keys, 2)

    def is_rejected(d: ArrayLike, x_squared: ArrayLike, v: ArrayLike, u: ArrayLike) -> Array:
        quick = ge(u, 1 - 0.0331 * (x_squared * x_squared))
        return bitwise_and(quick, ge(lax.log(u), x_squared * 0.5 + d * ((1 - v) + lax.log(v))))

    def any_of(which: Any) -> Array:
        return reduce_or(which, (0,))

    def one_step(c: ArrayLike, keys: Array, x: ArrayLike, v: ArrayLike) -> list[Any]:
        todo = le(v, constant(0, dtype))
        following, used = _split_each(keys, 2)
        drawn = draw_normal(used, shape=(), dtype=dtype)
        state = zip((following, drawn, 1 + drawn * c), (keys, x, v), strict=True)
        return [c, *[select(todo, new, old) for new, old in state]]

    def step(d: ArrayLike, c: ArrayLike, keys: Any, x_squared: ArrayLike, v: ArrayLike, u: ArrayLike) -> list[Any]:
        following, normal_keys, uniform_keys = _split_each(keys, 3)
        _, _, x, root = repeat_while(
            lambda c, keys, x, v: any_of(le(v, constant(0, dtype))), one_step,
            [c, normal_keys, x_squared * 0, x_squared * 0 - 1],
        )
        new = following, x * x, root * root * root, draw_unit_uniform(uniform_keys, shape=(), dtype=dtype)
        todo = is_rejected(d, x_squared, v, u)
        chosen = [select(todo, y, z) for y, z in zip(new, (keys, x_squared, v, u), strict=True)]
        return [d, c, *chosen]

    state = [d, c, keys, number(0), number(1), number(2)]
    v = repeat_while(lambda d, c, keys, x, v, u: any_of(is_rejected(d, x, v, u)), step, state)[4]
    if not log_space:
        drawn = 1 - draw_unit_uniform(boost_keys, shape=(), dtype=dtype)
        boost = select(large, number(1), lax.pow(drawn, lax.div(number(1), a)))
        return reshape(lax.mul(lax.mul(d, v), boost), shape)
    drawn = -draw_exponential(boost_keys, shape=(), dtype=dtype)
    none = bitwise_or(large, eq(drawn, number(0)))
    boost = select(none, number(0), lax.mul(drawn, lax.div(number(1), a)))
    return reshape(lax.add(lax.add(lax.log(d), lax.log(v)), boost), shape)


def _gamma_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, log_space: bool) -> tuple[Any, Any]:
    sample, (_, a), moved = random_gamma_p.bind_positional(primals, (log_space,)), primals, tangents[1]
    if moved is None:
        return sample, None
    if not log_space:
        return sample, lax.mul(moved, random_gamma_grad(a, sample))
    value, tiny = lax.exp(sample), constant(dtypes.finfo(aval_of(a).dtype).tiny, aval_of(a).dtype)
    shape = aval_of(a).shape
    value = select(eq(value, constant(0, aval_of(a).dtype)), broadcast_to_shape(tiny, shape), value)
    return sample, lax.mul(moved, lax.div(random_gamma_grad(a, value), value))


def _gamma_batch(
    mapped: Any, operands: Sequence[Any], axes: Sequence[int | None], *, log_space: bool
) -> tuple[Any, int]:
    moved = [with_axis(x, i, mapped.size) for x, i in zip(operands, axes, strict=True)]
    return random_gamma_p.bind_positional(moved, (log_space,)), 0


random_gamma_p = ArrayPrimitive(
    "random_gamma", ("log_space",), abstract=_gamma_abstract, emit=lower_fun(_gamma_formula), jvp=_gamma_jvp,
    batch=_gamma_batch,
)


def draw_gamma(
    key: ArrayLike, a: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike, log_space: bool = False
) -> Array:
    """Draw from gamma distributions, or draw logarithms, which stay finite for samples that underflow."""
    return random_gamma_p.bind_positional((key, fit_parameter(a, shape, dtype)), (log_space,))


_gamma = sampler(draw_gamma)


def gamma(key: ArrayLike, a: object, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the gamma distribution of scale 1, differentiable with respect to `a`.

    For small `a` many of the numbers underflow to 0: `loggamma` is then more accurate.

    Args:
        key: a random key, typed or legacy.
        a: the shape parameter; a positive number or array.
        shape: the shape of the result; None for the shape of `a`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.gamma(random.key(0), 3.0, (2,))
        Array([2.5691018, 2.784202 ], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(_gamma, key, shape, dtype, out_sharding, a=a)


def loggamma(key: ArrayLike, a: object, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw logarithms of numbers from the gamma distribution of scale 1.

    Args:
        key: a random key, typed or legacy.
        a: the shape parameter; a positive number or array.
        shape: the shape of the result; None for the shape of `a`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.loggamma(random.key(0), 3.0, (2,))
        Array([0.94355625, 1.0239613 ], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(lambda *p, **s: _gamma(*p, log_space=True, **s), key, shape, dtype, out_sharding, a=a)


@sampler
def _beta(key: Array, a: Array, b: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    keys = zip(split_key(key, 2), (a, b), strict=True)
    x, y = [draw_gamma(k, p, shape=shape, dtype=dtype, log_space=True) for k, p in keys]
    largest = lax.max(x, y)
    x, y = lax.exp(x - largest), lax.exp(y - largest)
    return x / (x + y)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the beta distribution.

    Args:
        key: a random key, typed or legacy.
        a: the first shape parameter; a positive number or array.
        b: the second shape parameter; a positive number or array.
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
        >>> random.beta(random.key(0), 2.0, 3.0, (2,))
        Array([0.23627362, 0.49045965], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section IX.4: quotients of gamma variables. Marsaglia
        and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(_beta, key, shape, dtype, out_sharding, a=a, b=b)


@sampler
def _dirichlet(key: Array, alpha: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    whole = (*shape, aval_of(alpha).shape[-1])
    logs = draw_gamma(key, alpha, shape=whole, dtype=dtype, log_space=True)
    axis, kept = len(shape), (*shape, 1)
    largest = stop_gradient(reshape(reduce_max(logs, (axis,)), kept)) if whole[-1] else 0
    parts = lax.exp(logs - largest)
    return parts / reshape(add_elements(parts, (axis,)), kept)


def dirichlet(
    key: ArrayLike, alpha: object, shape: ShapeLike | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Draw vectors from the Dirichlet distribution: numbers along a new last axis that add up to 1.

    Args:
        key: a random key, typed or legacy.
        alpha: the concentrations along the last axis; an array of positive numbers.
        shape: the shape of the result without the last axis; None for the leading axes of `alpha`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape, followed by the length of the last axis of `alpha`.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, `alpha` has no axis or does not broadcast to `shape`, or `dtype` is no
            floating dtype.

    Example:
        >>> random.dirichlet(random.key(0), jnp.ones(3))
        Array([0.36472055, 0.4282893 , 0.20699008], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    own = getattr(alpha, "shape", ())
    if not own:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    batch = own[:-1] if shape is None else canonical_shape(shape)
    if broadcast_parameters({"shape": batch, "alpha without its last axis": own[:-1]}) != batch:
        raise ValueError(f"dirichlet: alpha of shape {own} does not broadcast to the shape {batch}")
    return draw(lambda k, **s: _dirichlet(k, alpha, **s), key, batch, dtype, out_sharding)


def draw_chisquare(key: ArrayLike, df: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Draw from chi-square distributions."""
    half = fit_parameter(df, shape, dtype) / 2.0
    return lax.exp(draw_gamma(key, half, shape=shape, dtype=dtype, log_space=True)) * 2.0


_chisquare = sampler(draw_chisquare)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the chi-square distribution.

    Args:
        key: a random key, typed or legacy.
        df: the degrees of freedom; a positive number or array.
        shape: the shape of the result; None for the shape of `df`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.chisquare(random.key(0), 3.0, (2,))
        Array([2.205084 , 2.4899669], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(_chisquare, key, shape, dtype, out_sharding, df=df)


@sampler
def _f(key: Array, dfnum: Array, dfden: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    dfnum, dfden = fit_parameter(dfnum, shape, dtype), fit_parameter(dfden, shape, dtype)
    below, above = split_key(key, 2)
    numerator = draw_chisquare(above, dfnum, shape=shape, dtype=dtype) / dfnum
    return numerator / (draw_chisquare(below, dfden, shape=shape, dtype=dtype) / dfden)


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Draw numbers from the F distribution.

    Args:
        key: a random key, typed or legacy.
        dfnum: the degrees of freedom of the numerator; a positive number or array.
        dfden: the degrees of freedom of the denominator; a positive number or array.
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
        >>> random.f(random.key(0), 3.0, 5.0, (2,))
        Array([2.5797074 , 0.19219677], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(_f, key, shape, dtype, out_sharding, dfnum=dfnum, dfden=dfden)


@sampler
def _t(key: Array, df: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    first, second = split_key(key, 2)
    half = fit_parameter(df, shape, dtype) / 2.0
    drawn = draw_normal(first, shape=shape, dtype=dtype)
    return drawn * lax.sqrt(half / draw_gamma(second, half, shape=shape, dtype=dtype))


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Draw numbers from Student's t distribution.

    Args:
        key: a random key, typed or legacy.
        df: the degrees of freedom; a positive number or array.
        shape: the shape of the result; None for the shape of `df`.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.t(random.key(0), 3.0, (2,))
        Array([ 0.69022465, -3.2393365 ], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(_t, key, shape, dtype, out_sharding, df=df)


def _draw_generalized_normal(key: Array, p: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    first, second = split_key(key, 2)
    power = convert_to(1 / convert_to(p, aval_of(p).dtype), dtype)
    size = draw_gamma(first, power, shape=shape, dtype=dtype)
    return lax.mul(draw_signs(second, shape=shape, dtype=dtype), size**power)


_generalized_normal = sampler(_draw_generalized_normal)


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers whose density is proportional to ``exp(-|x| ** p)``.

    Args:
        key: a random key, typed or legacy.
        p: the exponent; a positive number.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.generalized_normal(random.key(0), 4.0, (2,))
        Array([0.87875676, 0.10257511], dtype=float32)

    Reference:
        Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
    """
    return draw(lambda k, **s: _generalized_normal(k, p, **s), key, shape, dtype, out_sharding)


@sampler
def _ball(key: Array, p: ArrayLike, *, d: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    # Barthe, Guédon, Mendelson and Naor, "A probabilistic approach to the geometry of the l_p^n-ball" (2005).
    first, second = split_key(key, 2)
    g = _draw_generalized_normal(first, p, shape=(*shape, d), dtype=dtype)
    e = draw_exponential(second, shape=shape, dtype=dtype)
    own = convert_to(p, aval_of(p).dtype)
    norm = add_elements(lax.abs(g) ** convert_to(own, dtype), (len(shape),)) + e
    return g / reshape(norm ** convert_to(1 / own, dtype), (*shape, 1))


def ball(
    key: ArrayLike, d: int, p: Any = 2, shape: ShapeLike = (), dtype: DTypeLike | None = None, *,
    out_sharding: Any = None,
) -> Array:
    """Draw points uniformly from the unit ball of the p-norm.

    Args:
        key: a random key, typed or legacy.
        d: the number of dimensions.
        p: the exponent of the norm; a positive number.
        shape: the shape of the result without its last axis.
        dtype: the floating dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape, followed by `d`.

    Raises:
        TypeError: `key` is not a random key, or `d` is negative.
        ValueError: `key` holds several keys, or `dtype` is not a floating dtype.

    Example:
        >>> random.ball(random.key(0), 3).shape
        (3,)

    Reference:
        Barthe, Guedon, Mendelson and Naor, "A probabilistic approach to the geometry of the l_p^n-ball" (2005).
    """
    size = to_integer("d", d)
    return draw(lambda k, **s: _ball(k, float(p), d=size, **s), key, shape, dtype, out_sharding)
