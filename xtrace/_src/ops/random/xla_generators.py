"""Random bits from XLA's generators: counter-based ones with a key, and a stateful one on the device."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import reshard_result
from xtrace._src.algebra.vector_space import ZERO_DERIVATIVE, canonical_shape, move_axis, operand_aval, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.shape import expand_dims, squeeze
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


class RandomAlgorithm(enum.IntEnum):
    """The generators of `rng_bit_generator`: the platform's default, ThreeFry, and Philox.

    Example:
        >>> lax.RandomAlgorithm.RNG_THREE_FRY
        <RandomAlgorithm.RNG_THREE_FRY: 1>
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def _bits_abstract(key: ShapedArray, *, shape: tuple[int, ...], dtype: np.dtype[Any], **_: object) -> list[ShapedArray]:
    if dtype not in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise TypeError(
            f"rng_bit_generator: unsupported dtype {dtype.name}; it is one of uint8, uint16, uint32 and uint64"
        )
    if (key.shape, key.dtype) not in (((4,), dtypes.uint32), ((2,), dtypes.uint64)):
        raise TypeError(
            f"rng_bit_generator: key must be uint32[4] or uint64[2], got {key.str_short(short_dtypes=False)}; for "
            "several keys, use vmap"
        )
    return [ShapedArray(key.shape, key.dtype), ShapedArray(shape, dtype)]


def _bits_emit(builder: FunctionBuilder, key: Value, *, algorithm: RandomAlgorithm, **_: object) -> list[Value]:
    state, bits = builder.results
    pairs, wide = ShapedArray((2, 2), dtypes.uint32), ShapedArray((2,), dtypes.uint64)

    # XLA's state has 64-bit numbers.
    narrow = state.dtype == dtypes.uint32
    if narrow:
        key = builder.cast("bitcast_convert", builder.cast("reshape", key, pairs), wide)
    name = algorithm.name.removeprefix("RNG_")
    moved, drawn = builder.line_of_many(
        f"stablehlo.rng_bit_generator {key.name}, algorithm = {name} : ({wide.mlir_type}) -> "
        f"({wide.mlir_type}, {bits.mlir_type})",
        [wide, bits],
    )
    if narrow:
        moved = builder.cast("reshape", builder.cast("bitcast_convert", moved, pairs), state)
    return [moved, drawn]


def _bits_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, shape: tuple[int, ...], dtype: np.dtype[Any],
    **others: object
) -> tuple[list[Any], tuple[int, int]]:
    keys = move_axis(operands[0], axes[0], 0)
    if not mapped.size:
        return [keys, zeros(ShapedArray((0, *shape), dtype))], (0, 0)
    # As in JAX, the bits for all keys are drawn with the first key.
    first = squeeze(slice_in_dim(keys, 0, 1), (0,))
    moved, bits = rng_bit_generator.bind_positional((first,), ((mapped.size, *shape), dtype, *others.values()))
    moved = expand_dims(moved, (0,))
    return [concatenate([moved, slice_in_dim(keys, 1, None)], 0), bits], (0, 0)


@primitive(
    ("shape", "dtype", "algorithm", "out_sharding"), abstract=_bits_abstract, emit=_bits_emit,
    jvp=ZERO_DERIVATIVE, batch=_bits_batch, multiple_results=True,
)
def rng_bit_generator(
    key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = dtypes.uint32, algorithm: Any = RandomAlgorithm.RNG_DEFAULT, *,
    out_sharding: object = None,
) -> tuple[Array, Array]:
    """Return the next key and an array of random bits.

    Args:
        key: an array uint32[4] or uint64[2].
        shape: the shape of the bits.
        dtype: uint8, uint16, uint32 or uint64.
        algorithm: a `RandomAlgorithm`, its number or its name. The default's bits may differ between platforms and
            releases of XLA.
        out_sharding: the sharding of the bits over explicit mesh axes; None to infer it.

    Returns:
        A pair of the next key and an array of `shape` and `dtype`.

    Raises:
        TypeError: `key` or `dtype` is not one of these.
        ValueError: there is no such algorithm.

    Example:
        >>> lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (2,))[1].shape
        (2,)
    """
    try:
        chosen = RandomAlgorithm[algorithm] if isinstance(algorithm, str) else RandomAlgorithm(algorithm)
    except (KeyError, ValueError):
        raise ValueError(
            f"rng_bit_generator: algorithm must be one of {', '.join(map(str, RandomAlgorithm))}, got "
            f"{abbreviate(algorithm)}"
        ) from None
    dtype = requested_dtype(dtype)
    sizes = canonical_shape(shape)
    sharding = requested_out_sharding(out_sharding)
    next_key, bits = rng_bit_generator.bind_positional((key,), (sizes, dtype, chosen, None))
    return next_key, reshard_result(bits, sharding)


# The dtypes that XLA's expansion of the operation accepts: any other dtype kills the process.
_UNIFORM_DTYPES = (
    dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32,
    dtypes.uint64,
)


def _uniform_abstract(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError(f"Arguments to rng_uniform must have identical dtypes, got {a.dtype.name} and {b.dtype.name}.")
    if a.shape or b.shape:
        raise ValueError(f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}.")
    if a.dtype not in _UNIFORM_DTYPES:
        names = ", ".join(d.name for d in _UNIFORM_DTYPES)
        raise TypeError(f"rng_uniform does not support the dtype {a.dtype.name}; it is one of {names}")
    return ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)


def _uniform_emit(builder: FunctionBuilder, a: Value, b: Value, *, shape: tuple[int, ...]) -> Value:
    aval = builder.results[0]
    sizes = builder.constant(list(shape), ShapedArray((len(shape),), dtypes.int64))
    types = ", ".join(x.aval.mlir_type for x in (a, b, sizes))
    return builder.line(
        f"stablehlo.rng {a.name}, {b.name}, {sizes.name}, distribution = UNIFORM : ({types}) -> {aval.mlir_type}", aval
    )


_STATEFUL = "its state is not an operand; use rng_bit_generator or xtrace.random"


@primitive(
    ("shape",), abstract=_uniform_abstract, emit=_uniform_emit,
    jvp=no_rule(f"Differentiation rule for 'rng_uniform' not implemented: {_STATEFUL}"),
    batch=no_rule(f"Batching rule for 'rng_uniform' not implemented: {_STATEFUL}"),
)
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: ShapeLike) -> Array:
    """Draw numbers uniformly from [a, b), with the device's generator state.

    The same program may draw other numbers each time; `xtrace.random` is reproducible.

    Args:
        a, b: scalars of one dtype, the bounds.
        shape: the shape of the result.

    Returns:
        An array of `shape` and the dtype of the bounds.

    Raises:
        TypeError: XLA cannot draw numbers of the dtype.
        ValueError: a bound is no scalar, or the dtypes differ.

    Example:
        >>> lax.rng_uniform(jnp.float32(0), jnp.float32(1), (3,)).shape
        (3,)
    """
    for position, value in (("a", a), ("b", b)):
        operand_aval(value, position)
    return rng_uniform.bind_positional((a, b), (canonical_shape(shape),))
