"""Random keys, made from seeds and from other keys: typed keys, and the legacy form, arrays of uint32."""

from __future__ import annotations

from typing import Any, NewType

import numpy as np

from xtrace._src.algebra.vector_space import canonical_shape, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like, not_an_array, short_repr
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.dtypes import StoredDType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.settings import config
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.random.keys import (
    Generator,
    check_words,
    choose_generator,
    generators,
    is_key,
    make_keys_on_host,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)
from xtrace._src.runtime.transfer import to_constant

# For annotations: type checkers tell keys from other arrays; at run time it returns its argument.
Key = NewType("Key", Array)
Key.__module__ = "xtrace.random"
Key.__doc__ = """The type of typed random keys, for annotations; called, it returns its argument.

Args:
    x: an array of random keys.

Returns:
    `x`.

Example:
    >>> random.Key(random.key(0)).shape
    ()
"""


def find_generator(spec: object) -> Generator:
    """Return the generator with the name or key dtype `spec`; None stands for the setting's generator."""
    if spec is None:
        return generators[config.default_prng_impl.value]
    if isinstance(spec, Generator):
        return spec
    if isinstance(spec, StoredDType) and spec.type is dtypes.prng_key:
        return choose_generator(spec)
    if isinstance(spec, str):
        generator = generators.get(spec)
        if generator is None:
            raise ValueError(
                f"unrecognized PRNG implementation {abbreviate(spec)}; the generators are {', '.join(generators)}"
            )
        return generator
    raise TypeError(
        f"unrecognized type {type(spec)} for a PRNG implementation: give one of the names {', '.join(generators)}, or "
        "the dtype of a random key"
    )


def _choose_generator(impl: object, dtype: object) -> Generator:
    if impl is not None and dtype is not None:
        raise ValueError(
            f"{called_function()}: impl ({abbreviate(impl)}) and dtype ({abbreviate(dtype)}) cannot both be given; "
            "each names the generator"
        )
    return find_generator(impl if dtype is None else dtype)


def seed_keys(seed: ArrayLike, impl: Generator, several: bool = False) -> Array:
    """Return the typed key for an integer seed; with `several`, also keys for an array of seeds."""
    aval = getattr(seed, "aval", None)
    if isinstance(seed, int) and not isinstance(seed, np.generic):
        # Converted to int64 as in NumPy, then wrapped around to the default integer type.
        value = np.int64(seed + (config.random_seed_offset.value or 0))
        seed = value if config.enable_x64.value else value.astype(np.int32)
        if current_trace.get() is base_trace and not impl.is_users:
            return make_keys_on_host(seed, impl)
        return random_seed.bind_positional((seed,), (impl,))
    if aval is None:
        if isinstance(seed, (list, tuple)):
            seed = np.asarray(seed)
        if not is_array_like(seed):
            raise TypeError(f"{called_function()}: the seed must be an integer: {not_an_array(seed)}")
        aval = aval_of(seed)
    if is_key(aval):
        raise TypeError(
            f"{called_function()} accepts a scalar seed, but was given a random key; split or fold_in make new keys"
        )
    if aval.shape and not several:
        raise TypeError(
            f"{called_function()} accepts a scalar seed, but was given an array of shape {aval.shape}. Use vmap for "
            "batching"
        )
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_boolean(aval.dtype)):
        raise TypeError(f"{called_function()}: the seed must be an integer; got {aval.str_short(short_dtypes=False)}")
    seed = convert_to(seed, dtypes.int32) if dtypes.is_boolean(aval.dtype) else seed
    offset = config.random_seed_offset.value
    if offset:
        aval = aval_of(seed)
        seed = elementwise.add(seed, Literal(int(np.int64(offset).astype(aval.dtype)), ShapedArray((), aval.dtype)))
    return random_seed.bind_positional((seed,), (impl,))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Return the random key for a seed.

    Args:
        seed: an integer, or an array of shape ().
        impl: the generator: a name, such as "threefry2x32" or "rbg", or one made with `xtrace.extend.random`;
            None for the setting's.
        dtype: a dtype of keys, instead of `impl`.

    Returns:
        A typed key: an array of shape () and a dtype such as ``key<fry>``.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` has axes, or the generator is unknown.

    Example:
        >>> random.key(0)
        Array((), dtype=key<fry>) overlaying:
        [0 0]

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    return seed_keys(seed, _choose_generator(impl, dtype))


def PRNGKey(seed: ArrayLike, *, impl: object = None) -> Array:
    """Return the random key for a seed in the legacy form, an array of words.

    Args:
        seed: an integer, or an array of shape ().
        impl: the generator: a name, such as "threefry2x32" or "rbg", or one made with `xtrace.extend.random`;
            None for the setting's.

    Returns:
        An array of uint32, of two or four words.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` has axes, or the generator is unknown.

    Example:
        >>> random.PRNGKey(0)
        Array([0, 0], dtype=uint32)

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    key = seed_keys(seed, find_generator(impl))
    return key if config.enable_custom_prng.value else random_unwrap.bind_positional((key,))


