"""Elementwise comparisons and bitwise operations."""

from __future__ import annotations

from xtrace._src.algebra.families import (
    binary,
    compare,
    unary,
)
from xtrace._src.algebra.kinds import (
    BITS,
    INTEGER,
)
from xtrace._src.algebra.monoids import AND, OR

# Bits

bitwise_not = unary(
    "not", "stablehlo.not", BITS, "Invert every bit; of booleans, return the negation.", public_name="bitwise_not",
    derivatives=0, example=("lax.bitwise_not(5)", "Array(-6, dtype=int32, weak_type=True)"),
)

bitwise_and = binary(
    "and", "stablehlo.and", BITS, "Return the bits that are set in both operands; of booleans, the conjunction.",
    promoting="bitwise_and", public_name="bitwise_and", derivatives=0,
    example=("lax.bitwise_and(6, 3)", "Array(2, dtype=int32, weak_type=True)"),
)

bitwise_or = binary(
    "or", "stablehlo.or", BITS, "Return the bits that are set in either operand; of booleans, the disjunction.",
    promoting="bitwise_or", public_name="bitwise_or", derivatives=0,
    example=("lax.bitwise_or(6, 3)", "Array(7, dtype=int32, weak_type=True)"),
)

bitwise_xor = binary(
    "xor", "stablehlo.xor", BITS, "Return the bits that are set in exactly one operand.", promoting="bitwise_xor",
    public_name="bitwise_xor", derivatives=0,
    example=("lax.bitwise_xor(6, 3)", "Array(5, dtype=int32, weak_type=True)"),
)

population_count = unary(
    "population_count", "stablehlo.popcnt", (INTEGER,), "Return the number of bits that are set in each element.",
    derivatives=0, example=("lax.population_count(7)", "Array(3, dtype=int32, weak_type=True)"),
)

clz = unary(
    "clz", "stablehlo.count_leading_zeros", (INTEGER,),
    "Return the number of zero bits above the highest bit set in each element.", derivatives=0,
    example=("lax.clz(1)", "Array(31, dtype=int32, weak_type=True)"),
)

shift_left = binary(
    "shift_left", "stablehlo.shift_left", (INTEGER,),
    "Shift the bits of `x` up by `y` places; the result is 0 if `y` is at least the number of bits.",
    promoting="left_shift", derivatives=0, example=("lax.shift_left(1, 4)", "Array(16, dtype=int32, weak_type=True)"),
)

shift_right_logical = binary(
    "shift_right_logical", "stablehlo.shift_right_logical", (INTEGER,),
    "Shift the bits of `x` down by `y` places and fill with zeros; 0 if `y` is at least the number of bits.",
    promoting="right_shift", derivatives=0,
    example=("lax.shift_right_logical(16, 2)", "Array(4, dtype=int32, weak_type=True)"),
)

shift_right_arithmetic = binary(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", (INTEGER,),
    "Shift the bits of `x` down by `y` places and fill with copies of the sign bit.", promoting="right_shift",
    derivatives=0, example=("lax.shift_right_arithmetic(-16, 2)", "Array(-4, dtype=int32, weak_type=True)"),
)


# Comparisons

eq = compare(
    "eq", "EQ", "Return whether corresponding elements are equal.", "equal", ordered=False, of_words=AND,
    example=("lax.eq(1, 2)", "Array(False, dtype=bool, weak_type=True)"),
)

ne = compare(
    "ne", "NE", "Return whether corresponding elements differ.", "not_equal", ordered=False, of_words=OR,
    example=("lax.ne(1, 2)", "Array(True, dtype=bool, weak_type=True)"),
)

lt = compare(
    "lt", "LT", "Return whether elements of `x` are smaller than those of `y`.", "less",
    example=("lax.lt(1, 2)", "Array(True, dtype=bool, weak_type=True)"),
)

le = compare(
    "le", "LE", "Return whether elements of `x` are smaller than those of `y`, or equal.", "less_equal",
    example=("lax.le(1, 2)", "Array(True, dtype=bool, weak_type=True)"),
)

gt = compare(
    "gt", "GT", "Return whether elements of `x` are larger than those of `y`.", "greater",
    example=("lax.gt(1, 2)", "Array(False, dtype=bool, weak_type=True)"),
)

ge = compare(
    "ge", "GE", "Return whether elements of `x` are larger than those of `y`, or equal.", "greater_equal",
    example=("lax.ge(1, 2)", "Array(False, dtype=bool, weak_type=True)"),
)

eq_to = compare(
    "eq_to", "EQ", "Return whether corresponding elements are equal in the total order of floating numbers.", None,
    total=True,
)

lt_to = compare(
    "lt_to", "LT", "Return whether elements of `x` are smaller in the total order of floating numbers.", None,
    total=True,
)

le_to = compare(
    "le_to", "LE", "Return whether elements of `x` are smaller or equal in the total order of floating numbers.", None,
    total=True,
)
