"""The binomial and the multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, move_axis
from xtrace._src.api.operators.operators import broadcast_to_shape, select_where
from xtrace._src.api.operators.promotion import as_inexact, common_dtype, find_common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise import selection
from xtrace._src.ops.random.keys import random_clone, random_split
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace.numpy.indexing.indexing import take
from xtrace.random.continuous import constant, draw_unit_uniform
from xtrace.random.keys import check_key
from xtrace.random.sampling import (
    broadcast_parameters,
    draw,
    find_result_shape,
    fit_parameter,
    get_parameter_shape,
    is_any_true,
    sampler,
    split_key,
    to_float_dtype,
)

# The largest k whose remainder is tabulated.
_LAST_EXACT = 9


def _compute_stirling_remainder(k: int) -> float:
    """Return log(k!) - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2) (Hörmann 1993, section 3)."""
    return math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1) - math.log(2 * math.pi) / 2


_STIRLING_REMAINDERS = np.array([_compute_stirling_remainder(k) for k in range(_LAST_EXACT + 1)])


def _find_remainder(k: Array) -> Array:
    """Return the remainder of Stirling's formula: exact for k <= 9, and the series at k = 9 for larger k.

    The true remainder decreases further. The constant makes samples agree with jax's.
    """
    dtype = aval_of(k).dtype
    inside = selection.clamp(constant(0, dtype), k, constant(_LAST_EXACT, dtype))
    square = (inside + 1) * (inside + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (inside + 1)
    exact = take(_STIRLING_REMAINDERS.astype(dtype), convert_to(inside, dtypes.int32))
    return select_where(k <= _LAST_EXACT, exact, series)


def _count_by_waiting(key: Array, count: Array, log_failure: Array) -> Array:
    # Devroye, "Non-uniform random variate generation" (1986), section X.4.3, first waiting time algorithm: geometric
    # waiting times are added until they exceed the number of trials.
    shape, dtype = aval_of(count).shape, aval_of(count).dtype

    def wait(state: tuple[Array, ...]) -> tuple[Array, ...]:
        successes, waited, key = state
        used, key = split_key(key, 2)
        successes = select_where(waited <= count, successes + 1, successes)
        drawn = draw_unit_uniform(used, shape=shape, dtype=dtype)
        return successes, waited + lax.ceil(lax.log(drawn) / log_failure), key

    zeros = broadcast_to_shape(constant(0, dtype), shape)
    return while_loop(lambda state: is_any_true(state[1] <= count), wait, (zeros, zeros, key))[0] - 1


def _count_by_rejection(key: Array, n: Array, p: Array) -> Array:
    # Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS, for n p >= 10 and p <= 1/2.
    shape, dtype = aval_of(n).shape, aval_of(n).dtype
    deviation = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    quick = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = lax.floor((n + 1) * p)

    def attempt(state: tuple[Array, ...]) -> tuple[Array, ...]:
        sample, done, key = state
        key, first, second = split_key(key, 3)
        u = draw_unit_uniform(first, shape=shape, dtype=dtype) - 0.5
        v = draw_unit_uniform(second, shape=shape, dtype=dtype)
        distance = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / distance + b) * u + centre)
        height = lax.log(v * alpha / (a / (distance * distance) + b))
        bound = (mode + 0.5) * lax.log((mode + 1) / (odds * (n - mode + 1)))
        bound = bound + (n + 1) * lax.log((n - mode + 1) / (n - k + 1))
        bound = bound + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
        bound = bound + _find_remainder(mode) + _find_remainder(n - mode) - _find_remainder(k) - _find_remainder(n - k)
        outside = (k < 0) | (k > n)
        accepted = ((distance >= 0.07) & (v <= quick)) | (~outside & (height <= bound))
        return select_where(accepted, k, sample), done | accepted, key

    start = broadcast_to_shape(constant(-1, dtype), shape), broadcast_to_shape(constant(False, bool), shape), key
    return while_loop(lambda state: is_any_true(~state[1]), attempt, start)[0]


def _draw_counts(key: Array, n: Array, p: Array) -> Array:
    """Draw numbers of successes; `n` and `p` have the shape and dtype of the result."""
    rare = p < 0.5
    # Count the rarer outcome: successes or failures.
    chance = select_where(rare, p, 1 - p)
    no_count, no_chance = (n != n) | (n < 0), (chance != chance) | (chance < 0)
    endless = lax.abs(n) == math.inf
    chance = select_where(no_chance, 0.01, chance)
    # For n = inf and p = 0 rejection would not end.
    few = no_count | (n * chance <= 10) | (endless & (chance == 0))
    whole = lax.floor(n)
    # Where the sample of a method is unused, other parameters keep its loop short.
    waited = _count_by_waiting(key, select_where(few & ~endless, whole, 0.0), lax.log1p(-chance))
    rejected = _count_by_rejection(
        random_clone.bind_positional((key,)), select_where(few, 1e4, whole), select_where(few, 0.5, chance)
    )
    count = select_where(few, waited, rejected)
    undefined = no_count | no_chance
    count = select_where(undefined, math.nan, select_where(endless, math.inf, count))
    return select_where(rare | undefined | endless, count, whole - count)


@sampler
def _binomial(key: Array, n: Array, p: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    number = as_inexact(find_common_dtype(n, p), False)[0]
    return convert_to(_draw_counts(key, fit_parameter(n, shape, number), fit_parameter(p, shape, number)), dtype)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Draw numbers of successes in `n` trials.

    Args:
        key: a random key, typed or legacy.
        n: the number of trials; a number or array.
        p: the probability of success; a number or array.
        shape: the shape of the result; None for the broadcast shape of the parameters.
        dtype: the floating dtype of the result; None for the default floating dtype.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.binomial(random.key(0), 10, 0.3, (3,))
        Array([2., 2., 1.], dtype=float32)

    Reference:
        Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS; Devroye (1986), section X.4.3.
    """
    return draw(_binomial, key, shape, dtype, n=n, p=p)


