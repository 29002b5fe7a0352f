"""Elementwise functions of bits and of truth values."""

from __future__ import annotations

from xtrace._src.algebra.kinds import BOOL
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.operators import operators
from xtrace._src.api.operators.elementwise_functions import INTEGERS, alias, as_number, elementwise_function
from xtrace._src.api.operators.operators import invert, left_shift, right_shift, truth
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.ops.elementwise import comparisons
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import population_count
from xtrace.numpy.elementwise.ufunc_objects import as_ufunc, ufunc_of

# Bits

@ufunc_of(operators.bitwise_and)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits that are set in both operands.

    Example:
        >>> jnp.bitwise_and(12, 10)
        Array(8, dtype=int32, weak_type=True)
    """
    ...


@ufunc_of(operators.bitwise_or)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits that are set in either operand.

    Example:
        >>> jnp.bitwise_or(12, 10)
        Array(14, dtype=int32, weak_type=True)
    """
    ...


@ufunc_of(operators.bitwise_xor)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits that are set in exactly one of the two operands.

    Example:
        >>> jnp.bitwise_xor(12, 10)
        Array(6, dtype=int32, weak_type=True)
    """
    ...


bitwise_invert = alias(invert, "bitwise_invert")
bitwise_not = alias(invert, "bitwise_not")
bitwise_left_shift = alias(left_shift, "bitwise_left_shift")
bitwise_right_shift = alias(right_shift, "bitwise_right_shift")


def _count_bits(x: Array) -> Array:
    size = lax.abs(x) if dtypes.is_signed(aval_of(x).dtype) else x
    return convert_to(population_count(size), dtypes.uint8)


@elementwise_function(_count_bits, adjust=as_number, domain=INTEGERS, returns="dtype uint8")
def bitwise_count(x: ArrayLike, /) -> Array:
    """Return the numbers of bits that are set in the absolute values of elements.

    Example:
        >>> jnp.bitwise_count(-7)
        Array(3, dtype=uint8)
    """
    ...


# Logic

@as_ufunc
@elementwise_function(
    lambda x, y: comparisons.bitwise_and(truth(x), truth(y)), cases={BOOL: comparisons.bitwise_and},
    returns="dtype bool",
)
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return whether both elements are true or not zero.

    Example:
        >>> jnp.logical_and(jnp.array([True, False]), True)
        Array([ True, False], dtype=bool)
    """
    ...


@as_ufunc
@elementwise_function(
    lambda x, y: comparisons.bitwise_or(truth(x), truth(y)), cases={BOOL: comparisons.bitwise_or}, returns="dtype bool"
)
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return whether one or both elements are true or not zero.

    Example:
        >>> jnp.logical_or(jnp.array([True, False]), False)
        Array([ True, False], dtype=bool)
    """
    ...


@as_ufunc
@elementwise_function(
    lambda x, y: comparisons.bitwise_xor(truth(x), truth(y)), cases={BOOL: comparisons.bitwise_xor},
    returns="dtype bool",
)
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return whether exactly one of the two elements is true or not zero.

    Example:
        >>> jnp.logical_xor(jnp.array([True, False]), True)
        Array([False,  True], dtype=bool)
    """
    ...


@elementwise_function(
    lambda x: comparisons.bitwise_not(truth(x)), cases={BOOL: comparisons.bitwise_not}, returns="dtype bool"
)
def logical_not(x: ArrayLike, /) -> Array:
    """Return whether elements are false or zero.

    Example:
        >>> jnp.logical_not(jnp.array([True, False]))
        Array([False,  True], dtype=bool)
    """
    ...
