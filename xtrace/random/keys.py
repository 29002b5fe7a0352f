"""Making random keys and new ones from them: typed keys, and the legacy form, arrays of uint32."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_shape, converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core import config, dtypes
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like, not_an_array, short_repr
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.dtypes import ExtendedDType
from xtrace._src.core.ir import Literal
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops import elementwise
from xtrace._src.ops.random.keys import (
    Generator,
    check_words,
    generator_of,
    generators,
    is_key,
    keys_of,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)
from xtrace._src.runtime.transfer import to_constant

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]


def _generator(spec: Any) -> Generator:
    """Return the generator that `spec` means: its name, a key's dtype, or None for the setting's."""
    if spec is None:
        return generators[config.default_prng_impl.value]
    if isinstance(spec, Generator):
        return spec
    if isinstance(spec, ExtendedDType) and spec.type is dtypes.prng_key:
        return generator_of(spec)
    if isinstance(spec, str):
        found = generators.get(spec)
        if found is None:
            raise ValueError(
                f"unrecognized PRNG implementation {abbreviated(spec)}; the generators are {', '.join(generators)}"
            )
        return found
    raise TypeError(
        f"unrecognized type {type(spec)} for a PRNG implementation: give one of the names {', '.join(generators)}, or "
        "the dtype of a random key"
    )


def _chosen(function: str, impl: Any, dtype: Any) -> Generator:
    if impl is not None and dtype is not None:
        raise ValueError(
            f"{function}: impl ({abbreviated(impl)}) and dtype ({abbreviated(dtype)}) cannot both be given; they "
            "say the same"
        )
    return _generator(impl if dtype is None else dtype)


def _seeded(function: str, seed: ArrayLike, impl: Generator) -> Array:
    aval = getattr(seed, "aval", None)
    if isinstance(seed, int) and not isinstance(seed, np.generic):
        # As NumPy does, and then wrapped around to the default integer type.
        value = np.int64(seed + (config.random_seed_offset.value or 0))
        seed = value if config.enable_x64.value else value.astype(np.int32)
        if current_trace.get() is base_trace:
            return keys_of(seed, impl)
        return random_seed.bind_positional((seed,), (impl,))
    if aval is None:
        if isinstance(seed, (list, tuple)):
            seed = np.asarray(seed)
        if not is_array_like(seed):
            raise TypeError(f"{function}: the seed must be an integer: {not_an_array(seed)}")
        aval = aval_of(seed)
    if is_key(aval):
        raise TypeError(f"{function} accepts a scalar seed, but was given a random key; split or fold_in make new keys")
    if aval.shape:
        raise TypeError(
            f"{function} accepts a scalar seed, but was given an array of shape {aval.shape}. Use vmap for batching"
        )
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_boolean(aval.dtype)):
        raise TypeError(f"{function}: the seed must be an integer; got {aval.str_short(short_dtypes=False)}")
    seed = converted(seed, dtypes.int32) if dtypes.is_boolean(aval.dtype) else seed
    offset = config.random_seed_offset.value
    if offset:
        aval = aval_of(seed)
        seed = elementwise.add(seed, Literal(int(np.int64(offset).astype(aval.dtype)), ShapedArray((), aval.dtype)))
    return random_seed.bind_positional((seed,), (impl,))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Return the random key for an integer `seed`, an array of shape () and dtype ``key<...>``.

    `impl` names the generator, "threefry2x32", "rbg" or "unsafe_rbg", by default the one that the setting
    ``jax_default_prng_impl`` says; `dtype` gives it by the dtype of its keys instead. Python integers wrap around to
    the default integer type. TypeError for a seed that is no integer scalar, ValueError for an unknown generator.
    """
    return _seeded("key", seed, _chosen("key", impl, dtype))


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """Return the random key for an integer `seed` in the legacy form: an array of uint32, of two or four words.

    See `key`, which makes keys with a dtype of their own.
    """
    found = _seeded("PRNGKey", seed, _generator(impl))
    return found if config.enable_custom_prng.value else random_unwrap.bind_positional((found,))


def key_dtype(impl_spec: Any = None) -> ExtendedDType:
    """Return the dtype of the keys of a generator, by default of the one that the settings say."""
    return _generator(impl_spec).dtype


def _aval_of_keys(function: str, keys: Any) -> ShapedArray:
    """Return the type of keys in either form; TypeError for anything else."""
    aval = getattr(keys, "aval", None)
    if aval is None:
        if not isinstance(keys, (np.ndarray, np.generic)):
            raise TypeError(
                f"{function}: invalid PRNG key {short_repr(keys)} of {type(keys)}: make one with "
                "xtrace.random.key(seed)"
            )
        aval = aval_of(keys)
    if not is_key(aval):
        try:
            check_words(aval, _generator(None))
        except TypeError as error:
            raise TypeError(f"{function}: invalid PRNG key: {error}. Make one with xtrace.random.key(seed)") from None
        if config.legacy_prng_key.value != "allow":
            _object_to_legacy(function)
    return aval


