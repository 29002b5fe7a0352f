"""Hypergeometric functions of real numbers.

Each is the regular solution at 0 of a linear differential equation of second order (DLMF 13.2.1, 15.10.1). The power
series gives the values up to the point where its terms begin to cancel. From there Taylor series about successive
points continue the solution. It grows as fast as any other solution in that direction, so relative errors do not grow.
(Pearson, Olver and Porter, Numerical methods for the computation of the confluent and Gauss hypergeometric functions,
2017, compare the methods.) Solutions that do not grow are polynomials; they come from a recurrence in the degree.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.differentiation.grad import jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.jit.jit import jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.control_flow.while_loop import fori_loop, while_loop
from xtrace._src.ops.custom_rules.symbolic_zeros import SymbolicZero
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace.numpy.arrays.conversion import from_sequence
from xtrace.numpy.elementwise.rounding import floor, rint
from xtrace.numpy.elementwise.ufuncs import abs, exp, log, maximum, minimum, sign, sin, sqrt
from xtrace.numpy.reductions.reductions import any
from xtrace.scipy.special.primitive import gammaln, to_operands
from xtrace.scipy.special.series import to_real_operands

# The largest number of terms of a series and of steps of a continuation or recurrence; finite values need far fewer.
_TERMS = 5000

# The distance to the nearest singular point, and the coefficients of a recurrence (see `_continue`).
_Equation = tuple[Array, Array, ArrayLike, Array, Callable[[ArrayLike], Array]]


def _sum_series(above: Array, other: Array, below: Array, x: Array, far: Array | None = None) -> tuple[Any, Any]:
    """Return the sum of (a)_k (b)_k / (c)_k x**k / k! over k, and x times its derivative by x.

    These, and the derivatives by parameters, are exact to rounding. Where `far` is 1 the terms lack (c)_k; where it is
    0 they lack (b)_k.
    """
    tolerance = float(dtypes.finfo(x.dtype).eps) / 1024
    tiny = float(dtypes.finfo(x.dtype).tiny)
    has = (1.0, 1.0) if far is None else (far, 1 - far)

    def is_unfinished(state: tuple[Array, ...]) -> Array:
        k, _, _, _, size, *_ = state
        return any(size > 0) & (k < _TERMS)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        k, term, total, slope, size, above, other, below, x, *has = state
        one, two, three = above + k, other + k * has[0], below + k * has[1]
        # The terms of an asymptotic expansion grow again.
        scale = select_where(size > tolerance * maximum(abs(total), tiny), x / (three * (k + 1)), 0.0)
        term = term * one * two * scale
        # Terms may vanish while their derivatives and the following terms do not.
        size = size * maximum(abs(one), 1.0) * maximum(abs(two), 1.0) * abs(scale)
        return k + 1, term, total + term, slope + (k + 1) * term, size, above, other, below, x, *has

    one = 0 * x + 1
    state = while_loop(
        is_unfinished, step, (convert_to(0, x.dtype), one, one, 0 * x, one, above, other, below, x, *has)
    )
    return state[2], state[3]


def _continue(
    equation: Callable[..., Any], place: Array, value: Array, slope: Array, x: Array, given: Sequence[Any]
) -> Array:
    """Return the solution of a differential equation at `x` from its value and slope at `place`.

    ``equation(place, *given)`` returns the distance to the nearest singular point, weight, first, linear and product:
    weight (k + 1) (k + 2) c[k + 2] = product(k) c[k] - (k + 1) (first k + linear) c[k + 1] for the Taylor coefficients.
    """
    count, smallest = 60 if x.dtype == dtypes.float64 else 30, float(dtypes.finfo(x.dtype).tiny)

    def is_unfinished(state: tuple[Array, ...]) -> Array:
        steps, place, _, _, x, *_ = state
        return any(abs(x - place) > 0) & (steps < _TERMS)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        steps, place, last, slope, x, *given = state
        distance, weight, first, linear, product = equation(place, *given)
        here = place == x
        weight = select_where(here, 1.0, weight)
        # This bounds the growth rate of solutions. Over the chosen distance the terms do not cancel.
        size = abs(stop_gradient(linear))
        rate = size + sqrt(size * size + 4 * abs(stop_gradient(weight * product(0.0))))
        reach = minimum(0.5 * distance, 4 * abs(weight) / maximum(rate, smallest))
        reach = select_where(here, 1.0, reach)
        part = (x - place) / reach
        following = select_where(abs(part) < 1, x, place + reach * sign(part))
        part = (following - place) / reach

        def term(i: ArrayLike, sums: tuple[Any, ...]) -> tuple[Any, ...]:
            one, two, power, value, slope = sums
            k = convert_to(i, x.dtype)
            new = product(k) * reach * reach * one - (first * k + linear) * (k + 1) * reach * two
            new = new / (weight * (k + 1) * (k + 2))
            return two, new, power * part, value + new * power * part, slope + (k + 2) * new * power

        initial = (last, slope * reach, part, last + slope * reach * part, slope * reach)
        _, _, _, value, slope = fori_loop(0, count, term, initial)
        moved = select_where(here, last, value), slope / reach
        return (steps + 1, following, *moved, x, *given)

    return while_loop(is_unfinished, step, (convert_to(0, x.dtype), place, value, slope, x, *given))[2]


def _sum_forward_derivatives(
    formula: Callable[..., Array], values: Sequence[Any], tangents: Sequence[Any]
) -> Array | float:
    """Return the tangent due to the parameters, in forward mode: while loops have no reverse mode.

    Higher derivatives are in forward mode, too.
    """
    total: Array | float = 0.0
    for i, tangent in enumerate(tangents):
        if type(tangent) is SymbolicZero:
            continue

        def differentiate(*values: ArrayLike, i: int = i) -> Array:
            def vary(moving: ArrayLike) -> Array:
                return formula(*values[:i], moving, *values[i + 1 :])

            return jvp(vary, (values[i],), (0 * values[i] + 1,))[1]

        total = total + _make_forward_differentiable(differentiate)(*values) * tangent
    return total


def _compute_tangent(
    formula: Callable[..., Array], values: Sequence[Any], tangents: Sequence[Any], slope_in_last: Callable[[], Array]
) -> Array | float:
    """Return a tangent: by the parameters from `formula`, by the last value from its slope, ``slope_in_last()``."""
    total: Array | float = 0.0
    if not all(type(t) is SymbolicZero for t in tangents[:-1]):
        wide, dtype = to_real_operands(*values)
        total = convert_to(_sum_forward_derivatives(formula, wide, tangents[:-1]), dtype)
    return total if type(tangents[-1]) is SymbolicZero else total + tangents[-1] * slope_in_last()


def _make_forward_differentiable(formula: Callable[..., Array]) -> Callable[..., Any]:
    """Return `formula` with a jvp rule that reverse mode can transpose."""
    differentiable = custom_jvp(formula)
    differentiable.defjvp(
        lambda values, tangents: (differentiable(*values), _sum_forward_derivatives(formula, values, tangents)),
        symbolic_zeros=True,
    )
    return differentiable


def _is_finite_series(a: Array) -> Array:
    """Return whether a is 0 or a negative integer: a series with the factor (a)_k is then finite."""
    return (a <= 0) & (a == floor(a))


def _iterate_recurrence(a: Array, following: Callable[..., Any], given: Sequence[Any]) -> Array:
    """Return the polynomial of degree -a by ``last, now = following(k, last, now, a, *given)`` from 1 and 1."""

    def is_unfinished(state: tuple[Array, ...]) -> Array:
        k, a, *_ = state
        return any(k < -a) & (k < _TERMS)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        k, a, last, now, *given = state
        pair = following(k, last, now, a, *given)
        kept = [select_where(k < -a, new, old) for new, old in zip(pair, (last, now), strict=True)]
        return (k + 1, a, *kept, *given)

    one = 0 * a + 1
    return while_loop(is_unfinished, step, (convert_to(0, a.dtype), a, one, one, *given))[3]


@jit
def _split_reciprocal_gamma(a: Array) -> tuple[Array, Array]:
    """Return a factor and a logarithm with 1 / Γ(a) = factor * exp(logarithm) (DLMF 5.5.3)."""
    left, nearest = a < 0.5, rint(a)
    turned = sin(math.pi * (a - nearest)) / math.pi * select_where(2 * rint(0.5 * nearest) == nearest, 1.0, -1.0)
    return select_where(left, turned, 1.0), select_where(left, 1.0, -1.0) * gammaln(select_where(left, 1 - a, a))


# Kummer's function


def _kummer_equation(z: Array, a: Array, b: Array) -> _Equation:
    """Return the recurrence of z w'' + (b - z) w' - a w = 0 (DLMF 13.2.1)."""
    return abs(z), z, 1.0, b - z, lambda k: a + k