def key_dtype(impl_spec: object = None) -> StoredDType:
    """Return the dtype of the keys of a generator.

    Args:
        impl_spec: the name of the generator, or the generator; None for the setting's.

    Returns:
        An extended dtype.

    Raises:
        ValueError: the generator is unknown.

    Example:
        >>> random.key_dtype()
        key<fry>

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    return find_generator(impl_spec).dtype


def _find_key_type(keys: ArrayLike) -> ShapedArray:
    """Return the type of keys in either form; TypeError for anything else."""
    aval = getattr(keys, "aval", None)
    if aval is None:
        if not isinstance(keys, (np.ndarray, np.generic)):
            raise TypeError(
                f"{called_function()}: invalid PRNG key {short_repr(keys)} of {type(keys)}: make one with "
                "xtrace.random.key(seed)"
            )
        aval = aval_of(keys)
    if not is_key(aval):
        try:
            check_words(aval, find_generator(None))
        except TypeError as error:
            raise TypeError(
                f"{called_function()}: invalid PRNG key: {error}. Make one with xtrace.random.key(seed)"
            ) from None
        if config.legacy_prng_key.value != "allow":
            _report_legacy_key()
    return aval


def needs_check(key: object = None, *_: object) -> bool:
    """Return whether no call may skip the checks of the key: it is a number, or each use of a legacy key warns."""
    return isinstance(key, (int, float, complex)) or config.legacy_prng_key.value == "warn"


def _report_legacy_key() -> None:
    words = (
        f"{called_function()} was given a legacy key, an array of uint32; make keys with xtrace.random.key(seed), "
        'or convert them with xtrace.random.wrap_key_data(key). The setting jax_legacy_prng_key="allow" permits legacy '
        "keys"
    )
    if config.legacy_prng_key.value == "error":
        raise ValueError(words)
    warn_user(words)


def check_key(key: ArrayLike) -> Any:
    """Return `key`, one key in either form; ValueError for several keys, TypeError for anything else."""
    aval = _find_key_type(key)
    if aval.ndim != (0 if is_key(aval) else 1):
        raise ValueError(
            f"{called_function()} accepts a single key, but was given a key array of shape {aval.shape} != (). Use "
            "vmap for batching."
        )
    return key


def to_typed(key: Any) -> Array:
    """Return keys in either form as typed keys."""
    return key if is_key(aval_of(key)) else random_wrap.bind_positional((key,), (find_generator(None),))


def _match_form(key: Array, new_key: Array) -> Array:
    """Convert typed keys to the form of `key`, unless the settings ask for typed keys."""
    typed = is_key(aval_of(key)) or config.enable_custom_prng.value
    return new_key if typed else random_unwrap.bind_positional((new_key,))


@inline_jit
def _split(key: Array, *, shape: tuple[int, ...]) -> Array:
    return _match_form(key, random_split.bind_positional((to_typed(key),), (shape,)))


def split(key: ArrayLike, num: Any = 2) -> Array:
    """Return new keys derived from a key, which must not be used again.

    Args:
        key: a random key.
        num: the number of new keys, or their shape.

    Returns:
        Random keys of the shape `num`.

    Raises:
        TypeError: `key` is not a random key, or `num` is not a shape.
        ValueError: `key` holds several keys.

    Example:
        >>> first, second = random.split(random.key(0))
        >>> random.normal(first), random.normal(second)
        (Array(1.0040143, dtype=float32), Array(-2.4424558, dtype=float32))

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    shape = canonical_shape(num if isinstance(num, (tuple, list)) else (to_integer("num", num),))
    return _split(check_key(key), shape=shape)


