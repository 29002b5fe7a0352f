"""Random integers, choices and permutations, and discrete distributions drawn without rejection."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import canonical_axis, canonical_shape, convert_to, move_axis
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import is_symbolic, largest
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq, gt, le, lt
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.random.keys import random_bits
from xtrace._src.ops.reductions.reductions import argmax
from xtrace.numpy.indexing.indexing import take
from xtrace.random.continuous import choose_gumbel_mode, constant, draw_gumbel, draw_unit_uniform
from xtrace.random.keys import check_key
from xtrace.random.sampling import (
    broadcast_parameters,
    find_result_shape,
    fit_parameter,
    get_parameter_shape,
    sampler,
    split_key,
    to_float_dtype,
    to_int_dtype,
)

with late_modules(globals()):
    from xtrace._src.ops.arrays.sorting import sort, top_k
    from xtrace._src.ops.reductions.cumulative import cumsum

# Integers


def draw_integers(
    key: ArrayLike, minval: ArrayLike, maxval: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike
) -> Array:
    """Draw integers of a 32- or 64-bit `dtype` from [minval, maxval); an empty range gives minval.

    Each integer is a random number of two words modulo the size of the range.
    """
    width = dtypes.bit_width(dtype)
    word, bounds = dtypes.unsigned_dtypes[width], dtypes.iinfo(dtype)
    lowest, highest = int(bounds.min), int(bounds.max)
    # A bound above the largest number of the type includes that number.
    beyond = _is_above(maxval, highest)
    low, high = [fit_parameter(_clip_bounds(x, lowest, highest), shape, dtype) for x in (minval, maxval)]
    words = [random_bits.bind_positional((k,), (width, shape)) for k in split_key(key, 2)]
    span = convert_to(lax.sub(high, low), word)
    one, half = constant(1, word), constant(1 << (width // 2), word)
    span = select(le(high, low), broadcast_to_shape(one, shape), span)
    if beyond is not None:
        wider = bitwise_and(broadcast_to_shape(beyond, shape), gt(high, low))
        span = select(wider, lax.add(span, one), span)
    # 2 ** width modulo the span, in steps that stay within the word.
    root = lax.rem(broadcast_to_shape(half, shape), span)
    shift = lax.rem(lax.mul(root, root), span)
    high_part, low_part = [lax.rem(x, span) for x in words]
    offset = lax.rem(lax.add(lax.mul(high_part, shift), low_part), span)
    return lax.add(low, convert_to(offset, dtype))


def _clip_bounds(x: ArrayLike, lowest: int, highest: int) -> Any:
    """Clip bounds of a range to [lowest, highest]."""
    aval = aval_of(x)
    own = dtypes.iinfo(aval.dtype)
    if int(own.min) < lowest:
        x = lax.max(constant(lowest, aval.dtype), x)
    return lax.min(constant(highest, aval.dtype), x) if int(own.max) > highest else x


def _is_above(maxval: ArrayLike, highest: int) -> Any:
    """Return whether `maxval` exceeds `highest`; None if its dtype cannot."""
    dtype = aval_of(maxval).dtype
    return gt(maxval, constant(highest, dtype)) if int(dtypes.iinfo(dtype).max) > highest else None


@sampler
def _randint(
    key: Array, minval: ArrayLike, maxval: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    if dtypes.bit_width(dtype) >= 32:
        return draw_integers(key, _as_integers(minval), _as_integers(maxval), shape=shape, dtype=dtype)
    bounds = dtypes.iinfo(dtype)
    low = _narrow_bounds(minval, int(bounds.min), int(bounds.max))
    high = _narrow_bounds(maxval, int(bounds.min), int(bounds.max) + 1)
    return convert_to(draw_integers(key, low, high, shape=shape, dtype=dtypes.int32), dtype)


def _as_integers(x: ArrayLike) -> Any:
    return x if dtypes.is_integer(aval_of(x).dtype) else convert_to(x, dtypes.default_int(config.enable_x64.value))


def _narrow_bounds(x: ArrayLike, lowest: int, highest: int) -> Array:
    x = _as_integers(x)
    wide = x if dtypes.bit_width(aval_of(x).dtype) > 32 else convert_to(x, dtypes.int32)
    dtype = aval_of(wide).dtype
    return convert_to(lax.min(constant(highest, dtype), lax.max(constant(lowest, dtype), wide)), dtypes.int32)


def randint(
    key: ArrayLike, shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike, dtype: Any = None, *,
    out_sharding: object = None,
) -> Array:
    """Draw integers uniformly from [minval, maxval).

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        minval: the lower bound, included; an integer or array.
        maxval: the upper bound, excluded; an integer or array.
        dtype: the integer dtype of the result; None for the default integer dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key, or `dtype` is not an integer dtype.
        ValueError: `key` holds several keys, or a bound does not broadcast to `shape`.

    Example:
        >>> random.randint(random.key(0), (4,), 0, 10)
        Array([9, 0, 2, 3], dtype=int32)

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    if out_sharding is not None:
        return with_out_sharding(randint, out_sharding, key, shape, minval, maxval, dtype)
    dtype = to_int_dtype(dtype, TypeError)
    check_key(key)
    shape = find_result_shape(shape, minval=minval, maxval=maxval)
    return _randint(key, minval, maxval, shape=shape, dtype=dtype)


