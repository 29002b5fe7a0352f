"""Integrals of exponentials, sines and cosines, and of logarithms."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import remainder, select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace.numpy.arrays.conversion import from_sequence
from xtrace.numpy.elementwise.rounding import floor
from xtrace.numpy.elementwise.ufuncs import abs, cos, exp, log, log1p, maximum, minimum, sin
from xtrace.scipy.special import fits
from xtrace.scipy.special.primitive import digamma, gammaln, to_operands, to_wide_operand
from xtrace.scipy.special.series import (
    evaluate_chebyshev,
    evaluate_polynomial,
    evaluate_quotient,
    extend_odd,
    split_square,
    to_real_operands,
)

_EULER = 0.57721566490153286061


# Exponential integrals (DLMF 6)

# The sum of -(-x)**k / (k k!) is E1(x) + log(x) + γ (DLMF 6.6.2).
_ENTIRE = (0.0, *[-((-1) ** k) / (k * math.factorial(k)) for k in range(1, 20)])
# The zero of Ei, split into a part of 20 bits and a remainder.
_ZERO = 0.37250741078136663446
_ZERO_HIGH, _ZERO_LOW = 390602 / 2**20, 0.37250741078136663446 - 390602 / 2**20
# The polynomial of the sum of (x**k - zero**k) / (k k!) divided by x - zero; its coefficients are positive.
_EI_QUOTIENT = tuple(sum(_ZERO ** (k - 1 - j) / (k * math.factorial(k)) for k in range(j + 1, 40)) for j in range(36))


def _compute_e1(x: Array) -> Array:
    inverse = 1 / maximum(x, 1.0)
    near = evaluate_polynomial(x, _ENTIRE) - (log(x) + _EULER)
    return select_where(x > 1, exp(-x) * inverse * evaluate_quotient(inverse, fits.EXPONENTIAL_INTEGRAL), near)


def _compute_ei(x: Array) -> Array:
    distance = (x - _ZERO_HIGH) - _ZERO_LOW
    # Near the zero the logarithm of the rounded quotient would lose digits.
    logarithm = select_where(abs(distance) < 0.08, log1p(distance / _ZERO), log(x / _ZERO))
    near = logarithm + distance * evaluate_polynomial(x, _EI_QUOTIENT)
    inverse = 1 / x
    far = evaluate_chebyshev(inverse, 0, 1 / 40, fits.EI_FAR)
    middle = evaluate_chebyshev(inverse, 1 / 40, 1 / 12, fits.EI_MIDDLE)
    near_tail = evaluate_chebyshev(inverse, 1 / 12, 1 / 4, fits.EI_NEAR)
    tail = select_where(x > 40, far, select_where(x > 12, middle, near_tail))
    return select_where(x > 4, select_where(x == math.inf, x, exp(x) * inverse * tail), near)


@custom_jvp
@inline_jit(public=True)
def exp1(x: RealLike) -> Array:
    """Return E1, the integral of ``exp(-t) / t`` from x to infinity; inf at 0, NaN for negative numbers.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.exp1(1.0)
        Array(0.21938396, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 6.2 and 6.6.
    """
    (x,), dtype = to_real_operands(x)
    return convert_to(_compute_e1(x), dtype)


exp1.defjvps(lambda t, y, x: t * (-exp(-x) / x))


@custom_jvp
@inline_jit(public=True)
def expi(x: RealLike) -> Array:
    """Return Ei, the principal value of the integral of ``exp(t) / t`` from -infinity to x; -inf at 0.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.expi(1.0)
        Array(1.8951176, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 6.2.
    """
    (x,), dtype = to_real_operands(x)
    return convert_to(select_where(x < 0, -_compute_e1(abs(x)), _compute_ei(abs(x))), dtype)


expi.defjvps(lambda t, y, x: t * (exp(x) / x))


def _sum_expn_series(n: Array, x: Array) -> Array:
    """Return the series DLMF 8.19.8, for x up to 1/2."""
    total: Array | float = 0.0
    power: Array | float = -1.0
    for k in range(20):
        below = k + 1 - n
        divisor = float(math.factorial(k)) * select_where(below == 0, 1.0, below)
        total = total + select_where(below == 0, 0.0, power / divisor)
        power = power * -x
    logarithm = log(x)
    size = exp((n - 1) * logarithm - gammaln(n))
    return total + select_where(remainder(n, 2) == 0, -size, size) * (digamma(n) - logarithm)


def _evaluate_expn_fraction(n: Array, x: Array) -> Array:
    """Return the even form of the continued fraction DLMF 8.19.17, for x >= 1/2."""
    count = 170 if x.dtype == dtypes.float64 else 48

    def step(i: Array, rest: Array) -> Array:
        k = convert_to(count - i, x.dtype)
        return k * (n + k - 1) / (x + n + 2 * k - rest)

    return exp(-x) / (x + n - fori_loop(0, count, step, 0 * x))


@custom_jvp
@inline_jit(public=True)
def expn(n: RealLike, x: RealLike) -> Array:
    """Return En, the integral of ``exp(-x * t) / t**n`` from 1 to infinity; NaN for negative n or x.

    Args:
        n: an array of integers, the orders; fractions are rounded down. There is no derivative by `n`.
        x: an array of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.expn(2, 1.0)
        Array(0.14849551, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 8.19.
    """
    (n, x), dtype = to_real_operands(*map(from_sequence, (n, x)))
    n = floor(n)
    near = _sum_expn_series(maximum(n, 1.0), minimum(x, 0.5))
    far = _evaluate_expn_fraction(maximum(n, 1.0), minimum(maximum(x, 0.5), 1e4))
    result = select_where(n == 0, exp(-x) / x, select_where(x > 0.5, far, near))
    at_zero = select_where(n > 1, 1 / select_where(n > 1, n - 1, 1.0), math.inf)
    result = select_where(x == 0, at_zero, select_where((n < 0) | (x < 0), math.nan, result))
    return convert_to(select_where((n != n) | (x != x), n + x, result), dtype)


@expn.defjvp
def _expn_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    n, x = to_operands(*primals)
    # E0 is exp(-x) / x.
    slope = select_where(n == 0, -exp(-x) * (1 / x + 1 / (x * x)), -expn(maximum(n - 1, 0.0), x))
    return expn(n, x), tangents[1] * slope


# Fresnel's integrals (DLMF 7)


def _reduce_phase(x: Array) -> Array:
    """Return pi x² / 2 modulo 2 pi."""
    high, low = split_square(x)
    return (math.pi / 2) * (remainder(high, 4) + low)


@custom_jvp
@inline_jit(public=True)
def fresnel(x: RealLike) -> tuple[Any, Any]:
    """Return the integrals S and C of ``sin(pi * t**2 / 2)`` and ``cos(pi * t**2 / 2)`` from 0 to x.

    Args:
        x: an array of real numbers.

    Returns:
        A pair of arrays of the shape of `x` and a floating dtype.

    Raises:
        NotImplementedError: `x` is complex.
        TypeError: `x` is not an array or number.

    Example:
        >>> scipy.special.fresnel(1.0)[1]
        Array(0.7798934, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 7.2(iii) and 7.5: the auxiliary functions f and g.
    """
    if dtypes.is_complex(operand_aval(x, 0).dtype):
        raise NotImplementedError("fresnel does not support complex-valued inputs; only real x")
    (x,), dtype = to_real_operands(x)
    size = abs(x)
    square = size * size
    fourth = square * square
    turns = _reduce_phase(minimum(size, 1 / float(dtypes.finfo(x.dtype).eps)))
    sine, cosine = sin(turns), cos(turns)
    inverse = 1 / (math.pi * square)
    fit_of_f: Any
    fit_of_g: Any
    if x.dtype == dtypes.float64:
        s, c = evaluate_quotient(fourth, fits.FRESNEL_S), evaluate_quotient(fourth, fits.FRESNEL_C)
        fit_of_f, fit_of_g = fits.FRESNEL_F, fits.FRESNEL_G
    else:
        s, c = evaluate_polynomial(fourth, fits.FRESNEL_S_NARROW), evaluate_polynomial(fourth, fits.FRESNEL_C_NARROW)
        fit_of_f, fit_of_g = fits.FRESNEL_F_NARROW, fits.FRESNEL_G_NARROW
    f = evaluate_quotient(inverse * inverse, fit_of_f) / (math.pi * size)
    g = evaluate_quotient(inverse * inverse, fit_of_g) * inverse / (math.pi * size)
    near = size <= 1.6
    s = select_where(near, size * square * s, 0.5 - (f * cosine + g * sine))
    c = select_where(near, size * c, 0.5 + (f * sine - g * cosine))
    return convert_to(extend_odd(x, s), dtype), convert_to(extend_odd(x, c), dtype)


@fresnel.defjvp
def _fresnel_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), dtype = to_real_operands(*primals)
    turns = _reduce_phase(x)
    t = tangents[0]
    return fresnel(primals[0]), (t * convert_to(sin(turns), dtype), t * convert_to(cos(turns), dtype))


# Sine and cosine integrals (DLMF 6.2)


@inline_jit(public=True)
@custom_jvp
def sici(x: RealLike) -> tuple[Any, Any]:
    """Return the sine integral Si(x) and the cosine integral Ci(|x|).

    Args:
        x: an array of real numbers.

    Returns:
        A pair of arrays of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.sici(1.0)[0]
        Array(0.94608307, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 6.2(ii) and (iii): the auxiliary functions f and g.
    """
    (x,), dtype = to_real_operands(x)
    size = abs(x)
    square = size * size
    finite = select_where(size == math.inf, 0.0, size)
    sine, cosine = sin(finite), cos(finite)
    inverse = 1 / maximum(square, 16.0)
    f = evaluate_quotient(inverse, fits.SICI_F) / size
    g = evaluate_quotient(inverse, fits.SICI_G) * inverse
    si = select_where(size <= 4, size * evaluate_quotient(square, fits.SI_NEAR), math.pi / 2 - (f * cosine + g * sine))
    near = (log(size) + _EULER) - square * evaluate_quotient(square, fits.CI_NEAR)
    ci = select_where(size <= 4, near, f * sine - g * cosine)
    return convert_to(extend_odd(x, si), dtype), convert_to(select_where(x == -math.inf, math.nan, ci), dtype)


def _sici_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,) = to_operands(*primals)
    zero = x == 0
    ratio = select_where(zero, 1.0, sin(x) / select_where(zero, 1.0, x))
    return sici(x), (tangents[0] * ratio, tangents[0] * (cos(x) / x))


sici.__wrapped__.defjvp(_sici_jvp)


# Spence's function (DLMF 25.12)

# For u = -log(x), the dilogarithm of 1 - x is u - u²/4 + the sum of B(2k) u**(2k + 1) / (2k + 1)!.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_DILOGARITHM = (1.0, *[b / math.factorial(2 * k + 3) for k, b in enumerate(_BERNOULLI)])


def _compute_dilogarithm(u: Array) -> Array:
    square = u * u
    return u * evaluate_polynomial(square, _DILOGARITHM) - square / 4


def _compute_log_complement(x: Array) -> Array:
    """Return log(1 - x), corrected by the rounding error of the difference; XLA's log1p loses 7 bits around -0.4."""
    rest = 1 - x
    return log(rest) + ((1 - rest) - x) / rest


@custom_jvp
@inline_jit(public=True)
def spence(x: RealLike) -> Array:
    """Return Spence's function, the integral of ``log(t) / (1 - t)`` from 1 to x; NaN for negative numbers.

    Args:
        x: an array of float32 or float64.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` has another dtype.

    Example:
        >>> scipy.special.spence(2.0)
        Array(-0.822467, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 25.12(i).
    """
    x = to_wide_operand(from_sequence(x))
    # Above 2 use the function at 1 / x, below 1/2 at 1 - x.
    inner = select_where(x > 2, 1 / x, x)
    small = inner < 0.5
    logarithm = log(inner)
    other = -_compute_log_complement(select_where(small, inner, 0.0))
    zero = inner == 0
    product = select_where(zero, 0.0, select_where(zero, 1.0, logarithm) * other)
    reflected = math.pi**2 / 6 + product - _compute_dilogarithm(other)
    result = select_where(small, reflected, _compute_dilogarithm(-logarithm))
    return select_where(x > 2, -result - logarithm * logarithm / 2, result)


@spence.defjvp
def _spence_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    x = to_wide_operand(primals[0])
    one = x == 1
    return spence(x), tangents[0] * select_where(one, -1.0, log(x) / select_where(one, 1.0, 1 - x))