@inline_jit
def _fold_in(key: Any, data: Any) -> Array:
    return _match_form(key, random_fold_in.bind_positional((to_typed(key), convert_to(data, dtypes.uint32))))


def fold_in(key: ArrayLike, data: Any) -> Array:
    """Return a new key derived from a key and a number, such as the step of a loop.

    Args:
        key: a random key.
        data: an integer, or an array of shape ().

    Returns:
        A random key.

    Raises:
        TypeError: `key` is not a random key, or `data` has axes or is not an integer.
        ValueError: `key` holds several keys.

    Example:
        >>> random.fold_in(random.key(0), 3)
        Array((), dtype=key<fry>) overlaying:
        [2467461003 3840466878]

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    check_key(key)
    if type(data) in (int, bool):
        data = np.uint32(data)
    elif not is_array_like(data):
        raise TypeError(f"fold_in: data: {not_an_array(data)}")
    elif aval_of(data).shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {aval_of(data).shape}. Use vmap for batching."
        )
    return _fold_in(key, data)


def key_data(keys: ArrayLike) -> Array:
    """Return the words of random keys.

    Args:
        keys: random keys; legacy keys are returned unchanged.

    Returns:
        An array of uint32 with a further last axis for the words.

    Raises:
        TypeError: `keys` is not an array of keys.

    Example:
        >>> random.key_data(random.key(1))
        Array([0, 1], dtype=uint32)

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    if is_key(_find_key_type(keys)):
        return random_unwrap.bind_positional((keys,))
    return keys if isinstance(keys, Array) else to_constant(keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: object = None, dtype: DTypeLike | None = None) -> Array:
    """Return typed keys of given words.

    Args:
        key_bits_array: an array of uint32 whose last axis holds the words of a key.
        impl: the generator: a name, such as "threefry2x32" or "rbg", or one made with `xtrace.extend.random`;
            None for the setting's.
        dtype: a dtype of keys, instead of `impl`.

    Returns:
        Random keys, of the shape of the array without its last axis.

    Raises:
        TypeError: the dtype is not uint32, or the last axis does not fit the generator.

    Example:
        >>> random.wrap_key_data(jnp.array([0, 1], "uint32"))
        Array((), dtype=key<fry>) overlaying:
        [0 1]

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    generator = _choose_generator(impl, dtype)
    aval = getattr(key_bits_array, "aval", None) or aval_of(key_bits_array)
    try:
        check_words(aval, generator)
    except TypeError as error:
        raise TypeError(f"wrap_key_data: invalid PRNG key data: {error}") from None
    return random_wrap.bind_positional((key_bits_array,), (generator,))


def key_impl(keys: ArrayLike) -> Any:
    """Return the name of the generator of keys.

    Args:
        keys: random keys; legacy keys belong to the setting's generator.

    Returns:
        A string; for a generator of a user the generator itself, which functions accept instead of a name.

    Raises:
        TypeError: `keys` is not an array of keys.

    Example:
        >>> random.key_impl(random.key(0))
        'threefry2x32'

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    aval = _find_key_type(keys)
    generator = choose_generator(aval.dtype) if is_key(aval) else find_generator(None)
    return generator if generator.is_users else generator.name


def clone(key: ArrayLike) -> Array:
    """Return a copy of keys, which the check of key reuse counts as new keys.

    Args:
        key: random keys.

    Returns:
        Random keys of the shape and dtype of `key`.

    Raises:
        TypeError: `key` is not an array.

    Example:
        >>> random.clone(random.key(0))
        Array((), dtype=key<fry>) overlaying:
        [0 0]

    Reference:
        Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    if isinstance(key, Array) and is_key(aval_of(key)):
        return random_clone.bind_positional((key,))
    return key if isinstance(key, Array) else to_constant(key)
