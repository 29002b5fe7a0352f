"""Generators of random bits, built-in and user-defined (``jax.extend.random``)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like, not_an_array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.mesh import size_tuple
from xtrace._src.ops.random.keys import Generator, generators
from xtrace._src.ops.random.threefry import encrypt_words
from xtrace._src.ops.random.threefry import threefry2x32 as threefry2x32_p
from xtrace.random.keys import find_generator, seed_keys

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl", "unsafe_rbg_prng_impl",
]

threefry_prng_impl, rbg_prng_impl = generators["threefry2x32"], generators["rbg"]
unsafe_rbg_prng_impl = generators["unsafe_rbg"]

# User-defined generators by their definition. Equal definitions give the same object.
_defined: weakref.WeakValueDictionary[Any, Generator] = weakref.WeakValueDictionary()


def define_prng_impl(
    *, key_shape: tuple[int, ...], seed: Callable[[Array], Array], split: Callable[[Array, tuple[int, ...]], Array],
    random_bits: Callable[[Array, int, tuple[int, ...]], Array], fold_in: Callable[[Array, int], Array],
    name: str = "<unnamed>", tag: str = "?",
) -> Any:
    """Define a generator of random bits by functions of one key.

    Functions such as `xtrace.random.key` and `xtrace.random.wrap_key_data` take it as `impl`. Its keys work in all
    functions of `xtrace.random`, in arrays of any shape, and under all transformations. The functions are traced.

    Args:
        key_shape: the shape of a key, which is an array of uint32.
        seed: ``seed(number)`` returns the key for an integer.
        split: ``split(key, shape)`` returns an array of new keys, whose shape is `shape` followed by `key_shape`.
        random_bits: ``random_bits(key, bit_width, shape)`` returns an array of `shape` of unsigned integers with 8, 16,
            32 or 64 bits.
        fold_in: ``fold_in(key, number)`` returns a new key made of a key and a number of dtype uint32.
        name: the name for messages.
        tag: the name in jaxprs and in the dtype of the keys.

    Returns:
        A hashable object; the same functions, names and shape give the same object.

    Raises:
        TypeError: an argument is not a function, or `key_shape` is not a tuple of integers; or, at the use of a key, a
            function returns an array of another type.
        ValueError: `key_shape` has no axes.

    Example:
        >>> from xtrace.extend import random as generators
        >>> counter = generators.define_prng_impl(
        ...     key_shape=(1,), seed=lambda number: jnp.array([number], jnp.uint32),
        ...     split=lambda key, shape: key + jnp.arange(np.prod(shape), dtype=jnp.uint32).reshape(*shape, 1),
        ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0]).astype(f"uint{width}"),
        ...     fold_in=lambda key, number: key + number, name="counter", tag="count")
        >>> random.split(random.key(7, impl=counter))
        Array((2,), dtype=key<count>) overlaying:
        [[7]
         [8]]
    """
    for part, function in (("seed", seed), ("split", split), ("random_bits", random_bits), ("fold_in", fold_in)):
        if not callable(function):
            raise TypeError(f"define_prng_impl: {part} must be a function, got {abbreviate(function)}")
    shape = size_tuple("define_prng_impl", "key_shape", key_shape)
    if not shape:
        raise ValueError("define_prng_impl: key_shape must have an axis: write (1,) for keys of one word")
    return _define(shape, seed, split, random_bits, fold_in, str(name), str(tag))


def _define(
    key_shape: tuple[int, ...], seed: Any, split: Any, random_bits: Any, fold_in: Any, name: str, tag: str
) -> Generator:
    parts = (key_shape, seed, split, random_bits, fold_in, name, tag)
    known = _defined.get(parts)
    if known is not None:
        return known
    rank = len(key_shape)

    def check_part(part: str, result: Any, wanted: tuple[int, ...], dtype: Any = dtypes.uint32) -> Any:
        if not is_array_like(result):
            raise TypeError(f"{part} of the random generator {name}: {not_an_array(result)}")
        aval = aval_of(result)
        if aval.shape != wanted or aval.dtype != dtype:
            types = [a.str_short(short_dtypes=False) for a in (ShapedArray(wanted, dtype), aval)]
            raise TypeError(
                f"{part} of the random generator {name} must return an array {types[0]}, and returned {types[1]}"
            )
        return result

    def map_over_keys(function: Callable[..., Any], keys: Any, axes: Any = 0) -> Callable[..., Any]:
        return _map_over_axes(function, aval_of(keys).ndim - rank, axes)

    def seed_all(numbers: Any) -> Any:
        return _map_over_axes(lambda n: check_part("seed", seed(n), key_shape), aval_of(numbers).ndim)(numbers)

    def split_all(keys: Any, shape: tuple[int, ...]) -> Any:
        return map_over_keys(lambda k: check_part("split", split(k, shape), (*shape, *key_shape)), keys)(keys)

    def draw_all(keys: Any, width: int, shape: tuple[int, ...]) -> Any:
        dtype = dtypes.unsigned_dtypes[width]
        one = map_over_keys(lambda k: check_part("random_bits", random_bits(k, width, shape), shape, dtype), keys)
        return one(keys)

    def fold_all(keys: Any, data: Any) -> Any:
        axes = (0, 0 if aval_of(data).ndim else None)
        return map_over_keys(lambda k, n: check_part("fold_in", fold_in(k, n), key_shape), keys, axes)(keys, data)

    generator = Generator(name, tag, key_shape, seed_all, split_all, draw_all, fold_all, (_define, parts))
    return _defined.setdefault(parts, generator)


def _map_over_axes(function: Callable[..., Any], count: int, axes: Any = 0) -> Callable[..., Any]:
    """Map a function of one key over `count` axes of keys."""
    for _ in range(count):
        function = vmap(function, axes)
    return function


def random_seed(seeds: ArrayLike, impl: Any) -> Array:
    """Return the random keys for seeds.

    Args:
        seeds: an integer, or an array of integers.
        impl: a generator, such as `threefry_prng_impl`, a result of `define_prng_impl`, or a name such as ``"rbg"``.

    Returns:
        Typed keys of the shape of the seeds.

    Raises:
        TypeError: the seeds are not integers, or `impl` is not a generator.
        ValueError: there is no generator with this name.

    Example:
        >>> from xtrace.extend.random import random_seed, threefry_prng_impl
        >>> random_seed(jnp.arange(2), threefry_prng_impl)
        Array((2,), dtype=key<fry>) overlaying:
        [[0 0]
         [0 1]]
    """
    return seed_keys(seeds, find_generator(impl), several=True)


def seed_with_impl(impl: Any, seed: ArrayLike) -> Array:
    """Return the random keys for seeds: `random_seed` with its arguments in another order.

    Args:
        impl: a generator, such as `threefry_prng_impl`, or a result of `define_prng_impl`.
        seed: an integer, or an array of integers.

    Returns:
        Typed keys of the shape of the seeds.

    Raises:
        TypeError: the seeds are not integers, or `impl` is not a generator.

    Example:
        >>> from xtrace.extend.random import rbg_prng_impl, seed_with_impl
        >>> seed_with_impl(rbg_prng_impl, 5)
        Array((), dtype=key<rbg>) overlaying:
        [0 5 0 5]
    """
    return seed_keys(seed, find_generator(impl), several=True)


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Encrypt words by Threefry-2x32 with 20 rounds.

    Word i of the first half, in row-major order, and word i of the second half form a block.

    Args:
        keypair: the key: two scalars of dtype uint32, or an array of shape (2,).
        count: an array of dtype uint32; a word 0 is appended to an odd number of words.

    Returns:
        An array of dtype uint32 with the shape of `count`.

    Raises:
        TypeError: an operand is not an array of dtype uint32.
        ValueError: the key does not have two words.

    Example:
        >>> xtrace.extend.random.threefry_2x32(jnp.zeros(2, jnp.uint32), jnp.zeros(2, jnp.uint32))
        Array([1797259609, 2579123966], dtype=uint32)

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    words: Sequence[Any] = list(keypair) if isinstance(keypair, (tuple, list)) or aval_of(keypair).shape else [keypair]
    if len(words) != 2:
        raise ValueError(f"threefry_2x32: keypair must be two words, got {len(words)}")
    for value in (*words, count):
        if not is_array_like(value):
            raise TypeError(f"threefry_2x32: {not_an_array(value)}")
        if aval_of(value).dtype != dtypes.uint32:
            raise TypeError(
                "threefry_2x32: the key and count must be of dtype uint32, got "
                f"{', '.join(aval_of(x).dtype.name for x in (*words, count))}"
            )
    return _threefry_2x32(words[0], words[1], count)


@inline_jit
def _threefry_2x32(key0: Array, key1: Array, words: Array) -> Array:
    return encrypt_words(key0, key1, words)

_make_public(globals(), __all__)
