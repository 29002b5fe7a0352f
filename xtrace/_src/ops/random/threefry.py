"""Threefry-2x32, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3" (SC11), section 3.3, with 20 rounds; and the bits, keys and folded keys derived from it.

A key is two 32-bit words, the last axis of the arrays here; the axes before it are axes of the array of keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.kinds import broadcast_shapes
from xtrace._src.algebra.vector_space import ZERO_DERIVATIVE, broadcast_in_dim, convert_to, reshape, with_axis
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.sharding_rules import join
from xtrace._src.core.sizes import is_known_to_exceed
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import broadcasted_iota, full
from xtrace._src.ops.arrays.slicing import index_in_dim, slice_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from xtrace._src.transforms.batch import MappedAxis

_WORD = ShapedArray((), dtypes.uint32)
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA


def _word(number: int) -> Literal:
    return Literal(number, _WORD)


def _add(x: Array, y: object) -> Array:
    return elementwise.add.bind_positional((x, y))


def _rotate_left(x: Array, count: int) -> Array:
    low = shift_right_logical.bind_positional((x, _word(32 - count)))
    return bitwise_or.bind_positional((shift_left.bind_positional((x, _word(count))), low))


def _encrypt_block(key0: Array, key1: Array, x0: Array, x1: Array) -> list[Any]:
    """Return the block (x0, x1) after 20 rounds; words of the key are added before the first and after each fourth."""
    xor = bitwise_xor
    schedule = [key0, key1, xor.bind_positional((xor.bind_positional((key0, key1)), _word(_PARITY)))]
    x0, x1 = _add(x0, key0), _add(x1, key1)
    for number in range(1, 6):
        for count in _ROTATIONS[(number - 1) % 2]:
            x0 = _add(x0, x1)
            x1 = xor.bind_positional((x0, _rotate_left(x1, count)))
        x0 = _add(x0, schedule[number % 3])
        x1 = _add(x1, _add(schedule[(number + 1) % 3], _word(number)))
    return [x0, x1]


def _split_of_both(name: str, operands: Any, result: Any, **_: object) -> Any:
    return [join(name, operands, r) for r in result]


def _abstract(*avals: ShapedArray) -> list[ShapedArray]:
    """Encrypt a block of two words by Threefry-2x32."""
    shape = broadcast_shapes("threefry2x32", [a.shape for a in avals])
    return [ShapedArray(shape, dtypes.uint32)] * 2


def _batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], list[int]]:
    # An unmapped operand gets an axis of size 1; a scalar needs none.
    moved = [
        mapped.place(x, i) if i is not None else with_axis(x, None, 1) if aval_of(x).ndim else x
        for x, i in zip(operands, axes, strict=True)
    ]
    ranks = [aval_of(x).ndim for x in moved]
    fitted = [
        reshape(x, aval_of(x).shape + (1,) * (max(ranks) - rank)) if rank else x
        for x, rank in zip(moved, ranks, strict=True)
    ]
    return threefry2x32.bind_positional(fitted), [0, 0]


# Keys and blocks are scalars, or arrays of one rank whose axes have equal sizes or size 1.
threefry2x32 = ListPrimitive(
    "threefry2x32", sharding=_split_of_both, abstract=_abstract, emit=lower_fun(_encrypt_block, call="threefry2x32"),
    jvp=ZERO_DERIVATIVE,
    batch=_batch,
    multiple_results=True,
)


def _get_words(keys: Array, trailing: int) -> list[Any]:
    """Return the two words of each key, with `trailing` axes of size 1 after the axes of the keys."""
    shape = aval_of(keys).shape[:-1]
    words = [index_in_dim(keys, i, -1, keepdims=False) for i in (0, 1)]
    return [reshape(x, shape + (1,) * trailing) if shape and trailing else x for x in words]


def _encrypt_blocks(keys: Array, x0: Any, x1: Array) -> list[Any]:
    """Return the encrypted blocks for each key: the axes of the keys, then those of the blocks."""
    shape, leading = aval_of(x1).shape, aval_of(keys).ndim - 1
    key0, key1 = _get_words(keys, len(shape))
    if leading and shape:
        x0, x1 = [reshape(x, (1,) * leading + aval_of(x).shape) if aval_of(x).shape else x for x in (x0, x1)]
    return threefry2x32.bind_positional((key0, key1, x0, x1))


def _encrypt_counters(keys: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the encryption of the 64-bit counters 0, 1, 2, …, in row-major order over `shape`."""
    if not is_known_to_exceed(math.prod(shape), 2**32):
        return _encrypt_blocks(keys, _word(0), _count_places(shape, dtypes.uint32))
    wide = _count_places(shape, dtypes.uint64)
    high = shift_right_logical.bind_positional((wide, scalar_literal(32, dtypes.uint64)))
    return _encrypt_blocks(keys, convert_to(high, dtypes.uint32), convert_to(wide, dtypes.uint32))