def _compute_kummer_factor(a: Array, b: Array, x: Array) -> Array:
    """Return the factor of the asymptotic expansion (DLMF 13.7.2)."""
    factor, logarithm = _split_reciprocal_gamma(select_where(x > 0, a, b - a))
    pole, other = _split_reciprocal_gamma(b)
    power = select_where(x > 0, a - b, -a) * log(abs(x)) + maximum(x, 0.0)
    return factor / pole * exp(power + logarithm - other)


def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    fixed_a, fixed_b, size, left = stop_gradient(a), stop_gradient(b), abs(x), x < 0
    far = size > 50 + 2 * maximum(abs(fixed_a), 1.0) * maximum(abs(fixed_b - fixed_a), 1.0)
    # Use Kummer's transformation (DLMF 13.2.39) where its terms have one sign, or grow less than without it.
    forward = select_where(left, fixed_b - fixed_a, fixed_a)
    steady = select_where(forward < 0, forward >= fixed_b, (fixed_b > 0) | ~left)
    turned = select_where(steady, left, abs(fixed_b - fixed_a) < abs(fixed_a))
    above = select_where(turned, b - a, a)
    # Up to the limit the terms of the series neither cancel nor overflow. Beyond it the second solution, x**(1 - b)
    # near 0, must not exceed the result.
    growth = abs(stop_gradient(above)) + 1
    longest = select_where(turned, minimum(20.0, 400 / growth), math.inf)
    share = select_where(fixed_b < 0, minimum(0.5, 4 / growth), 1 / growth)
    limit = select_where(steady, longest, abs(fixed_b) * share)
    start = sign(x) * minimum(size, limit)
    inner = select_where(turned, -start, start)
    total, moved = _sum_series(
        select_where(far, select_where(left, a, 1 - a), above),
        select_where(far, select_where(left, a - b + 1, b - a), 1.0),
        select_where(far, 1.0, b), select_where(far, 1 / size, inner), select_where(far, 1.0, 0.0),
    )
    factor = select_where(turned, exp(start), 1.0)
    slope = factor * (moved / select_where(start == 0, 1.0, start) + select_where(turned, total, 0.0))
    near = _continue(_kummer_equation, start, factor * total, slope, select_where(far, start, x), (a, b))
    return select_where(far, _compute_kummer_factor(a, b, select_where(far, x, 100.0)) * total, near)


