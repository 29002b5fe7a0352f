"""Discrete distributions drawn by rejection in loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.settings import config
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq, ne
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.elementwise.special import lgamma
from xtrace._src.ops.random.keys import choose_generator, random_clone
from xtrace.random.continuous import constant, draw_unit_uniform
from xtrace.random.keys import check_key
from xtrace.random.sampling import (
    find_result_shape,
    fit_parameter,
    is_any_true,
    sampler,
    split_key,
    to_int_dtype,
)


def _count_exponentials(key: Any, rate: Any, dtype: Any, limit: int) -> Any:
    # Knuth, "The art of computer programming", volume 2, section 3.4.1: uniform numbers are multiplied until the
    # product is below exp(-rate); their count is the sample.
    shape, number = aval_of(rate).shape, aval_of(rate).dtype

    def is_unfinished(state: tuple[Array, ...]) -> Array:
        step, _, _, product = state
        return bitwise_and(is_any_true(product > -rate), step < limit)

    def multiply(state: Any) -> Any:
        step, count, key, product = state
        key, used = split_key(key, 2)
        count = select(product > -rate, count + 1, count)
        return step + 1, count, key, product + lax.log(draw_unit_uniform(used, shape=shape, dtype=number))

    counts, products = [broadcast_to_shape(constant(0, kind), shape) for kind in (dtype, number)]
    start = constant(0, dtypes.int32), counts, key, products
    return while_loop(is_unfinished, multiply, start)[1] - 1


def _sample_by_rejection(key: Array, rate: Array, dtype: np.dtype[Any], limit: int) -> Array:
    # Hörmann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
    shape, number = aval_of(rate).shape, aval_of(rate).dtype
    log_rate = lax.log(rate)
    b = 0.931 + 2.53 * lax.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def is_unfinished(state: tuple[Array, ...]) -> Array:
        step, _, done, _ = state
        return bitwise_and(is_any_true(~done), step < limit)

    def attempt(state: tuple[Array, ...]) -> tuple[Array, ...]:
        step, sample, done, key = state
        key, first, second = split_key(key, 3)
        u = draw_unit_uniform(first, shape=shape, dtype=number) - 0.5
        v = draw_unit_uniform(second, shape=shape, dtype=number)
        distance = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / distance + b) * u + rate + 0.43)
        bound = lax.log(v * inverse_alpha / (a / (distance * distance) + b))
        density = -rate + k * log_rate - lgamma(k + 1)
        outside = (k < 0) | ((distance < 0.013) & (v > distance))
        accepted = ((distance >= 0.07) & (v <= quick)) | (~outside & (bound <= density))
        return step + 1, select(accepted, k, sample), done | accepted, key

    samples, done = [broadcast_to_shape(constant(x, kind), shape) for x, kind in ((-1, number), (False, bool))]
    start = constant(0, dtypes.int32), samples, done, key
    return convert_to(while_loop(is_unfinished, attempt, start)[1], dtype)


@sampler
def _poisson(key: Array, rate: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    rate = fit_parameter(rate, shape, dtypes.float32)
    small = ne(rate, rate) | (rate < 10)
    # Where the sample of a method is unused, another rate keeps its loop short.
    zero, large = [broadcast_to_shape(constant(x, dtypes.float32), shape) for x in (0, 1e5)]
    limit = int(dtypes.iinfo(dtypes.int32 if dtypes.bit_width(dtype) > 32 else dtype).max)
    counted = _count_exponentials(key, select(small, rate, zero), dtype, limit)
    rejected = _sample_by_rejection(random_clone.bind_positional((key,)), select(small, large, rate), dtype, limit)
    nothing = broadcast_to_shape(constant(0, dtype), shape)
    return select(eq(rate, zero), nothing, select(small, counted, rejected))


def poisson(key: Any, lam: object, shape: Any = None, dtype: Any = None, *, out_sharding: object = None) -> Array:
    """Draw integers from the Poisson distribution.

    Args:
        key: a random key, typed or legacy.
        lam: the rate; a number or array. The result is -1 for negative rates and NaN.
        shape: the shape of the result; None for the shape of `lam`.
        dtype: the integer dtype of the result; None for the default integer dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, `lam` does not broadcast to `shape`, or `dtype` is not an integer dtype.
        NotImplementedError: the generator of the key is not "threefry2x32".

    Example:
        >>> random.poisson(random.key(0), 3.0, (4,))
        Array([0, 0, 4, 4], dtype=int32)

    Reference:
        Hörmann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
    """
    if out_sharding is not None:
        return with_out_sharding(poisson, out_sharding, key, lam, shape, dtype)
    dtype = to_int_dtype(dtype)
    check_key(key)
    name = choose_generator(aval_of(key).dtype).name if aval_of(key).ndim == 0 else config.default_prng_impl.value
    if name != "threefry2x32":
        raise NotImplementedError(f"poisson: keys must come from the generator threefry2x32, got {name}")
    return _poisson(key, lam, shape=find_result_shape(shape, lam=lam), dtype=dtype)