# Booleans and signs


def draw_booleans(key: ArrayLike, p: ArrayLike, *, shape: tuple[int, ...], mode: str) -> Array:
    """Draw booleans that are true with probability `p`; the mode "high" takes twice the bits."""
    dtype = aval_of(p).dtype
    p = broadcast_to_shape(p, shape) if aval_of(p).shape else p
    if mode == "low":
        return lt(draw_unit_uniform(key, shape=shape, dtype=dtype), p)
    pair = draw_unit_uniform(key, shape=(2, *shape), dtype=dtype)
    high, low = [index_in_dim(pair, i, 0, keepdims=False) for i in (0, 1)]
    eps = constant(dtypes.finfo(dtype).eps, dtype)
    return lt(lax.mul(low, eps), lax.sub(p, high))


@sampler
def _bernoulli(key: Array, p: ArrayLike, *, shape: tuple[int, ...], mode: str) -> Array:
    return draw_booleans(key, p, shape=shape, mode=mode)


def bernoulli(
    key: ArrayLike, p: object = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: object = None
) -> Array:
    """Draw booleans that are true with a given probability.

    Args:
        key: a random key, typed or legacy.
        p: the probability; a floating number or array.
        shape: the shape of the result; None for the shape of `p`.
        mode: "low" or "high", the number of random bits for each boolean.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of booleans.

    Raises:
        TypeError: `key` is not a random key, or `p` is not floating.
        ValueError: `key` holds several keys, `p` does not broadcast to `shape`, or `mode` is unknown.

    Example:
        >>> random.bernoulli(random.key(0), 0.5, (4,))
        Array([False, False,  True,  True], dtype=bool)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    if out_sharding is not None:
        return with_out_sharding(bernoulli, out_sharding, key, p, shape, mode)
    if mode not in ("high", "low"):
        raise ValueError(f"bernoulli: got mode={abbreviate(mode)}, expected 'high' or 'low'")
    check_key(key)
    shape = find_result_shape(shape, p=p)
    dtype = aval_of(p).dtype
    if not dtypes.is_floating(dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype.name}.")
    return _bernoulli(key, p, shape=shape, mode=mode)


def draw_signs(key: ArrayLike, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Draw -1 and 1 with equal probability."""
    half = constant(0.5, dtypes.default_float(config.enable_x64.value))
    heads = draw_booleans(key, half, shape=shape, mode="low")
    if dtypes.is_boolean(dtype):
        return convert_to(2 * convert_to(heads, dtypes.int32) - 1, dtype)
    return 2 * convert_to(heads, dtype) - 1


_rademacher = sampler(draw_signs)


