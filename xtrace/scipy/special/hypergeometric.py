"""Hypergeometric functions of real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xtrace.algebra.vector_space import converted
from xtrace.api.custom_derivatives import custom_jvp
from xtrace.api.grad import jvp
from xtrace.api.operators import choose
from xtrace.core import dtypes
from xtrace.numpy.reductions import any
from xtrace.numpy.ufuncs import abs, exp, floor, maximum, minimum
from xtrace.ops.control_flow.while_loop import fori_loop, while_loop
from xtrace.scipy.special.factorials import gamma
from xtrace.scipy.special.primitive import inlined, operands
from xtrace.scipy.special.series import real_operands

# Terms of a series, far more than any value that is finite needs.
_TERMS = 5000


def _product(values: Sequence[Any]) -> Any:
    found: Any = 1.0
    for x in values:
        found = found * x
    return found


def _series(above: Sequence[Any], below: Any, x: Any) -> Any:
    """Return the sum of products of (a)_k over (b)_k x**k / k!, to rounding, and its derivatives too."""
    tolerance = float(dtypes.finfo(x.dtype).eps) / 1024

    def going(state: tuple[Any, ...]) -> Any:
        k, _, total, size, *_ = state
        return any(size > tolerance * maximum(abs(total), float(dtypes.finfo(x.dtype).tiny))) & (k < _TERMS)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, term, total, size, *given = state
        *above, below, x = given
        scale = x / ((below + k) * (k + 1))
        term = term * _product([a + k for a in above]) * scale
        # A term may vanish where its derivatives do not, and those after it.
        size = size * _product([maximum(abs(a + k), 1.0) for a in above]) * abs(scale)
        return (k + 1, term, total + term, size, *given)

    one = 0 * x + 1
    return while_loop(going, step, (converted(0, x.dtype), one, one, one, *above, below, x))[2]


def _slopes(formula: Callable[..., Any], values: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return what the tangents of the parameters add: forward derivatives, since loops have no others."""
    total: Any = 0.0
    for i, (value, tangent) in enumerate(zip(values, tangents, strict=True)):

        def of_one(moving: Any, i: int = i) -> Any:
            return formula(*values[:i], moving, *values[i + 1 :])

        total = total + jvp(of_one, (value,), (0 * value + 1,))[1] * tangent
    return total


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    # Kummer's transformation (DLMF 13.2.39): terms of alternating sign would cancel.
    negative = x < 0
    found = _series((choose(negative, b - a, a),), b, abs(x))
    return choose(negative, exp(minimum(x, 0.0)) * found, found)


@custom_jvp
@inlined
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's confluent hypergeometric function 1F1(a; b; x), by its series; 1 for a = b = 0.

    It is exact where the terms do not cancel: for a and b from 0 on. ValueError for complex numbers.
    """
    (a, b, x), dtype = real_operands("hyp1f1", a, b, x)
    nothing = (a == 0) | (x == 0)
    found = _hyp1f1(a, choose(nothing, 1.0, b), x)
    return converted(choose(nothing, 1.0, found), dtype)


@hyp1f1.defjvp
def _hyp1f1_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    a, b, x = operands("hyp1f1", *primals)
    (wide_a, wide_b, wide_x), dtype = real_operands("hyp1f1", a, b, x)
    of_parameters = _slopes(lambda a, b: _hyp1f1(a, b, wide_x), (wide_a, wide_b), tangents[:2])
    return hyp1f1(a, b, x), converted(of_parameters, dtype) + tangents[2] * (a / b * hyp1f1(a + 1, b + 1, x))


def _continued(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return 2F1 for x from 0 to 1: the series up to 1/2, then Taylor steps that halve the distance to 1.

    The coefficients of a step follow from the differential equation (DLMF 15.10.1). What is infinite at 1 becomes
    finite by Euler's transformation (DLMF 15.8.1).
    """
    excess = c - a - b
    infinite = (excess < 0) & (x > 0.5)
    a, b = choose(infinite, c - a, a), choose(infinite, c - b, b)
    wide = x.dtype == dtypes.float64
    count, limit = (60, 1 - 2.0**-53) if wide else (30, 1 - 2.0**-24)
    x = minimum(x, limit)
    start = minimum(x, 0.5)
    value = _series((a, b), c, start)
    slope = a * b / c * _series((a + 1, b + 1), c + 1, start)

    def going(state: tuple[Any, ...]) -> Any:
        return any(state[0] < state[-1])

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        place, value, slope, a, b, c, x = state
        reach = (1 - place) / 2
        part = minimum((x - place) / reach, 1.0)
        weight, first, linear = place * (1 - place), 1 - 2 * place, c - (a + b + 1) * place

        def term(i: Any, sums: tuple[Any, ...]) -> tuple[Any, ...]:
            one, two, power, value, slope = sums
            k = converted(i, x.dtype)
            new = (k + a) * (k + b) * reach * reach * one - (first * k + linear) * (k + 1) * reach * two
            new = new / (weight * (k + 1) * (k + 2))
            return two, new, power * part, value + new * power * part, slope + (k + 2) * new * power

        initial = (value, slope * reach, part, value + slope * reach * part, slope * reach)
        _, _, _, value, slope = fori_loop(0, count, term, initial)
        return choose(part < 1, x, place + reach), value, slope / reach, a, b, c, x

    # Up to 1/2 the value is there already.
    found = while_loop(going, step, (0 * x + 0.5, value, slope, a, b, c, maximum(x, 0.5)))[1]
    return choose(infinite, (1 - x) ** choose(infinite, excess, 1.0), 1.0) * found


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    # Pfaff's transformation (DLMF 15.8.1).
    negative = x < 0
    below = minimum(x, 0.0)
    found = _continued(a, choose(negative, c - b, b), c, choose(negative, below / (below - 1), x))
    return choose(negative, (1 - below) ** -a, 1.0) * found


@custom_jvp
@inlined
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's hypergeometric function 2F1(a, b; c; x) for x up to 1, NaN beyond. ValueError for complex numbers.

    It is exact where the terms of its series up to 1/2 do not cancel, for parameters that are not large and negative.
    """
    (a, b, c, x), dtype = real_operands("hyp2f1", a, b, c, x)
    nothing = (a == 0) | (b == 0) | (x == 0)
    found = _hyp2f1(a, b, choose(nothing, 1.0, c), x)
    # At 1 (DLMF 15.4.20); a polynomial has a value there in any case.
    excess = c - a - b
    ends = ((a <= 0) & (a == floor(a))) | ((b <= 0) & (b == floor(b)))
    at_one = choose(excess > 0, gamma(c) * gamma(excess) / (gamma(c - a) * gamma(c - b)), math.inf)
    found = choose((x == 1) & ~ends, at_one, choose(x > 1, math.nan, found))
    return converted(choose(nothing, 1.0, found), dtype)


@hyp2f1.defjvp
def _hyp2f1_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    a, b, c, x = operands("hyp2f1", *primals)
    *wide, wide_x = real_operands("hyp2f1", a, b, c, x)[0]
    of_parameters = _slopes(lambda a, b, c: _hyp2f1(a, b, c, wide_x), wide, tangents[:3])
    of_x = a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)
    return hyp2f1(a, b, c, x), converted(of_parameters, x.dtype) + tangents[3] * of_x
