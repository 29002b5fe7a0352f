"""Random bits, and uniform, normal and Gumbel numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import canonical_shape, convert_to, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import broadcast_to_shape, select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    clz,
    eq,
    ge,
    lt,
    shift_left,
    shift_right_logical,
)
from xtrace._src.ops.random.keys import random_bits
from xtrace.random.keys import check_key, needs_check
from xtrace.random.sampling import (
    broadcast_parameters,
    draw,
    get_parameter_shape,
    sampler,
    split_key,
    to_float_dtype,
)

with late_modules(globals()):
    from xtrace._src.ops.elementwise.reinterpretation import bitcast_convert_type
    from xtrace._src.ops.elementwise.special import erf_inv


def constant(value: object, dtype: DTypeLike) -> Any:
    """Return a number as a constant of `dtype`."""
    number = value if is_symbolic(value) else dtypes.cast(value, dtype)[()]
    return Literal(number, ShapedArray((), dtype))


def _bits(key: Array, *, shape: tuple[int, ...], width: int) -> Array:
    return random_bits.bind_positional((key,), (width, shape))


@inline_jit(static=("shape", "dtype", "out_sharding"), public=True, unless=needs_check)
def bits(
    key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: object = None
) -> Array:
    """Draw random bits, as unsigned integers.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: an unsigned integer dtype; None for uint32, or uint64 where 64 bits are enabled.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key, or `shape` has a negative size.
        ValueError: `key` holds several keys, or `dtype` is not an unsigned integer dtype.

    Example:
        >>> random.bits(random.key(0), (2,))
        Array([4070199207, 4202968722], dtype=uint32)

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    if out_sharding is not None:
        return with_out_sharding(bits, out_sharding, key, shape, dtype)
    requested = dtypes.default_uint(config.enable_x64.value) if dtype is None else requested_dtype(dtype)
    if not dtypes.is_integer(requested) or dtypes.is_signed(requested):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtypes.full_name(requested)}")
    check_key(key)
    return bits_program(key, shape=canonical_shape(shape), width=max(8, dtypes.bit_width(requested)))


bits_program = sampler(_bits)