@sampler
def _multinomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any], unroll: Any
) -> Any:
    number = common_dtype((n, p), as_inexact)[1]
    chances = move_axis(fit_parameter(p, shape, number), len(shape) - 1, 0)
    left = cumsum(chances, 0, True)
    # The probability of each category, given that no earlier one was drawn.
    chances = chances / select_where(left == 0, 1, left)

    def draw_category(remaining: Any, category: tuple[Array, ...]) -> Any:
        chance, key = category
        chance = lax.min(constant(1, number), lax.max(constant(0, number), chance))
        count = _draw_counts(key, remaining, chance)
        return remaining - count, count

    keys = random_split.bind_positional((key,), ((shape[-1],),))
    counts = scan(draw_category, fit_parameter(n, shape[:-1], number), (chances, keys), unroll=unroll)[1]
    return convert_to(move_axis(counts, 0, len(shape) - 1), dtype)


def multinomial(
    key: ArrayLike, n: object, p: object, *, shape: ShapeLike | None = None, dtype: Any = None, unroll: int | bool = 1
) -> Any:
    """Draw the counts of outcomes in `n` trials.

    Args:
        key: a random key, typed or legacy.
        n: the number of trials; a number or array.
        p: the probabilities of the outcomes along the last axis.
        shape: the shape of the result; None for the broadcast shape of the parameters.
        dtype: the floating dtype of the result; None for the default floating dtype.
        unroll: the number of outcomes to draw in each step of the loop.

    Returns:
        An array with the count of each outcome along the last axis.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the parameters do not broadcast to `shape`, or `dtype` is not a floating
            dtype.

    Example:
        >>> random.multinomial(random.key(0), 10, jnp.array([0.2, 0.8]))
        Array([1., 9.], dtype=float32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section XI.1: conditional binomials.
    """
    check_key(key)
    requested = to_float_dtype(None) if dtype is None else requested_dtype(dtype)
    own = get_parameter_shape("p", p)
    if not own:
        raise ValueError("multinomial: axis -1 is out of bounds: p must have an axis of outcomes, got a scalar")
    wanted = own if shape is None else find_result_shape(shape, p=p)
    counts = get_parameter_shape("n", n)
    if broadcast_parameters({"n": counts, "shape without outcomes": wanted[:-1]}) != wanted[:-1]:
        raise ValueError(f"multinomial: n of shape {counts} does not broadcast to {wanted[:-1]}, the shape of samples")
    return _multinomial(key, n, p, shape=wanted, dtype=requested, unroll=unroll)
