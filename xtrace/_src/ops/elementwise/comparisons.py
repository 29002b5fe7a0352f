"""Elementwise comparisons and bitwise operations."""

from __future__ import annotations

from xtrace._src.algebra.families import Binary, Comparison, Unary
from xtrace._src.algebra.kinds import (
    BITS,
    INTEGER,
)
from xtrace._src.algebra.monoids import AND, OR
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.jaxprs.ir import Literal

# Bits

@Unary.define("stablehlo.not", BITS, name="not", derivatives=0)
def bitwise_not(x: ArrayLike | Literal) -> Array:
    """Invert every bit; of booleans, return the negation.

    Example:
        >>> lax.bitwise_not(5)
        Array(-6, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.and", BITS, name="and", promoting="bitwise_and", derivatives=0)
def bitwise_and(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the bits that are set in both operands; of booleans, the conjunction.

    Example:
        >>> lax.bitwise_and(6, 3)
        Array(2, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.or", BITS, name="or", promoting="bitwise_or", derivatives=0)
def bitwise_or(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the bits that are set in either operand; of booleans, the disjunction.

    Example:
        >>> lax.bitwise_or(6, 3)
        Array(7, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.xor", BITS, name="xor", promoting="bitwise_xor", derivatives=0)
def bitwise_xor(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the bits that are set in exactly one operand.

    Example:
        >>> lax.bitwise_xor(6, 3)
        Array(5, dtype=int32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.popcnt", (INTEGER,), derivatives=0)
def population_count(x: ArrayLike | Literal) -> Array:
    """Return the number of bits that are set in each element.

    Example:
        >>> lax.population_count(7)
        Array(3, dtype=int32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.count_leading_zeros", (INTEGER,), derivatives=0)
def clz(x: ArrayLike | Literal) -> Array:
    """Return the number of zero bits above the highest bit set in each element.

    Example:
        >>> lax.clz(1)
        Array(31, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.shift_left", (INTEGER,), promoting="left_shift", derivatives=0)
def shift_left(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Shift the bits of `x` up by `y` places; the result is 0 if `y` is at least the number of bits.

    Example:
        >>> lax.shift_left(1, 4)
        Array(16, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.shift_right_logical", (INTEGER,), promoting="right_shift", derivatives=0)
def shift_right_logical(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Shift the bits of `x` down by `y` places and fill with zeros; 0 if `y` is at least the number of bits.

    Example:
        >>> lax.shift_right_logical(16, 2)
        Array(4, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.shift_right_arithmetic", (INTEGER,), promoting="right_shift", derivatives=0)
def shift_right_arithmetic(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Shift the bits of `x` down by `y` places and fill with copies of the sign bit.

    Example:
        >>> lax.shift_right_arithmetic(-16, 2)
        Array(-4, dtype=int32, weak_type=True)
    """
    ...


# Comparisons

@Comparison.define("EQ", "equal", ordered=False, of_words=AND)
def eq(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether corresponding elements are equal.

    Example:
        >>> lax.eq(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    ...


@Comparison.define("NE", "not_equal", ordered=False, of_words=OR)
def ne(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether corresponding elements differ.

    Example:
        >>> lax.ne(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    ...


@Comparison.define("LT", "less")
def lt(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether elements of `x` are smaller than those of `y`.

    Example:
        >>> lax.lt(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    ...


@Comparison.define("LE", "less_equal")
def le(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether elements of `x` are smaller than those of `y`, or equal.

    Example:
        >>> lax.le(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    ...


@Comparison.define("GT", "greater")
def gt(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether elements of `x` are larger than those of `y`.

    Example:
        >>> lax.gt(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    ...


@Comparison.define("GE", "greater_equal")
def ge(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether elements of `x` are larger than those of `y`, or equal.

    Example:
        >>> lax.ge(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    ...


@Comparison.define("EQ", total=True)
def eq_to(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether corresponding elements are equal in the total order of floating numbers."""
    ...


@Comparison.define("LT", total=True)
def lt_to(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether elements of `x` are smaller in the total order of floating numbers."""
    ...


@Comparison.define("LE", total=True)
def le_to(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return whether elements of `x` are smaller or equal in the total order of floating numbers."""
    ...