def _step_laguerre(k: Array, last: Array, now: Array, a: Array, b: Array, z: Array) -> tuple[Any, Any]:
    """Return the next two terms of the recurrence in the first parameter (DLMF 13.3.1)."""
    return now, ((2 * k + b - z) * now - k * last) / (b + k)


@inline_jit(public=True)
@custom_jvp
def hyp1f1(a: RealLike, b: RealLike, x: RealLike) -> Array:
    """Return Kummer's confluent hypergeometric function 1F1(a; b; x).

    Args:
        a, b, x: arrays of real numbers. Digits are lost where b is large and negative, and x too.

    Returns:
        An array of the broadcast shape and the promoted floating dtype. inf at a pole in b, 1 for x = 0.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.hyp1f1(1.0, 1.0, 1.0)
        Array(2.7182817, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 13.2: the series and Kummer's transformation.
    """
    (a, b, x), dtype = to_real_operands(*map(from_sequence, (a, b, x)))
    polynomial, pole, rest = _is_finite_series(a), _is_finite_series(b), b - a
    other = _is_finite_series(rest) & ((b > -1) | (rest == 0))
    degree = select_where(polynomial, a, select_where(other, rest, 0.0))
    ended = _iterate_recurrence(degree, _step_laguerre, (b, select_where(polynomial, x, -x)))
    series = _hyp1f1(a, select_where(pole, 1.0, b), x)
    value = select_where(polynomial, ended, select_where(other, exp(x) * ended, series))
    value = select_where(pole & ~(polynomial & (a >= b)), math.inf, value)
    return convert_to(select_where(x == 0, 1.0, value), dtype)


