"""Bitcasts, reduced precision, and optimization barriers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import Elementwise
from xtrace._src.algebra.kinds import FLOAT
from xtrace._src.algebra.vector_space import AXIS_FIRST, LINEAR, ZERO_DERIVATIVE
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.integers import to_integer
from xtrace._src.core.primitive import primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.sharding_rules import append_axes, each_same
from xtrace._src.core.shardings.sum_rules import each_own
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

# Representation

def _reduce_precision(builder: FunctionBuilder, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    return builder.line(
        f"stablehlo.reduce_precision {x.name}, format = e{exponent_bits}m{mantissa_bits} : {x.type}", x.aval
    )


def _reduce_precision_transpose(cotangent: Array, x: Array, **parameters: object) -> list[Any]:
    return [reduce_precision.bind_positional((cotangent,), tuple(parameters.values()))]


@Elementwise.define(
    _reduce_precision, (FLOAT,), has_body=True, parameters=("exponent_bits", "mantissa_bits"), jvp=LINEAR,
    transpose=_reduce_precision_transpose,
)
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round to a floating format with the given numbers of bits, and convert back.

    Args:
        operand: an array or a scalar of real floating numbers.
        exponent_bits: the number of bits of the format's exponent, at least 1.
        mantissa_bits: the number of bits of the format's mantissa, at least 0.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `operand` is no array of real floating numbers, or a number of bits is no integer.
        ValueError: a number of bits is too small.

    Example:
        >>> lax.reduce_precision(3.14159, exponent_bits=8, mantissa_bits=7)
        Array(3.140625, dtype=float32, weak_type=True)
    """
    exponent_bits = to_integer("exponent_bits", exponent_bits)
    mantissa_bits = to_integer("mantissa_bits", mantissa_bits)
    for name, bits, least, kind in (
        ("exponent_bits", exponent_bits, 1, "positive"), ("mantissa_bits", mantissa_bits, 0, "non-negative"),
    ):
        if bits < least:
            raise ValueError(f"reduce_precision: {name} must be {kind}; got {bits}")
    return reduce_precision.bind_positional((operand,), (exponent_bits, mantissa_bits))


def _bitcast_abstract(operand: ShapedArray, *, new_dtype: Any) -> ShapedArray:
    old, new = operand.dtype, new_dtype
    if old == new:
        return ShapedArray(operand.shape, new)
    if any(dtypes.is_boolean(d) or dtypes.is_complex(d) for d in (old, new)):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand and destination "
            f"types match; got {old.name} and {new.name}. Consider using x.view(dtype) instead."
        )
    old_bits, new_bits = dtypes.bit_width(old), dtypes.bit_width(new)
    if old_bits >= new_bits:
        return ShapedArray(operand.shape if old_bits == new_bits else (*operand.shape, old_bits // new_bits), new)
    last = operand.shape[-1] if operand.shape else 1
    if not operand.shape or last * old_bits != new_bits:
        raise ValueError(
            f"bitcast_convert_type: elements of {new.name} have {new_bits} bits, and the last axis of an array of "
            f"{old.name} with shape {operand.shape} holds {last} * {old_bits}; they must be equal"
        )
    return ShapedArray(operand.shape[:-1], new)


def _bitcast_emit(builder: FunctionBuilder, x: Value, **_: object) -> Value:
    return builder.cast("bitcast_convert", x, builder.results[0])


@primitive(
    ("new_dtype",), sharding=append_axes, abstract=_bitcast_abstract, emit=_bitcast_emit,
    jvp=ZERO_DERIVATIVE, batch=AXIS_FIRST,
)
def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Reinterpret the bits of an array as elements of another dtype.

    Args:
        operand: an array of integers or real floating numbers.
        new_dtype: the dtype of the result.

    Returns:
        An array of dtype `new_dtype`. A dtype of the same width keeps the shape of `operand`, a narrower one adds a
        last axis, and a wider one consumes the last axis.

    Raises:
        TypeError: one of two different dtypes is boolean or complex.
        ValueError: `new_dtype` is wider, and the last axis does not hold the bits of one element.

    Example:
        >>> lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32)
        Array(1065353216, dtype=int32)
    """
    return bitcast_convert_type.bind_positional((operand,), (requested_dtype(new_dtype),))


def _barrier_abstract(*operands: ShapedArray) -> list[ShapedArray]:
    return list(operands)


def _barrier_emit(builder: FunctionBuilder, *values: Value) -> list[Value]:
    names, types = ", ".join(x.name for x in values), ", ".join(x.type for x in values)
    return builder.line_of_many(f"stablehlo.optimization_barrier {names} : {types}", builder.results)


def _bind_barrier(values: Sequence[Any]) -> list[Any]:
    """Return the values after a barrier; None stays None."""
    results = iter(optimization_barrier.bind_positional([x for x in values if x is not None]))
    return [x if x is None else next(results) for x in values]


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return optimization_barrier.bind_positional(primals), _bind_barrier(tangents)


def _barrier_transpose(cotangents: Sequence[Any], *operands: Array) -> list[Any]:
    return _bind_barrier(cotangents)


def _barrier_batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], Any]:
    return optimization_barrier.bind_positional(operands), axes


@primitive(
    sharding=each_same, sums=each_own, abstract=_barrier_abstract, emit=_barrier_emit,
    multiple_results=True, jvp=_barrier_jvp, transpose=_barrier_transpose, batch=_barrier_batch,
)
def optimization_barrier(operand: ArrayLike, /) -> Any:
    """Return a tree of arrays unchanged; the compiler moves no operation across this barrier.

    Args:
        operand: a tree of arrays.

    Returns:
        A tree of the same structure with the same arrays.

    Raises:
        TypeError: a leaf is no array and no scalar.

    Example:
        >>> lax.optimization_barrier(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    leaves, tree = pytree.tree_flatten(operand)
    return pytree.tree_unflatten(tree, optimization_barrier.bind_positional(leaves) if leaves else [])