def rademacher(
    key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: object = None
) -> Array:
    """Draw -1 or 1 with equal probability.

    Args:
        key: a random key, typed or legacy.
        shape: the shape of the result.
        dtype: the dtype of the numbers; None for the default integer dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys.

    Example:
        >>> random.rademacher(random.key(0), (4,))
        Array([-1, -1,  1,  1], dtype=int32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    if out_sharding is not None:
        return with_out_sharding(rademacher, out_sharding, key, shape, dtype)
    requested = dtypes.default_int(config.enable_x64.value) if dtype is None else requested_dtype(dtype)
    check_key(key)
    return _rademacher(key, shape=canonical_shape(shape), dtype=requested)


@sampler
def _geometric(key: Array, p: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if not dtypes.is_inexact(aval_of(p).dtype):
        p = convert_to(p, dtypes.default_float(config.enable_x64.value))
    own = aval_of(p).dtype
    p = broadcast_to_shape(p, shape)
    drawn = draw_unit_uniform(key, shape=shape, dtype=own)
    drawn = select(eq(drawn, constant(0, own)), broadcast_to_shape(constant(1, own), shape), drawn)
    return convert_to(lax.floor(lax.div(lax.log(drawn), lax.log1p(-p))) + 1.0, dtype)


def geometric(key: Any, p: object, shape: Any = None, dtype: Any = None, *, out_sharding: object = None) -> Array:
    """Draw numbers of trials up to the first success.

    Args:
        key: a random key, typed or legacy.
        p: the probability of success; a number or array.
        shape: the shape of the result; None for the shape of `p`.
        dtype: the integer dtype of the result; None for the default integer dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, `p` does not broadcast to `shape`, or `dtype` is not an integer dtype.

    Example:
        >>> random.geometric(random.key(0), 0.25, (4,))
        Array([1, 1, 4, 3], dtype=int32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    if out_sharding is not None:
        return with_out_sharding(geometric, out_sharding, key, p, shape, dtype)
    dtype = to_int_dtype(dtype)
    check_key(key)
    return _geometric(key, p, shape=find_result_shape(shape, p=p), dtype=dtype)


# Permutations and choices


def shuffle_elements(key: ArrayLike, x: Array, axis: int) -> Array:
    """Permute `x` along an axis: sort it by random words, in enough rounds to make ties unlikely."""
    size = aval_of(x).size
    if is_symbolic(size):
        raise NotImplementedError(
            f"{called_function()}: the number of rounds, and so the result, depends on the number of elements, which "
            f"is the symbolic dimension {size} here. Sort by random numbers: x[argsort(random.uniform(key, x.shape))]"
        )
    size = max(1, size)
    # After 3 log(size) / log(2³²) rounds it is unlikely that two elements tie in every round.
    for _ in range(math.ceil(3 * math.log(size) / math.log(2**32 - 1))):
        key, other = split_key(key, 2)
        words = random_bits.bind_positional((other,), (32, aval_of(x).shape))
        x = sort((words, x), axis, num_keys=1)[1]
    return x


def _make_indices(count: int) -> Array:
    dtype = dtypes.default_int(config.enable_x64.value)
    return broadcasted_iota.bind_positional((), (dtype, (count,), 0, None))


@sampler
def _permute_numbers(key: Array, *, count: int) -> Array:
    return shuffle_elements(key, _make_indices(count), 0)


@sampler
def _permutation(key: Array, x: Any, *, axis: int, independent: bool) -> Array:
    if independent or aval_of(x).ndim == 1:
        return shuffle_elements(key, x, axis)
    return take(x, shuffle_elements(key, _make_indices(aval_of(x).shape[axis]), 0), axis)


def _to_length(x: Any) -> int:
    """Return the integer `x`, the length of a range; TypeError for anything else."""
    if isinstance(x, Tracer):
        raise explain.concretization(x, called_function())
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(
            f"{called_function()}: x must be an integer or at least 1-dimensional, got {abbreviate(x)}"
        ) from None


def permutation(
    key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: object = None
) -> Array:
    """Return the slices of an array in random order, or a permutation of the integers below a number.

    Args:
        key: a random key, typed or legacy.
        x: an integer, for ``arange(x)``, or an array.
        axis: the axis of the slices.
        independent: whether each vector along `axis` is permuted independently.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `x` has no such axis.

    Example:
        >>> random.permutation(random.key(0), 4)
        Array([0, 1, 3, 2], dtype=int32)

    Reference:
        Sorting by random words, in enough rounds to make ties improbable.
    """
    if out_sharding is not None:
        return with_out_sharding(permutation, out_sharding, key, x, axis, independent)
    check_key(key)
    rank = len(get_parameter_shape("x", x))
    axis = canonical_axis(axis, max(rank, 1))
    if not rank:
        return _permute_numbers(key, count=max(_to_length(x), 0))
    return _permutation(key, x, axis=axis, independent=bool(independent))


@sampler
def _draw_numbers(key: Array, *, count: int, shape: tuple[int, ...]) -> Array:
    dtype = dtypes.default_int(config.enable_x64.value)
    return draw_integers(key, constant(0, dtype), constant(count, dtype), shape=shape, dtype=dtype)


@sampler
def _draw_elements(key: Array, a: ArrayLike, *, axis: int, shape: tuple[int, ...]) -> Array:
    dtype, count = dtypes.default_int(config.enable_x64.value), aval_of(a).shape[axis]
    return take(a, draw_integers(key, constant(0, dtype), constant(count, dtype), shape=shape, dtype=dtype), axis)


@sampler
def _draw_without_replacement(key: Array, *a: Array, count: int, axis: int, shape: tuple[int, ...]) -> Array:
    drawn = math.prod(shape)
    if a and aval_of(a[0]).ndim == 1:
        return shuffle_elements(key, a[0], 0)[:drawn].reshape(shape)
    numbers = shuffle_elements(key, _make_indices(count), 0)[:drawn].reshape(shape)
    return take(a[0], numbers, axis) if a else numbers


@sampler
def _draw_by_probability(
    key: Array, p: Array, *a: Array, axis: int, shape: tuple[int, ...], replace: bool, mode: str
) -> Array:
    if not dtypes.is_inexact(aval_of(p).dtype):
        p = convert_to(p, dtypes.default_float(config.enable_x64.value))
    dtype, whole = aval_of(p).dtype, dtypes.default_int(config.enable_x64.value)
    if replace:
        sums = cumsum(p)
        drawn = lax.mul(broadcast_to_shape(sums[-1], shape), 1 - draw_unit_uniform(key, shape=shape, dtype=dtype))
        # The insertion position is the number of cumulative sums below the number.
        below = convert_to(drawn[..., None] > broadcast_to_shape(sums, (*shape, *aval_of(sums).shape)), whole)
        numbers = convert_to(below.sum(-1), whole)
    else:
        noise = -draw_gumbel(key, shape=aval_of(p).shape, dtype=dtype, mode=mode) - lax.log(p)
        order = sort((noise, _make_indices(aval_of(p).shape[0])), 0, num_keys=1)[1]
        numbers = order[: math.prod(shape)].reshape(shape)
    return take(a[0], numbers, axis) if a else numbers


def choice(
    key: ArrayLike, a: ArrayLike, shape: ShapeLike = (), replace: bool = True, p: ArrayLike | None = None,
    axis: int = 0, mode: object = None
) -> Array:
    """Draw a sample of the integers below a number, or of the slices of an array.

    Args:
        key: a random key, typed or legacy.
        a: an integer, for ``arange(a)``, or an array.
        shape: the shape of the result.
        replace: whether a slice may be drawn more than once.
        p: the probabilities of the slices; None for equal ones.
        axis: the axis of the slices.
        mode: "low", "high" or "highest", as for `gumbel`; None for the setting's.

    Returns:
        An array of `shape` whose elements are slices of `a`.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, the sample is larger than the population without `replace`, or `p` does
            not fit.

    Example:
        >>> random.choice(random.key(0), jnp.array([5, 6, 7]), (2,))
        Array([6, 5], dtype=int32)

    Reference:
        Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2: inversion.
    """
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"choice: the argument shape must be a sequence, got {abbreviate(shape)}")
    shape = canonical_shape(shape)
    check_key(key)
    own = get_parameter_shape("a", a)
    axis = canonical_axis(axis, max(len(own), 1))
    count, array = (own[axis], (a,)) if own else (_to_int(a), ())
    drawn = math.prod(shape)
    if count <= 0 < drawn:
        raise ValueError(f"choice: a must be greater than 0 unless no samples are taken, got {count}")
    if not replace and drawn > count:
        raise ValueError(
            f"choice: Cannot take a larger sample (size {drawn}) than population (size {count}) when 'replace=False'"
        )
    if p is not None:
        probabilities = get_parameter_shape("p", p)
        if probabilities != (count,):
            raise ValueError(
                "choice: p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                f"{probabilities} and a.shape[axis] is {count}."
            )
        # Only a sample without replacement takes Gumbel numbers.
        mode = "" if replace else choose_gumbel_mode(mode)
        return _draw_by_probability(key, p, *array, axis=axis, shape=shape, replace=bool(replace), mode=mode)
    if not replace:
        return _draw_without_replacement(key, *array, count=count, axis=axis, shape=shape)
    if own:
        return _draw_elements(key, a, axis=axis, shape=shape)
    return _draw_numbers(key, count=largest(count, 0), shape=shape)


