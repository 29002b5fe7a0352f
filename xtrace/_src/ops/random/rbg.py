"""The generators ``rbg`` and ``unsafe_rbg``, with bits from `rng_bit_generator` and keys of four 32-bit words.

``rbg`` derives new keys by Threefry from each half of the key; ``unsafe_rbg`` takes every tenth key from XLA's bits.
The bits for several keys are all drawn with the first key, as under `vmap` in JAX.
"""

from __future__ import annotations

import math
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import broadcast_in_dim, reshape, transpose
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import scalar_literal
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import full
from xtrace._src.ops.arrays.slicing import index_in_dim, slice
from xtrace._src.ops.elementwise.comparisons import bitwise_xor
from xtrace._src.ops.random.threefry import threefry_fold_in, threefry_split

with late_modules(globals()):
    from xtrace._src.ops.random.xla_generators import RandomAlgorithm, rng_bit_generator

# `unsafe_rbg` draws this many keys for each key that it returns.
_SPACING = 10


def _first_key(keys: Array) -> Array:
    rank = aval_of(keys).ndim - 1
    return reshape(slice(keys, (0,) * (rank + 1), (1,) * rank + (4,)), (4,)) if rank else keys


def rbg_bits(keys: Any, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Return random unsigned integers of `bit_width` bits, of `shape` for each key."""
    whole, dtype = (*aval_of(keys).shape[:-1], *shape), dtypes.unsigned_dtypes[bit_width]
    if not math.prod(whole):
        return full(whole, scalar_literal(0, dtype))
    parameters = (whole, dtype, RandomAlgorithm.RNG_DEFAULT, None)
    return rng_bit_generator.bind_positional((_first_key(keys),), parameters)[1]


def _halves(keys: Array) -> Array:
    return reshape(keys, (*aval_of(keys).shape[:-1], 2, 2))


def rbg_split(keys: Any, shape: tuple[int, ...]) -> Array:
    """Return new keys, of `shape` for each key."""
    leading = aval_of(keys).ndim - 1
    subkeys = threefry_split(_halves(keys), shape)
    axes = (*range(leading), *range(leading + 1, leading + 1 + len(shape)), leading, leading + 1 + len(shape))
    return reshape(transpose(subkeys, axes), (*aval_of(keys).shape[:-1], *shape, 4))


def rbg_fold_in(keys: Any, data: Any) -> Array:
    """Return a new key for each key and number; `data` is uint32, of the keys' shape or a scalar."""
    halves, own = _halves(keys), aval_of(data).shape
    if own:
        data = broadcast_in_dim(data, (*own, 2), range(len(own)))
    return reshape(threefry_fold_in(halves, data), aval_of(keys).shape)


def unsafe_rbg_split(keys: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return new keys, of `shape` for each key."""
    leading, count = aval_of(keys).shape[:-1], math.prod(shape)
    drawn = rbg_bits(keys, 32, (_SPACING * count, 4))
    rank = len(leading)
    kept = slice(drawn, (0,) * (rank + 2), (*leading, _SPACING * count, 4), (*(1,) * rank, _SPACING, 1))
    return reshape(kept, (*leading, *shape, 4))


def unsafe_rbg_fold_in(keys: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key for each key and number; `data` is uint32, of the keys' shape or a scalar."""
    own = aval_of(data).shape
    words = [full((*own, 1), scalar_literal(0, dtypes.uint32)), reshape(data, (*own, 1))] * 2
    drawn = rbg_bits(concatenate(words, len(own)), 32, (_SPACING, 4))
    chosen, shape = index_in_dim(drawn, _SPACING - 1, -2, keepdims=False), aval_of(keys).shape
    chosen = broadcast_in_dim(chosen, shape, range(len(shape) - 1 - len(own), len(shape)))
    return bitwise_xor.bind_positional((keys, chosen))