def _count_places(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return 0, 1, 2, … in row-major order over `shape`."""
    if len(shape) < 2 or not all(type(n) is int for n in shape):
        return reshape(broadcasted_iota.bind_positional((), (dtype, (math.prod(shape),), 0, None)), shape)
    # A sum over the axes: XLA partitions it along each of them, where it would partition a reshape along the first.
    total = None
    for axis, size in enumerate(shape):
        if size > 1:
            place = broadcasted_iota.bind_positional((), (dtype, shape, axis, None))
            step = scalar_literal(math.prod(shape[axis + 1 :]), dtype)
            place = elementwise.mul.bind_positional((place, step), (None,))
            total = place if total is None else _add(total, place)
    return full(shape, scalar_literal(0, dtype)) if total is None else total


def encrypt_words(key0: Any, key1: Any, words: Any) -> Array:
    """Return words encrypted by a key of two words; word i of the first half and word i of the second form a block."""
    shape = aval_of(words).shape
    count = math.prod(shape)
    flat = reshape(words, (count,))
    if count % 2:
        flat = concatenate([flat, full((1,), _word(0))], 0)
    half = (count + 1) // 2
    blocks = [slice_in_dim(flat, 0, half), slice_in_dim(flat, half, 2 * half)]
    joined = concatenate(threefry2x32.bind_positional((key0, key1, *blocks)), 0)
    return reshape(slice_in_dim(joined, 0, count), shape)


def _encrypt_halves(keys: Array, count: int) -> Array:
    """Return the encryption of the words 0, 1, …, count - 1; word i of each half form a block."""
    half = -(-count // 2)
    numbers = broadcasted_iota.bind_positional((), (dtypes.uint32, (count,), 0, None))
    if count % 2:
        numbers = concatenate([numbers, full((1,), _word(0))], 0)
    words = _encrypt_blocks(keys, slice_in_dim(numbers, 0, half), slice_in_dim(numbers, half, 2 * half))
    joined = concatenate(words, -1 % aval_of(words[0]).ndim)
    return slice_in_dim(joined, 0, count, axis=-1) if count % 2 else joined


def _join_words(high: Array, low: Array) -> Array:
    """Return 64-bit words from their upper and lower halves."""
    high, low = convert_to(high, dtypes.uint64), convert_to(low, dtypes.uint64)
    high = shift_left.bind_positional((high, scalar_literal(32, dtypes.uint64)))
    return bitwise_or.bind_positional((high, low))




def threefry_bits(keys: Any, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Return random unsigned integers of `bit_width` bits, of `shape` for each key."""
    if not math.prod(shape):
        return full((*aval_of(keys).shape[:-1], *shape), scalar_literal(0, dtypes.unsigned_dtypes[bit_width]))
    if config.threefry_partitionable.value:
        high, low = _encrypt_counters(keys, shape)
        if bit_width == 64:
            return _join_words(high, low)
        return convert_to(bitwise_xor.bind_positional((high, low)), dtypes.unsigned_dtypes[bit_width])
    leading, size = aval_of(keys).shape[:-1], math.prod(shape)
    words = _encrypt_halves(keys, -(-bit_width * size // 32))
    if bit_width == 64:
        words = _join_words(*[slice_in_dim(words, i * size, (i + 1) * size, axis=-1) for i in (0, 1)])
    elif bit_width < 32:
        words = slice_in_dim(_split_words(words, bit_width), 0, size, axis=-1)
    return reshape(words, (*leading, *shape))


def _split_words(words: Array, bit_width: int) -> Array:
    """Return the words of the last axis split into numbers of `bit_width` bits, lowest bits first."""
    shape, count = aval_of(words).shape, 32 // bit_width
    split = (*shape, count)
    repeated = broadcast_in_dim(words, split, range(len(shape)))
    positions = broadcasted_iota.bind_positional((), (dtypes.uint32, split, len(shape), None))
    shifts = elementwise.mul.bind_positional((positions, _word(bit_width)), (None,))
    shifted = shift_right_logical.bind_positional((repeated, shifts))
    return reshape(convert_to(shifted, dtypes.unsigned_dtypes[bit_width]), (*shape[:-1], shape[-1] * count))


def threefry_split(keys: Any, shape: tuple[int, ...]) -> Array:
    """Return new keys, of `shape` for each key."""
    leading = aval_of(keys).shape[:-1]
    if not math.prod(shape):
        return full((*leading, *shape, 2), _word(0))
    if config.threefry_partitionable.value:
        return _pair_words(_encrypt_counters(keys, shape))
    return reshape(_encrypt_halves(keys, 2 * math.prod(shape)), (*leading, *shape, 2))


def _pair_words(words: Sequence[Any]) -> Array:
    """Return keys from their two words."""
    shape = aval_of(words[0]).shape
    return concatenate([reshape(x, (*shape, 1)) for x in words], len(shape))


def threefry_fold_in(keys: Any, data: Any) -> Array:
    """Return a new key for each key and number; `data` is uint32, of the keys' shape or a scalar."""
    return _pair_words(threefry2x32.bind_positional((*_get_words(keys, 0), _word(0), data)))
