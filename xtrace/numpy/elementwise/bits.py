"""Truth values packed into bytes, and bytes unpacked."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.arrays import slicing
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, ne, shift_left, shift_right_logical
from xtrace._src.ops.reductions import reductions
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.manipulation.shapes import atleast_1d, moveaxis, ravel
from xtrace.numpy.operands import axis_as_index, scalar_of


def _shifts(order: str) -> Array:
    """Return the shift of each of eight bits."""
    counted = iota(dtypes.uint8, 8)
    return counted if order == "little" else elementwise.sub(scalar_of(7, dtypes.uint8), counted)


def _prepare_operand(a: Any, axis: Any, bitorder: Any) -> tuple[Any, int]:
    """Return the operand, flattened without an axis, and the axis counted from the front."""
    if bitorder not in ("little", "big"):
        raise ValueError(f"{called_function()}: bitorder must be either 'little' or 'big', got {abbreviate(bitorder)}")
    a = atleast_1d(to_array_operand(a))
    if axis is None:
        return ravel(a), 0
    return a, axis_as_index(axis, a.ndim)


@inline_jit(static=("axis", "bitorder"), public=True)
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack booleans into the bits of bytes; nonzero integers are True.

    Args:
        a: an array of integers or booleans.
        axis: the axis along which eight elements make a byte; None for the flattened array.
        bitorder: ``"big"``, the first element is the highest bit, or ``"little"``, it is the lowest.

    Returns:
        An array of dtype uint8 with ⌈n / 8⌉ bytes along `axis`, for n elements; missing bits are zeros.

    Raises:
        TypeError: `a` is not an array of integers or booleans.
        ValueError: `a` has no such axis, or `bitorder` has another value.

    Example:
        >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
        Array([131], dtype=uint8)
    """
    aval = operand_aval(a, 0)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_boolean(aval.dtype)):
        raise TypeError(f"packbits: a must hold integers or booleans; got dtype {aval.dtype.name}")
    array, along = _prepare_operand(a, axis, bitorder)
    bits = moveaxis(ne(array, scalar_of(0, array.dtype)), along, -1)
    count = -(-bits.shape[-1] // 8)
    missing = count * 8 - bits.shape[-1]
    bits = slicing.pad(bits, scalar_of(False, dtypes.bool_), [*[(0, 0, 0)] * (bits.ndim - 1), (0, missing, 0)])
    bits = reshape(convert_to(bits, dtypes.uint8), (*bits.shape[:-1], count, 8))
    shifts = broadcast_in_dim(_shifts(bitorder), bits.shape, (bits.ndim - 1,))
    return moveaxis(reductions.reduce_sum(shift_left(bits, shifts), (bits.ndim - 1,)), -1, along)


@inline_jit(static=("axis", "count", "bitorder"), public=True)
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Return the bits of bytes as 0 and 1.

    Args:
        a: an array of dtype uint8.
        axis: the axis along which the bits are placed; None for the flattened array.
        count: the number of bits along `axis`, padded with zeros; a negative number drops that many bits at the end.
            None for all.
        bitorder: ``"big"``, the highest bit comes first, or ``"little"``, it comes last.

    Returns:
        An array of dtype uint8.

    Raises:
        TypeError: `a` is not an array of dtype uint8.
        ValueError: `a` has no such axis, or `bitorder` has another value.

    Example:
        >>> jnp.unpackbits(jnp.array([131], jnp.uint8))
        Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    aval = operand_aval(a, 0)
    if aval.dtype != dtypes.uint8:
        raise TypeError(f"unpackbits: a must hold unsigned bytes (uint8); got dtype {aval.dtype.name}")
    a, along = _prepare_operand(a, axis, bitorder)
    a = moveaxis(a, along, -1)
    shape = (*a.shape, 8)
    shifts = broadcast_in_dim(_shifts(bitorder), shape, (a.ndim,))
    bits = shift_right_logical(broadcast_in_dim(a, shape, range(a.ndim)), shifts)
    bits = bitwise_and(bits, broadcast_in_dim(scalar_of(1, dtypes.uint8), shape, ()))
    length = a.shape[-1] * 8
    bits = reshape(bits, (*a.shape[:-1], length))
    if count is not None:
        count = to_integer("count", count)
        extra = count - length if count >= 0 else count
        bits = slicing.pad(bits, scalar_of(0, dtypes.uint8), [*[(0, 0, 0)] * (bits.ndim - 1), (0, extra, 0)])
    return moveaxis(bits, -1, along)