def _to_int(a: Any) -> int:
    if isinstance(a, Tracer):
        raise explain.concretization(a, "random.choice")
    return a if is_symbolic(a) else int(a)


@sampler
def _categorical(
    key: Array, logits: ArrayLike, *, axis: int, prefix: tuple[int, ...], batch: tuple[int, ...], replace: bool,
    mode: str,
) -> Array:
    index_dtype = dtypes.default_int(config.enable_x64.value)
    dtype, count = aval_of(logits).dtype, aval_of(logits).shape[axis]
    if replace:
        whole = (*prefix, *batch[:axis], count, *batch[axis:])
        noisy = lax.add(draw_gumbel(key, shape=whole, dtype=dtype, mode=mode), broadcast_to_shape(logits, whole))
        return argmax(noisy, axis + len(prefix), index_dtype)
    noisy = lax.add(logits, draw_gumbel(key, shape=aval_of(logits).shape, dtype=dtype, mode=mode))
    best = convert_to(top_k(noisy, math.prod(prefix), axis=axis)[1], index_dtype)
    return move_axis(best, axis, 0).reshape((*prefix, *batch))


def categorical(
    key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: ShapeLike | None = None, replace: bool = True,
    mode: object = None, *, out_sharding: object = None,
) -> Array:
    """Draw indices along an axis with probabilities proportional to ``exp(logits)``.

    Args:
        key: a random key, typed or legacy.
        logits: an array of real numbers, the logarithms of probabilities up to a constant.
        axis: the axis of the categories.
        shape: the shape of the result; None for the shape of `logits` without `axis`.
        replace: whether a category may be drawn more than once.
        mode: "low", "high" or "highest", as for `gumbel`; None for the setting's.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of integers.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, or `logits` do not broadcast to `shape`.
        IndexError: there is no such axis.

    Example:
        >>> random.categorical(random.key(0), jnp.log(jnp.array([0.1, 0.9])), shape=(4,))
        Array([1, 1, 1, 1], dtype=int32)

    Reference:
        Maddison, Tarlow and Minka, "A* sampling" (2014): the largest of logits with Gumbel noise.
    """
    if out_sharding is not None:
        return with_out_sharding(categorical, out_sharding, key, logits, axis, shape, replace, mode)
    mode = choose_gumbel_mode(mode)
    check_key(key)
    own = get_parameter_shape("logits", logits)
    if not -len(own) <= axis < len(own):
        raise IndexError(f"categorical: axis {axis} is out of bounds for logits of shape {own}")
    axis = canonical_axis(axis, len(own))
    to_float_dtype(aval_of(logits).dtype)
    batch = own[:axis] + own[axis + 1 :]
    wanted = batch if shape is None else canonical_shape(shape)
    if broadcast_parameters({"shape": wanted, "logits without the axis": batch}) != wanted:
        raise ValueError(f"categorical: logits without axis {axis} of shape {batch} do not broadcast to {wanted}")
    if not own[axis]:
        raise ValueError(f"categorical: there is nothing to choose from along axis {axis} of logits of shape {own}")
    split = len(wanted) - len(batch)
    prefix = wanted[:split]
    if not replace and math.prod(prefix) > own[axis]:
        raise ValueError(
            f"categorical: Number of samples without replacement ({math.prod(prefix)}) cannot exceed number of "
            f"categories ({own[axis]})."
        )
    return _categorical(key, logits, axis=axis, prefix=prefix, batch=wanted[split:], replace=bool(replace), mode=mode)