def warns_of_legacy() -> bool:
    """Return whether each use of a legacy key is a warning, so that no call may skip its checks."""
    return bool(config.legacy_prng_key.value == "warn")


def _object_to_legacy(function: str) -> None:
    words = (
        f"{function} was given a legacy key, an array of uint32; make keys with xtrace.random.key(seed), or convert "
        'them with xtrace.random.wrap_key_data(key). The setting jax_legacy_prng_key="allow" permits legacy keys'
    )
    if config.legacy_prng_key.value == "error":
        raise ValueError(words)
    warn_user(words)


def check_key(function: str, key: ArrayLike) -> Any:
    """Return `key`, one key in either form; TypeError for what is no key, ValueError for several."""
    aval = _aval_of_keys(function, key)
    if aval.ndim != (0 if is_key(aval) else 1):
        raise ValueError(
            f"{function} accepts a single key, but was given a key array of shape {aval.shape} != (). Use vmap for "
            "batching."
        )
    return key


def as_typed(key: ArrayLike) -> Any:
    """Return keys in either form as typed ones."""
    return key if is_key(aval_of(key)) else random_wrap.bind_positional((key,), (_generator(None),))


def _in_form_of(key: Array, found: Array) -> Array:
    """Return typed keys in the form that `key` has, or typed where the settings say so of new keys."""
    typed = is_key(aval_of(key)) or config.enable_custom_prng.value
    return found if typed else random_unwrap.bind_positional((found,))


@inline_jit
def _split(key: Array, *, shape: tuple[int, ...]) -> Array:
    return _in_form_of(key, random_split.bind_positional((as_typed(key),), (shape,)))


def split(key: ArrayLike, num: Any = 2) -> Array:
    """Return `num` new keys made from `key`, which must not be used any more; `num` may be a shape.

    The result has the form of `key`, typed or uint32. TypeError for what is no key, ValueError for several.
    """
    shape = canonical_shape("split", num if isinstance(num, (tuple, list)) else (operator.index(num),))
    return _split(check_key("split", key), shape=shape)


@inline_jit
def _fold_in(key: Any, data: Any) -> Any:
    return _in_form_of(key, random_fold_in.bind_positional((as_typed(key), converted(data, dtypes.uint32))))


def fold_in(key: ArrayLike, data: Any) -> Any:
    """Return a new key made from `key` and the number `data`, such as a step of a loop.

    `data` becomes a uint32. OverflowError for a Python integer outside its range, TypeError for what is no scalar.
    """
    check_key("fold_in", key)
    if type(data) in (int, bool):
        data = np.uint32(data)
    elif not is_array_like(data):
        raise TypeError(f"fold_in: data: {not_an_array(data)}")
    elif aval_of(data).shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {aval_of(data).shape}. Use vmap for batching."
        )
    return _fold_in(key, data)


def key_data(keys: Any) -> Array:
    """Return the uint32 words behind random keys, along a new last axis; legacy keys are given back."""
    if is_key(_aval_of_keys("key_data", keys)):
        return random_unwrap.bind_positional((keys,))
    return keys if isinstance(keys, Array) else to_constant(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: DTypeLike | None = None) -> Any:
    """Return typed keys with the given words, the last axis of an array of uint32; see `key` for `impl` and `dtype`.

    TypeError for another dtype or a last axis of another size than the generator's keys have.
    """
    generator = _chosen("wrap_key_data", impl, dtype)
    aval = getattr(key_bits_array, "aval", None) or aval_of(key_bits_array)
    try:
        check_words(aval, generator)
    except TypeError as error:
        raise TypeError(f"wrap_key_data: invalid PRNG key data: {error}") from None
    return random_wrap.bind_positional((key_bits_array,), (generator,))


def key_impl(keys: Any) -> str:
    """Return the name of the generator that keys are for; of legacy keys, the one that the settings say."""
    aval = _aval_of_keys("key_impl", keys)
    return generator_of(aval.dtype).name if is_key(aval) else _generator(None).name


def clone(key: ArrayLike) -> Array:
    """Return the same keys, to be used once more on purpose where the use of keys is checked."""
    if isinstance(key, Array) and is_key(aval_of(key)):
        return random_clone.bind_positional((key,))
    return key if isinstance(key, Array) else to_constant(key)