@functools.partial(hyp1f1.__wrapped__.defjvp, symbolic_zeros=True)
def _hyp1f1_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    a, b, x = to_operands(*primals)

    def slope_in_x() -> Array:
        return a / b * hyp1f1(a + 1, b + 1, x)

    return hyp1f1(a, b, x), _compute_tangent(_hyp1f1, (a, b, x), tangents, slope_in_x)


# Gauss' function


def _gauss_equation(z: Array, a: Array, b: Array, c: Array) -> _Equation:
    """Return the recurrence of z (1 - z) w'' + (c - (a + b + 1) z) w' - a b w = 0 (DLMF 15.10.1)."""
    return minimum(abs(z), 1 - z), z * (1 - z), 1 - 2 * z, c - (a + b + 1) * z, lambda k: (a + k) * (b + k)


def _find_largest_argument(a: Array, b: Array, c: Array) -> Array:
    """Return the largest argument, up to 1, for which the terms of the series do not cancel."""
    largest = maximum(abs(a * b / c), abs((a + 1) * (b + 1) / (2 * (c + 1))))
    # If the first two ratios of terms are at most 2, the others are not much larger.
    one_sign = ((a >= 0) & (b >= 0)) | ((c > 0) & (2 * maximum(a, b) <= minimum(a, b)))
    return select_where(one_sign, 1.0, 2 / maximum(largest, 2.0))


def _hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    left = x < 0
    z = x / select_where(left, x - 1, 1.0)
    # Use a transformation of Pfaff for negative x, and none or Euler's for positive x (DLMF 15.8.1).
    forms = [
        (a, select_where(left, c - b, b), select_where(left, -a, 0.0)),
        (c - a, select_where(left, b, c - b), select_where(left, -b, c - a - b)),
    ]
    limits = [_find_largest_argument(*[stop_gradient(v) for v in (*form[:2], c)]) for form in forms]
    excess = stop_gradient(c - forms[0][0] - forms[0][1])
    second = select_where(((z > 0.5) & (c > 0)) | (limits[0] == limits[1]), excess < 0, limits[1] > limits[0])
    p, q, exponent = (select_where(second, two, one) for one, two in zip(*forms, strict=True))
    # The terms decrease at least like a power of order 10 even at 1.
    limit = select_where(select_where(second, -excess, excess) > 10, select_where(left, 0.75, 1.0), 0.5)
    start = minimum(minimum(z, select_where(second, limits[1], limits[0])), limit)
    total, moved = _sum_series(p, q, c, start)
    slope = moved / select_where(start == 0, 1.0, start)
    # For negative x continue in x, since z approaches 1.
    ratio = select_where(left, 1 - start, 1.0)
    place = select_where(start == z, x, start / select_where(left, start - 1, 1.0))
    before, after = ratio**-exponent, (1 - x) ** select_where(left, 0.0, exponent)
    slope = select_where(left, -before * ratio * (exponent * total + ratio * slope), slope)
    given = select_where(left, a, p), select_where(left, b, q), c
    return after * _continue(_gauss_equation, place, select_where(left, before, 1.0) * total, slope, x, given)


