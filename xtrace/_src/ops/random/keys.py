"""Random keys, which are arrays of an extended dtype, and the primitives that derive keys and bits from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import (
    AXIS_FIRST,
    IN_PLACE,
    ZERO_DERIVATIVE,
    broadcast_in_dim,
    convert_to,
    reshape,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, physical_aval
from xtrace._src.core.dtypes import StoredDType
from xtrace._src.core.jaxprs.ir import scalar_literal
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.core.shardings.sharding_rules import append_axes, join
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.calls.lower_fun import emit_bitcast, lower_fun
from xtrace._src.ops.elementwise.comparisons import shift_right_logical
from xtrace._src.ops.random import rbg, threefry
from xtrace._src.runtime.arrays import ConcreteArray, new_array
from xtrace._src.runtime.transfer import array_from_host, in_layout, signature_on
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


class Generator:
    """A generator of random bits from keys, for ``random.key(seed, impl=generator)``.

    name: its public name. tag: its name in jaxprs. key_shape: the shape of a key, an array of 32-bit words. dtype: the
    dtype of its keys. Its functions are ``seed(seeds)``, ``split(keys, shape)``, ``random_bits(keys, bit_width,
    shape)`` and ``fold_in(keys, data)``; keys are the last axes of their operands and results.
    """

    __slots__ = (
        "name", "tag", "key_shape", "seed", "split", "random_bits", "fold_in", "dtype", "_reduced", "__weakref__",
    )

    def __init__(
        self, name: str, tag: str, key_shape: tuple[int, ...], seed: Callable[[Any], Array],
        split: Callable[[Any, tuple[int, ...]], Array], random_bits: Callable[[Any, int, tuple[int, ...]], Array],
        fold_in: Callable[[Any, Any], Array], reduced: tuple[Any, ...] | None = None,
    ) -> None:
        self.name, self.tag, self.key_shape, self.seed = name, tag, key_shape, seed
        self.split, self.random_bits, self.fold_in = split, random_bits, fold_in
        self._reduced = reduced
        kind: Any = dtypes.prng_key
        self.dtype = StoredDType(f"key<{tag}>", dtypes.uint32, key_shape, kind, self)

    @property
    def is_users(self) -> bool:
        """Whether a user defined the generator."""
        return self._reduced is not None

    def __repr__(self) -> str:
        return self.tag

    def __reduce__(self) -> Any:
        return self._reduced if self._reduced is not None else (_find_generator, (self.name,))


def _seed_words(seeds: Array, words: int) -> Array:
    low = convert_to(seeds, dtypes.uint32)
    high: Any = broadcast_in_dim(scalar_literal(0, dtypes.uint32), aval_of(seeds).shape, ())
    dtype = aval_of(seeds).dtype
    if dtypes.bit_width(dtype) == 64:
        shift = scalar_literal(32, dtype)
        high = convert_to(shift_right_logical.bind_positional((seeds, shift)), dtypes.uint32)
    shape = aval_of(seeds).shape
    pair = [reshape(x, (*shape, 1)) for x in (high, low)]
    return concatenate(pair * (words // 2), len(shape))


def _generator(name: str, tag: str, words: int, split: Any, random_bits: Any, fold_in: Any) -> Generator:
    return Generator(name, tag, (words,), lambda seeds: _seed_words(seeds, words), split, random_bits, fold_in)


_all = (
    _generator("threefry2x32", "fry", 2, threefry.threefry_split, threefry.threefry_bits, threefry.threefry_fold_in),
    _generator("rbg", "rbg", 4, rbg.rbg_split, rbg.rbg_bits, rbg.rbg_fold_in),
    _generator("unsafe_rbg", "urbg", 4, rbg.unsafe_rbg_split, rbg.rbg_bits, rbg.unsafe_rbg_fold_in),
)
generators: dict[str, Generator] = {g.name: g for g in _all}


def _find_generator(name: str) -> Generator:
    return generators[name]


def is_key(aval: ShapedArray) -> bool:
    """Return whether values of this type are random keys."""
    return isinstance(aval.dtype, StoredDType) and aval.dtype.type is dtypes.prng_key


def choose_generator(dtype: StoredDType) -> Generator:
    """Return the generator of keys with this dtype."""
    assert isinstance(dtype.maker, Generator)
    return dtype.maker


def _key_aval(name: str, aval: ShapedArray) -> ShapedArray:
    if not is_key(aval):
        raise TypeError(f"{name} takes random keys; got {aval.str_short(short_dtypes=False)}")
    return aval


# Seeds


def _seed_abstract(seed: ShapedArray, *, impl: Generator) -> ShapedArray:
    """Return a key for each seed."""
    return ShapedArray(seed.shape, impl.dtype)


@lower_fun
def _emit_seed_words(seeds: Array, *, impl: Generator) -> Array:
    return impl.seed(seeds)


def _seed_emit(builder: FunctionBuilder, seeds: Value, *, impl: Generator) -> Value:
    result = builder.results[0]
    return _emit_seed_words(builder, seeds, impl=impl).bitcast(result)


def _seed_evaluate(seeds: ConcreteArray, *, impl: Generator) -> Array:
    if impl.is_users:
        return random_wrap.bind_positional((impl.seed(seeds),), (impl,))
    # Computed on the host, so that the first key of a program does not wait for the compiler.
    return make_keys_on_host(seeds.host(), impl, seeds._place if seeds.committed else None)


def make_keys_on_host(seeds: Any, impl: Generator, device: Any = None) -> ConcreteArray:
    """Return keys of one of xtrace's generators from seeds on the host, NumPy integers of any width."""
    values = seeds.astype(np.uint64) & np.uint64(2 ** max(dtypes.bit_width(seeds.dtype), 32) - 1)
    pair = [values >> np.uint64(32), values & np.uint64(0xFFFFFFFF)]
    words = np.stack(pair * (impl.key_shape[0] // 2), -1).astype(np.uint32)
    return array_from_host(words, ShapedArray(seeds.shape, impl.dtype), device)


random_seed = ArrayPrimitive(
    "random_seed", ("impl",), sharding=append_axes, abstract=_seed_abstract, emit=_seed_emit, jvp=ZERO_DERIVATIVE,
    batch=IN_PLACE, evaluate=_seed_evaluate,
)


# Bitcasts from words to keys and back


def _bitcast(array: ConcreteArray, aval: ShapedArray) -> ConcreteArray:
    array = in_layout(array, None)
    return new_array(aval, array.buffer, signature_on(aval, array._place, array.committed))


def check_words(aval: ShapedArray, impl: Generator) -> None:
    """Raise TypeError unless arrays of this type hold words of keys of the generator `impl`."""
    if aval.shape[-len(impl.key_shape) :] != impl.key_shape:
        sizes = impl.key_shape[0] if len(impl.key_shape) == 1 else impl.key_shape
        last = "a last axis of size" if len(impl.key_shape) == 1 else "last axes of sizes"
        raise TypeError(f"the data of random keys of {impl.name} has {last} {sizes}; got shape {aval.shape}")
    if aval.dtype != dtypes.uint32:
        raise TypeError(f"the data of random keys has dtype uint32; got {dtypes.full_name(aval.dtype)}")


def _wrap_abstract(words: ShapedArray, *, impl: Generator) -> ShapedArray:
    """Return the keys with the given words."""
    check_words(words, impl)
    return ShapedArray(words.shape[: -len(impl.key_shape)], impl.dtype)


def _wrap_evaluate(words: ConcreteArray, *, impl: Generator) -> ConcreteArray:
    return _bitcast(words, _wrap_abstract(words.aval, impl=impl))


random_wrap = ArrayPrimitive(
    "random_wrap", ("impl",), sharding=append_axes, abstract=_wrap_abstract, emit=emit_bitcast, jvp=ZERO_DERIVATIVE,
    batch=AXIS_FIRST, evaluate=_wrap_evaluate,
)


def _unwrap_abstract(keys: ShapedArray) -> ShapedArray:
    """Return the words of keys."""
    dtype = _key_aval("random_unwrap", keys).dtype
    return ShapedArray((*keys.shape, *dtype.trailing_shape), dtypes.uint32)


def _unwrap_evaluate(keys: ConcreteArray) -> ConcreteArray:
    return _bitcast(keys, _unwrap_abstract(keys.aval))


random_unwrap = ArrayPrimitive(
    "random_unwrap", sharding=append_axes, abstract=_unwrap_abstract, emit=emit_bitcast, jvp=ZERO_DERIVATIVE,
    batch=IN_PLACE, evaluate=_unwrap_evaluate,
)


def _lower_words(formula: Callable[..., Array]) -> Callable[..., Value]:
    """Return the emission rule of ``formula(generator, words of the keys, ...)``."""

    def words(*arrays: ArrayLike, impl: Generator, **parameters: Any) -> Array:
        return formula(impl, *arrays, **parameters)

    emit_words = lower_fun(words)

    def emit(builder: FunctionBuilder, keys: Value, *others: Value, **parameters: Any) -> Value:
        impl, result = choose_generator(keys.aval.dtype), builder.results[0]
        return emit_words(builder, keys.to_physical(), *others, impl=impl, **parameters).bitcast(result)

    def make_formula(avals: Sequence[ShapedArray], parameters: dict[str, Any]) -> tuple[Any, ...]:
        return words, [physical_aval(a) for a in avals], {"impl": choose_generator(avals[0].dtype), **parameters}

    emit.make_formula = make_formula  # type: ignore[attr-defined]
    return emit


# New keys


def _split_abstract(keys: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    """Return new keys, of `shape` for each key."""
    return ShapedArray((*_key_aval("random_split", keys).shape, *shape), keys.dtype)


random_split = ArrayPrimitive(
    "random_split", ("shape",), sharding=append_axes, abstract=_split_abstract,
    emit=_lower_words(lambda impl, words, *, shape: impl.split(words, shape)), jvp=ZERO_DERIVATIVE, batch=AXIS_FIRST,
)


def _fold_in_abstract(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    """Return a new key for each key and number."""
    shape = _key_aval("random_fold_in", keys).shape
    if data.dtype != dtypes.uint32:
        raise TypeError(f"random_fold_in: data must be uint32, got {data.dtype.name}")
    if shape and data.shape and shape != data.shape:
        raise TypeError(f"random_fold_in: keys of shape {shape} and data of shape {data.shape} do not match")
    return ShapedArray(shape or data.shape, keys.dtype)


def _fold_in_words(impl: Generator, words: Array, data: Array) -> Array:
    shape = aval_of(data).shape
    if shape and aval_of(words).ndim == len(impl.key_shape):
        axes = range(len(shape), len(shape) + len(impl.key_shape))
        words = broadcast_in_dim(words, (*shape, *impl.key_shape), axes)
    return impl.fold_in(words, data)


def _fold_in_batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
    ranks = [aval_of(x).ndim - (i is not None) for x, i in zip(operands, axes, strict=True)]
    moved = [
        x if i is None and not (rank or max(ranks)) else mapped.place(x, i)
        for x, i, rank in zip(operands, axes, ranks, strict=True)
    ]
    # An operand of lower rank is broadcast, so that the mapped axis stays first.
    shape = max((aval_of(x).shape for x in moved), key=len)
    if max(ranks):
        moved = [broadcast_in_dim(x, shape, range(aval_of(x).ndim)) for x in moved]
    return random_fold_in.bind_positional(moved), 0


random_fold_in = ArrayPrimitive(
    "random_fold_in", sharding=join, abstract=_fold_in_abstract, emit=_lower_words(_fold_in_words), jvp=ZERO_DERIVATIVE,
    batch=_fold_in_batch,
)


# Bits


def _bits_abstract(keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...]) -> ShapedArray:
    """Return random unsigned integers, of `shape` for each key."""
    dtype = dtypes.unsigned_dtypes[bit_width]
    return ShapedArray((*_key_aval("random_bits", keys).shape, *shape), dtype)


random_bits = ArrayPrimitive(
    "random_bits", ("bit_width", "shape"), sharding=append_axes, abstract=_bits_abstract,
    emit=_lower_words(lambda impl, words, *, bit_width, shape: impl.random_bits(words, bit_width, shape)),
    jvp=ZERO_DERIVATIVE, batch=AXIS_FIRST,
)


def _clone_abstract(keys: ShapedArray) -> ShapedArray:
    """Return the same keys, which may be used once more."""
    return keys


random_clone = ArrayPrimitive(
    "random_clone", sharding=append_axes, abstract=_clone_abstract, emit=emit_bitcast, jvp=ZERO_DERIVATIVE,
    batch=IN_PLACE, evaluate=lambda keys: _bitcast(keys, keys.aval),
)
