"""Rows of elementwise functions."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.differential.arguments import EVERY, FORMS, PAIRS, family, given_as, operand, sampled
from tests.support.draws import Row


@st.composite
def paired(draw: Any, dtypes: Any = EVERY, kind: str = "quarters", forms: Any = FORMS, count: int = 2) -> Any:
    """Draw operands whose shapes broadcast, mostly; of one dtype half of the time."""
    shapes = draw(st.sampled_from(PAIRS))
    first = draw(st.sampled_from(dtypes))
    same = draw(st.booleans())
    chosen = [first] if same else dtypes
    return tuple([draw(operand(chosen, [shapes[i % 2]], kind, forms)) for i in range(count)]), {}


def unary(dtypes: Any = EVERY, kind: str = "any", **changes: Any) -> Row:
    """Return the row of a function of one operand."""
    return Row(given_as(operand(dtypes, kind=kind)), **changes)


def binary(dtypes: Any = EVERY, kind: str = "any", **changes: Any) -> Row:
    """Return the row of a function of two operands that broadcast."""
    return Row(paired(dtypes, kind), **changes)


NUMPY: dict[str, Row] = {
    **family("abs absolute fabs positive negative sign square conj conjugate real imag angle iscomplex isreal isfinite "
             "isinf isnan isposinf isneginf nan_to_num signbit frexp spacing invert bitwise_invert bitwise_not "
             "bitwise_count logical_not floor ceil trunc rint modf isrealobj iscomplexobj isscalar", unary()),
    **family("reciprocal exp exp2 expm1 log log1p log2 log10 sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
             "arcsinh arccosh arctanh acos acosh asin asinh atan atanh deg2rad rad2deg degrees radians sinc i0",
             unary(kind="quarters")),
    **family("add subtract multiply maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor left_shift "
             "right_shift bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor equal not_equal "
             "less less_equal greater greater_equal heaviside copysign nextafter gcd lcm ldexp isclose", binary()),
    **family("divide true_divide floor_divide remainder mod fmod divmod power pow float_power arctan2 hypot",
             binary(kind="quarters")),
    # Under this name jax wraps negative weak integers to the unsigned type beside them.
    "atan2": binary(kind="positive"),
    # Shares of complex numbers may be small where parts of them are not.
    **family("logaddexp logaddexp2", binary(kind="quarters", floor=1.0)),
    **family("round around", Row(given_as(operand(kind="any"), decimals=sampled(0, 1, 2, -1)))),
    "clip": Row(paired(count=3)),
    "where": Row(paired(count=3)),
}