def _step_jacobi(k: Array, last: Array, now: Array, a: Array, b: Array, c: Array, z: Array) -> tuple[Any, Any]:
    """Return two terms of the recurrence in the first parameter (DLMF 15.5.11); for negative c, a term and the sum."""
    term = last * (a + k) * (b + k) * z / ((c + k) * (k + 1))
    recurring = ((2 * k + c - (b + k) * z) * now + k * (z - 1) * last) / (c + k)
    return select_where(c > -1, now, term), select_where(c > -1, recurring, now + term)


def _find_degree(a: Array, b: Array) -> Array:
    """Return the degree of a series with (a)_k (b)_k, inf where it is not finite."""
    return minimum(select_where(_is_finite_series(a), -a, math.inf), select_where(_is_finite_series(b), -b, math.inf))


@inline_jit(public=True)
@custom_jvp
def hyp2f1(a: RealLike, b: RealLike, c: RealLike, x: RealLike) -> Array:
    """Return Gauss's hypergeometric function 2F1(a, b; c; x).

    Args:
        a, b, c, x: arrays of real numbers. Digits are lost where c is large and negative.

    Returns:
        An array of the broadcast shape and the promoted floating dtype. inf at a pole in c and, unless the series ends,
        for x above 1; 1 for x = 0.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5)
        Array(1.3862946, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 15.2, 15.4 and 15.8: the series and its
        transformations.
    """
    (a, b, c, x), dtype = to_real_operands(*map(from_sequence, (a, b, c, x)))
    excess, pole = c - a - b, _is_finite_series(c)
    own, turned_degree = _find_degree(a, b), _find_degree(c - a, c - b)
    turned = (turned_degree < own) & ~pole
    degree = select_where(turned, turned_degree, own)
    short = degree < math.inf
    first = select_where(turned, c - a, a)
    other = select_where(first == -degree, select_where(turned, c - b, b), first)
    ended = _iterate_recurrence(select_where(short, -degree, 0.0), _step_jacobi, (other, c, x))
    ended = select_where(turned, (1 - x) ** select_where(turned, excess, 1.0), 1.0) * ended
    # At 1 (DLMF 15.4.20 and 15.4.23).
    finite = excess > 0
    above = [_split_reciprocal_gamma(select_where(finite, c - v, v)) for v in (a, b)]
    under = [_split_reciprocal_gamma(v) for v in (c, abs(excess))]
    logarithm = above[0][1] + above[1][1] - under[0][1] - under[1][1]
    factor = above[0][0] * above[1][0] / (under[0][0] * under[1][0])
    infinite = select_where(factor < 0, -math.inf, math.inf)
    at_one = select_where(finite, factor * exp(select_where(finite, logarithm, 0.0)), infinite)
    nothing = (a == 0) | (b == 0) | (x == 0)
    usual = ~(nothing | short | pole | (x >= 1))
    value = _hyp2f1(*[select_where(usual, v, 0.5) for v in (a, b, c, x)])
    value = select_where(short, ended, select_where(x == 1, at_one, value))
    # Above 1 a finite sum may still have a factor that is not real.
    divergent = (x > 1) & (~short | (turned & (floor(excess) != excess)))
    value = select_where((pole & ~(own <= -c)) | divergent, math.inf, value)
    return convert_to(select_where(nothing, 1.0, value), dtype)


@functools.partial(hyp2f1.__wrapped__.defjvp, symbolic_zeros=True)
def _hyp2f1_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    a, b, c, x = to_operands(*primals)

    def slope_in_x() -> Array:
        return a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)

    return hyp2f1(a, b, c, x), _compute_tangent(_hyp2f1, (a, b, c, x), tangents, slope_in_x)
