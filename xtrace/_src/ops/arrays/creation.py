"""Creating arrays from a scalar, a shape or a size."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import NUMBER, check_kind
from xtrace._src.algebra.varying import vary
from xtrace._src.algebra.vector_space import (
    ZERO_DERIVATIVE,
    bind_with_sharding,
    broadcast_in_dim,
    canonical_shape,
    convert_to,
    operand_aval,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import Primitive, no_rule, primitive
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.shardings.sharding_constraints import constrain
from xtrace._src.runtime import transfer
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


def _iota_abstract(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int, **_: object) -> ShapedArray:
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} must be an axis of shape {shape}, 0 to {len(shape) - 1}")
    aval = ShapedArray(shape, dtype)
    check_kind("iota", (aval,), (NUMBER,))
    return aval


def _iota_emit(builder: FunctionBuilder, *, dimension: int, **_: object) -> Value:
    return builder.iota(builder.results[0], dimension)


@primitive(
    ("dtype", "shape", "dimension", "sharding"), name="iota", sharding_parameter="sharding", abstract=_iota_abstract,
    emit=_iota_emit, jvp=ZERO_DERIVATIVE, batch=no_rule("iota has no operand that could be mapped"),
)
def broadcasted_iota(dtype: DTypeLike, shape: ShapeLike, dimension: int, *, out_sharding: object = None) -> Array:
    """Return an array whose elements are their indices along one axis.

    Args:
        dtype: the dtype of the result, a numeric one.
        shape: the shape of the result.
        dimension: an axis of the result, counted from the front.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the given shape and dtype.

    Raises:
        TypeError: `dtype` is no numeric dtype, or `shape` is no shape.
        ValueError: there is no such axis.

    Example:
        >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    shape = canonical_shape(shape)
    dtype = requested_dtype(dtype)
    dimension = to_integer("dimension", dimension)
    return bind_with_sharding(broadcasted_iota, (), (dtype, shape, dimension), out_sharding)


def _empty2_abstract(*, dtype: Any, memory_space: Any) -> ShapedArray:
    """Return a scalar without a defined value; it is zero."""
    return ShapedArray((), np.dtype(dtype))


def _empty2_emit(builder: FunctionBuilder, **_: object) -> Value:
    return builder.constant(0, builder.results[0])


empty2_p = Primitive(
    "empty2", ("dtype", "memory_space"), abstract=_empty2_abstract, emit=_empty2_emit, jvp=ZERO_DERIVATIVE,
    batch=no_rule("empty2 has no operand that could be mapped"),
)


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the integers 0, 1, …, size - 1.

    Args:
        dtype: the dtype of the numbers.
        size: the number of integers.

    Returns:
        An array of one axis.

    Raises:
        TypeError: `size` is no integer, or `dtype` is no numeric dtype.

    Example:
        >>> lax.iota("int32", 3)
        Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, canonical_shape((size,)), 0)


def full(shape: ShapeLike, fill_value: object, dtype: DTypeLike | None = None, *, sharding: object = None) -> Array:
    """Return an array filled with a scalar.

    Args:
        shape: the shape.
        fill_value: a scalar.
        dtype: the dtype; None for the scalar's dtype.
        sharding: the sharding of the result; None for the default device.

    Returns:
        An array.

    Raises:
        TypeError: `fill_value` is no scalar, or the shape is no sequence of non-negative integers.

    Example:
        >>> lax.full((2,), 3.0)
        Array([3., 3.], dtype=float32, weak_type=True)
    """
    aval = operand_aval(fill_value, "fill_value")
    wanted = aval.dtype if dtype is None else requested_dtype(dtype)
    weak = dtype is None and aval.weak_type and not isinstance(sharding, NamedSharding)
    value = scalar_operand(fill_value, ShapedArray((), wanted, weak))
    return fill_operand(value, canonical_shape(shape), sharding)


def scalar_operand(value: Any, aval: ShapedArray, argument: str = "fill_value") -> Any:
    """Return a scalar as an operand of type `aval`: an array as an array, a number as a literal; TypeError for axes."""
    given = operand_aval(value, argument)
    if given.shape:
        raise TypeError(f"{called_function()}: {argument} must be a scalar, got an array of shape {given.shape}")
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        if given.dtype == aval.dtype:
            return value
        is_own = isinstance(aval.dtype, dtypes.StoredDType)
        return Literal(int(value), aval) if is_own else aval.dtype.fill(value)
    if not isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
        return convert_to(value, aval.dtype, aval.weak_type)
    host = np.asarray(value)
    if dtypes.is_complex(host.dtype) and not dtypes.is_complex(aval.dtype):
        raise TypeError(f"{called_function()}: {argument} {value} is complex and does not convert to {aval.dtype.name}")
    if dtypes.is_floating(host.dtype) and dtypes.is_integer(aval.dtype):
        return convert_to(value, aval.dtype, aval.weak_type)
    with np.errstate(all="ignore"):
        return Literal(host.astype(aval.dtype)[()], aval)