def draw_uniform(key: ArrayLike, low: Any, high: Any, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Draw numbers from [low, high): random mantissa bits make a number in [1, 2), which is shifted and scaled."""
    width, mantissa = dtypes.bit_width(dtype), int(dtypes.finfo(dtype).nmant)
    drawn = width if mantissa >= 8 else 8
    words = convert_to(random_bits.bind_positional((key,), (drawn, shape)), dtypes.unsigned_dtypes[width])
    word = dtypes.unsigned_dtypes[width]
    exponent = int(np.array(1, dtype).view(word))
    words = shift_right_logical.bind_positional((words, constant(drawn - mantissa, word)))
    words = bitwise_or.bind_positional((words, constant(exponent, word)))
    unit = lax.sub.bind_positional((bitcast_convert_type(words, dtype), constant(1, dtype)))
    low, high = [broadcast_to_shape(x, shape) if aval_of(x).shape else x for x in (low, high)]
    return lax.max(low, lax.add(lax.mul(unit, lax.sub(high, low)), low))


@sampler
def _uniform(key: Array, low: ArrayLike, high: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    low, high = convert_to(low, dtype), convert_to(high, dtype)
    own = aval_of(low).shape
    fitting = [
        reshape(x, _drop_extra_axes(aval_of(x).shape, shape)) if aval_of(x).ndim > len(shape) else x
        for x in (low, high)
    ]
    drawn = draw_uniform(key, *fitting, shape=shape, dtype=dtype)
    # A single number takes the shape of its lower bound.
    return drawn if shape or not own else reshape(drawn, own)


def _drop_extra_axes(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a bound without its leading axes of size 1 that the result lacks."""
    extra = max(0, len(own) - len(shape))
    return own[extra:] if own[:extra] == (1,) * extra else own


def draw_unit_uniform(key: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike, low: ArrayLike = 0) -> Array:
    """Draw numbers from [low, 1)."""
    return draw_uniform(key, constant(low, dtype), constant(1, dtype), shape=shape, dtype=dtype)


@inline_jit(static=("shape", "dtype", "out_sharding"), public=True, unless=needs_check)
def uniform(
    key: ArrayLike, shape: ShapeLike = (), dtype: Any = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, *,
    out_sharding: object = None
) -> Array:
    """Draw numbers uniformly from [minval, maxval).

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        minval: the lower bound, included; a number or an array that broadcasts to `shape`. With the shape () it may
            have axes of size 1, which the result then has, too.
        maxval: the upper bound, excluded; a number or an array that broadcasts to `shape`.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, `dtype` is not a floating dtype, or a bound does not broadcast to `shape`.

    Example:
        >>> random.uniform(random.key(0), (2,))
        Array([0.947667 , 0.9785799], dtype=float32)

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    if out_sharding is not None:
        return with_out_sharding(uniform, out_sharding, key, shape, dtype, minval, maxval)
    dtype = to_float_dtype(dtype)
    if dtypes.bit_width(dtype) < 8:
        raise TypeError(f"uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got {dtype.name}")
    check_key(key)
    shape = canonical_shape(shape)
    if type(minval) is not float or type(maxval) is not float:
        own = {name: get_parameter_shape(name, v) for name, v in (("minval", minval), ("maxval", maxval))}
        fitting = {
            "minval": _drop_extra_axes(own["minval"], shape) if shape == () else own["minval"],
            "maxval": _drop_extra_axes(own["maxval"], shape),
        }
        if broadcast_parameters({**fitting, "shape": shape}) != shape:
            raise ValueError(f"uniform: minval and maxval of shapes {own} do not broadcast to the shape {shape}")
    return _uniform(key, minval, maxval, shape=shape, dtype=dtype)


def draw_normal(key: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Draw normally distributed numbers by the inverse of the cumulative distribution function."""
    if dtypes.is_complex(dtype):
        part = dtypes.real_part_dtype(dtype)
        real, imaginary = [convert_to(draw_normal(k, shape=shape, dtype=part), dtype) for k in split_key(key, 2)]
        root = complex(dtypes.cast(math.sqrt(2), part).item())
        return lax.div(real + constant(1j, dtype) * imaginary, constant(root, dtype))
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    drawn = draw_unit_uniform(key, shape=shape, dtype=dtype, low=low)
    return lax.mul(constant(math.sqrt(2), dtype), erf_inv(drawn))


_normal = sampler(draw_normal)


@inline_jit(static=("shape", "dtype", "out_sharding"), public=True, unless=needs_check)
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Draw numbers from the normal distribution of mean 0 and variance 1.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating or complex dtype of the result; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `dtype` is neither floating nor complex.

    Example:
        >>> random.normal(random.key(0), (2,))
        Array([1.6226422, 2.0252647], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    return draw(_normal, key, shape, dtype, out_sharding, complex_too=True)


def _draw_tails_exactly(key: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Draw float32 Gumbel numbers of u from 64 random bits, with a full mantissa where u or 1 - u is small."""
    one, full, none = [constant(number, np.uint32) for number in (1, 32, 2**32 - 1)]
    words = random_bits.bind_positional((key,), (32, (2, *shape)))
    high, low = [index_in_dim(words, i, 0, keepdims=False) for i in (0, 1)]
    is_small = lt(high, constant(2**31, np.uint32))
    carry = convert_to(eq(bitwise_not(low), none), np.uint32)
    high = select_where(is_small, high, lax.add(bitwise_not(high), carry))
    low = select_where(is_small, low, lax.add(bitwise_not(low), one))
    zeros, low_zeros, is_low = clz(high), clz(low), eq(high, constant(0, np.uint32))
    # Shifts by all bits of a word give 0.
    filling = select_where(is_low, shift_left(low, low_zeros), shift_right_logical(low, lax.sub(full, zeros)))
    leading = bitwise_or(shift_left(high, zeros), filling)
    mantissa = bitwise_and(shift_right_logical(leading, constant(8, np.uint32)), constant(2**23 - 1, np.uint32))
    exponent = lax.sub(constant(126, np.uint32), select_where(is_low, lax.add(full, low_zeros), zeros))
    number = bitcast_convert_type(bitwise_or(shift_left(exponent, constant(23, np.uint32)), mantissa), np.float32)
    return -lax.log(-select_where(is_small, lax.log1p(-number), lax.log(number)))


def draw_gumbel(key: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike, mode: str) -> Array:
    """Draw numbers from the Gumbel distribution; other modes than "low" take twice the bits, for values in the tail."""
    if mode == "highest" and dtypes.bit_width(dtype) == 32:
        return _draw_tails_exactly(key, shape)
    info = dtypes.finfo(dtype)
    tiny, eps = [constant(x, dtype) for x in (info.tiny, info.eps)]
    if mode == "low":
        drawn = draw_unit_uniform(key, shape=shape, dtype=dtype, low=info.tiny)
        return -lax.log(-lax.log(drawn))
    pair = draw_unit_uniform(key, shape=(2, *shape), dtype=dtype)
    high, low = [index_in_dim(pair, i, 0, keepdims=False) for i in (0, 1)]
    fine = lax.add(lax.add(high, lax.mul(eps, low)), tiny)
    return -lax.log(-lax.log1p(-select_where(ge(high, constant(0.5, dtype)), high, fine)))


_gumbel = sampler(draw_gumbel)


def choose_gumbel_mode(mode: object) -> str:
    """Return `mode`, or the setting's mode for None; ValueError unless it is "low", "high" or "highest"."""
    if mode is None:
        return "high" if config.high_dynamic_range_gumbel.value else "low"
    if mode not in ("low", "high", "highest"):
        modes = "'low', 'high', 'highest' or None"
        raise ValueError(f"Must provide valid mode for gumbel: {modes}; got {abbreviate(mode)}")
    return str(mode)


def gumbel(
    key: ArrayLike, shape: ShapeLike = (), dtype: Any = None, mode: Any = None, *, out_sharding: Any = None
) -> Array:
    """Draw numbers from the Gumbel distribution.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the floating dtype of the result; None for the default floating dtype.
        mode: "low" or "high", the number of random bits for each number, or "highest", which uses those of "high"
            fully in float32; None for the setting's.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, `dtype` is not a floating dtype, or `mode` is unknown.

    Example:
        >>> random.gumbel(random.key(0), (2,))
        Array([2.9233725, 3.8326178], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    mode = choose_gumbel_mode(mode)
    return draw(lambda k, **s: _gumbel(k, mode=mode, **s), key, shape, dtype, out_sharding)