def fill_operand(value: Any, shape: tuple[int, ...], sharding: object) -> Array:
    """Return a scalar operand or literal broadcast to `shape`, with `sharding`; None infers it."""
    if isinstance(sharding, NamedSharding) and type(value) is Literal and current_trace.get() is base_trace:
        aval = value.aval
        if isinstance(aval.dtype, np.dtype):
            # Shard by shard: the whole array need not fit on one device.
            host = np.broadcast_to(transfer.scalar_to_host(value.value, aval), shape)
            return transfer.put_at(host, sharding, ShapedArray(shape, aval.dtype, aval.weak_type))
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return broadcast_in_dim.bind_positional((value,), (shape, (), sharding))
    array = broadcast_scalar(value, shape)
    if isinstance(sharding, Sharding):
        return transfer.put_at(array, sharding) if isinstance(array, ConcreteArray) else constrain(array, sharding)
    if sharding is not None:
        raise NotImplementedError(
            f"{called_function()}: sharding={abbreviate(sharding)} is not supported, operations leave their results "
            "on the device of their operands; leave sharding at None, and move the result with "
            "xtrace.device_put(x, device)"
        )
    return array


def broadcast_scalar(value: Any, shape: tuple[int, ...]) -> Array:
    """Return a scalar operand or literal broadcast to `shape`."""
    if not shape and isinstance(value, Array):
        return value
    # NumPy has no scalars of extended dtypes.
    if shape or not isinstance(value.aval.dtype, np.dtype):
        return broadcast_in_dim.bind_positional((value,), (shape, (), None))
    return transfer.constant_from_host(transfer.scalar_to_host(value.value, value.aval), value.aval)


def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None,
    sharding: object = None,
) -> Array:
    """Return an array like another one, filled with a scalar.

    Args:
        x: an array.
        fill_value: a scalar.
        dtype: the dtype; None for the dtype of `x`.
        shape: the shape; None for the shape of `x`.
        sharding: the sharding of the result; None for the sharding of `x`.

    Returns:
        An array.

    Raises:
        TypeError: `fill_value` is no scalar, or the shape is no sequence of non-negative integers.

    Example:
        >>> lax.full_like(jnp.ones(2), 3.0)
        Array([3., 3.], dtype=float32)
    """
    aval = operand_aval(x, "x")
    shape = aval.shape if shape is None else canonical_shape(shape)
    wanted = aval.dtype if dtype is None else requested_dtype(dtype)
    value = scalar_operand(fill_value, ShapedArray((), wanted, dtype is None and aval.weak_type))
    if sharding is None:
        sharding = transfer.sharding_like(x, shape, value.aval.weak_type)
    filled: Array = vary(fill_operand(value, shape, sharding), tuple(aval.varying))
    return filled


def zeros_like(x: ArrayLike) -> Array:
    """Return zeros of the shape, dtype and weak type of `x`."""
    return full_like(x, False if dtypes.is_boolean(operand_aval(x, "x").dtype) else 0)


def ones_like(x: ArrayLike) -> Array:
    """Return ones of the shape, dtype and weak type of `x`."""
    return full_like(x, True if dtypes.is_boolean(operand_aval(x, "x").dtype) else 1)


def _empty_abstract(*, shape: tuple[int, ...], dtype: np.dtype[Any], **_: object) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _empty_emit(builder: FunctionBuilder, **_: object) -> Value:
    aval = builder.results[0]
    return builder.broadcast(builder.literal(0, aval.update(shape=())), aval.shape)


@primitive(
    ("shape", "dtype", "out_sharding"), sharding_parameter="out_sharding", abstract=_empty_abstract,
    emit=_empty_emit, jvp=ZERO_DERIVATIVE, batch=no_rule("empty has no operand that could be mapped"),
)
def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: object = None) -> Array:
    """Return an array whose elements are unspecified.

    Args:
        shape: the shape of the result, an integer or a sequence of integers.
        dtype: the dtype of the result.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the given shape and dtype.

    Raises:
        TypeError: `dtype` is no dtype, or `shape` is no shape.

    Example:
        >>> lax.empty((2, 3), jnp.float32).shape
        (2, 3)
    """
    dtype = dtypes.canonicalize(dtype, config.keeps_wide_dtypes())
    return bind_with_sharding(empty, (), (canonical_shape(shape), dtype), out_sharding)


def shape_as_value(shape: ShapeLike) -> Array:
    """Return a shape as an array.

    Args:
        shape: a tuple of integers.

    Returns:
        An array of the default integer dtype.

    Raises:
        TypeError: `shape` is no sequence of integers.

    Example:
        >>> lax.shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    sizes = canonical_shape(shape)
    dtype = dtypes.default_int(config.enable_x64.value)
    return transfer.array_from_host(np.array(sizes, dtype), ShapedArray((len(sizes),), dtype))
