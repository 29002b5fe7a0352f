"""The gamma function, factorials, binomial coefficients and the beta function."""

from __future__ import annotations

import fractions
import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import remainder, select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.ops.arrays.creation import zeros_like
from xtrace._src.ops.elementwise.complex_numbers import complex as of_parts
from xtrace._src.ops.elementwise.complex_numbers import conj, imag, real
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.elementwise.floating_point import signbit
from xtrace.numpy.elementwise.rounding import floor, rint
from xtrace.numpy.elementwise.ufuncs import abs, exp, expm1, log, log1p, maximum, minimum
from xtrace.numpy.manipulation.shapes import expand_dims
from xtrace.scipy.special.primitive import digamma, gammaln, refuse_complex, to_operands
from xtrace.scipy.special.series import evaluate_polynomial


@inline_jit(public=True)
def gammasgn(x: RealLike) -> Array:
    """Return the sign of the gamma function, 1 or -1; NaN at negative integers.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.gammasgn(-0.5)
        Array(-1., dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 5.2.
    """
    refuse_complex(x)
    (x,) = to_operands(x)
    below = floor(x)
    pole = (x < 0) & (x == below)
    negative = ((x < 0) & (remainder(below, 2) != 0)) | ((x == 0) & signbit(x))
    result = select_where(pole | (x != x), math.nan, select_where(negative, -1.0, 1.0))
    return convert_to(result, x.dtype)


@inline_jit(public=True)
def gamma(x: ArrayLike) -> Array:
    """Return the gamma function; NaN at negative integers.

    Args:
        x: an array of real or complex numbers.

    Returns:
        An array of the shape of `x` and a floating or complex dtype.

    Raises:
        TypeError: `x` is not an array or number.

    Example:
        >>> scipy.special.gamma(5.0)
        Array(24.000023, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 5.2.
    """
    (x,) = to_operands(x)
    if dtypes.is_complex(x.dtype):
        return exp(_compute_complex_loggamma(x))
    return gammasgn(x) * exp(gammaln(x))


@inline_jit(public=True)
def loggamma(x: ArrayLike) -> Array:
    """Return the logarithm of the gamma function; NaN for negative real numbers.

    For complex numbers it is the branch that is analytic except on the negative axis, where it continues from above.

    Args:
        x: an array of real or complex numbers.

    Returns:
        An array of the shape of `x` and a floating or complex dtype.

    Raises:
        TypeError: `x` is not an array or number.

    Example:
        >>> scipy.special.loggamma(5.0)
        Array(3.1780548, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 5.11(i), 5.7(i) and 5.5(ii): Stirling's series, the
        series at 1, reflection.
    """
    (x,) = to_operands(x)
    if dtypes.is_complex(x.dtype):
        return _compute_complex_loggamma(x)
    return select_where(x < 0, math.nan, gammaln(x))


# The remainder of Stirling's formula is the sum of B(2k) / (2k (2k - 1) z**(2k - 1)) (DLMF 5.11.1).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def _compute_stirling_remainder(z: Array) -> Array:
    inverse = 1 / z
    return evaluate_polynomial(inverse * inverse, _STIRLING) * inverse


# Coefficients of w**k: log gamma(1 + w) is -γ w + the sum of zeta(k) (-w)**k / k from k = 2 (DLMF 5.7.3).
_NEAR_ONE = (
    0.0, -0.5772156649015329, 0.8224670334241132, -0.40068563438653143, 0.27058080842778454, -0.207385551028674,
    0.16955717699740822, -0.14404989676884614, 0.12550966952474304, -0.11133426586956469, 0.10009945751278179,
    -0.09095401714582904, 0.083353840546109, -0.0769325164113522, 0.07143294629536134, -0.06666870588242046,
    0.06250095514121304, -0.05882397865868458, 0.055555767627403614, -0.05263167937961666, 0.05000004769810169,
    -0.04761907033014223, 0.04545455629320467, -0.04347826605304026, 0.04166666915034121, -0.04000000119214014,
    0.03846153903467519, -0.037037037312989324, 0.03571428584733336,
)


def _expand_near_zeros(z: Array, elsewhere: Array) -> Array:
    """Return log gamma near its zeros 1 and 2, and `elsewhere` otherwise."""
    second = real(z) > 1.5
    centred = z - convert_to(select_where(second, 2.0, 1.0), z.dtype)
    near = abs(centred) < 0.25
    centred = select_where(near, centred, 0.0)
    series = evaluate_polynomial(centred, _NEAR_ONE)
    return select_where(near, select_where(second, log1p(centred) + series, series), elsewhere)


def _compute_right_loggamma(z: Array) -> Array:
    """Return log gamma for real parts of at least 1/2 (Hare, Computing the Principal Branch of log-Gamma, 1997)."""
    far = abs(z) > 11
    side = select_where(imag(z) < 0, -1.0, 1.0)
    product: Any = select_where(far, 1.0, z)
    turns: Any = 0.0
    for k in range(1, 11):
        factor = select_where(far, 1.0, z + k)
        before, product = side * imag(product), product * factor
        # Count a full turn where the sum of the factors' angles passes half a turn.
        turns = turns + select_where((before >= 0) & (side * imag(product) < 0), side, 0.0)
    large = select_where(far, z, z + 11)
    logarithm = log(product) + of_parts(zeros_like(turns), 2 * math.pi * turns)
    result = (large - 0.5) * log(large) - large + math.log(2 * math.pi) / 2
    result = result + _compute_stirling_remainder(large) - logarithm
    return _expand_near_zeros(z, result)


def _compute_complex_loggamma(z: Array) -> Array:
    below = imag(z) < 0
    upper = select_where(below, conj(z), z)
    left = real(upper) < 0.5
    # log(sin(pi z)), analytic above the real axis (DLMF 5.5.3). The unselected branch must have a finite derivative.
    inner = select_where(left, upper, 0.25)
    turn = inner - convert_to(rint(real(inner)), z.dtype)
    sine = log(-expm1(2j * math.pi * turn)) - 1j * math.pi * (inner - 0.5) - math.log(2)
    result = _compute_right_loggamma(select_where(left, 1 - upper, upper))
    result = select_where(left, math.log(math.pi) - sine - result, result)
    pole = (imag(z) == 0) & (real(z) <= 0) & (real(z) == floor(real(z)))
    return select_where(pole, complex(math.nan, math.nan), select_where(below, conj(result), result))


@inline_jit(public=True)
def betaln(a: RealLike, b: RealLike) -> Array:
    """Return the logarithm of the absolute value of the beta function.

    Args:
        a, b: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.betaln(2.0, 3.0)
        Array(-2.4849074, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 5.12 and 5.11(i): Stirling's series for large
        arguments.
    """
    a, b = to_operands(a, b)
    a, b = minimum(a, b), maximum(a, b)
    large = select_where(b < 8, 8.0, b)
    ratio = a / large
    # log gamma(b) - log gamma(a + b) by Stirling's formula, with the large terms combined.
    rest = _compute_stirling_remainder(large) - _compute_stirling_remainder(select_where(b < 8, 8.0, a + b))
    difference = rest - a * (log(large) - 1) - (large + (a - 0.5)) * log1p(ratio)
    return gammaln(a) + select_where(b < 8, gammaln(b) - gammaln(a + b), difference)


@inline_jit(public=True)
def beta(a: RealLike, b: RealLike) -> Array:
    """Return the beta function, ``gamma(a) * gamma(b) / gamma(a + b)``.

    Args:
        a, b: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.beta(2.0, 3.0)
        Array(0.08333327, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 5.12.
    """
    refuse_complex(a, b)
    a, b = to_operands(a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * exp(betaln(a, b))


@custom_jvp
@inline_jit(public=True)
def poch(z: RealLike, m: RealLike) -> Array:
    """Return the rising factorial ``gamma(z + m) / gamma(z)``; 1 for m = 0.

    Args:
        z, m: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.poch(2.0, 3.0)
        Array(24.000023, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 5.2(iii).
    """
    refuse_complex(z, m)
    z, m = to_operands(z, m)
    return select_where(m == 0, 1.0, gamma(z + m) / gamma(z))


@poch.defjvp
def _poch_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    z, m = to_operands(*primals)
    result, above = poch(z, m), digamma(z + m)
    return result, result * (tangents[0] * (above - digamma(z)) + tangents[1] * above)


@inline_jit(static=("exact",), public=True)
def factorial(n: RealLike, exact: bool = False) -> Array:
    """Return the factorial, ``gamma(n + 1)``; 0 for negative numbers.

    Args:
        n: an array of real numbers.
        exact: not supported; leave it at False.

    Returns:
        An array of the shape of `n` and a floating dtype.

    Raises:
        NotImplementedError: `exact` is True.
        TypeError: `n` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.factorial(5)
        Array(120.00012, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 5.2.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True is not supported: use math.factorial of a Python integer")
    (n,) = to_operands(n)
    return select_where(n < 0, 0.0, exp(gammaln(n + 1)))


@inline_jit(static=("repetition",), public=True)
def comb(N: RealLike, k: RealLike, *, repetition: bool = False) -> Array:
    """Return the number of ways to choose `k` of `N` things, the binomial coefficient.

    Args:
        N, k: arrays of real numbers.
        repetition: whether a thing may be chosen several times.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.comb(5, 2)
        Array(9.999995, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 26.3.
    """
    n, k = to_operands(N, k)
    nothing = (k == 0) & (n >= 0)
    if repetition:
        n = n + k - 1
    inside = (k >= 0) & (k <= n)
    # The unselected branch must have a finite derivative.
    n, k = select_where(inside, n, 0.0), select_where(inside, k, 0.0)
    ways = exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
    return select_where(inside, ways, select_where(nothing, 1.0, 0.0) if repetition else 0.0)


@inline_jit(static=("d",), public=True)
def multigammaln(a: RealLike, d: int) -> Array:
    """Return the logarithm of the multivariate gamma function.

    Args:
        a: an array of real numbers.
        d: the number of dimensions, a positive integer.

    Returns:
        An array of the shape of `a` and a floating dtype.

    Raises:
        TypeError: `d` is not an integer, or `a` no array.

    Example:
        >>> scipy.special.multigammaln(3.0, 2)
        Array(1.5501953, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 35.3.
    """
    dimension = to_integer("d", d)
    (a,) = to_operands(a)
    halves = (np.arange(dimension) / 2).astype(a.dtype).reshape(*[1] * a.ndim, dimension)
    factors = gammaln(expand_dims(a, -1) - halves)
    return convert_to(factors.sum(-1) + dimension * (dimension - 1) / 4 * math.log(math.pi), a.dtype)


def bernoulli(n: int) -> Array:
    """Return the Bernoulli numbers B(0) to B(n), with B(1) = -1/2, computed exactly.

    Args:
        n: the last index, an integer.

    Returns:
        A vector of n + 1 floats.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: it is negative.

    Example:
        >>> scipy.special.bernoulli(2)
        Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 24.5(i): the recurrence of the numbers.
    """
    count = to_integer("n", n)
    if count < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, got {n}")
    numbers = [fractions.Fraction(1)]
    # The sum of binomial(m + 1, k) B(k) over k = 0 … m is 0.
    for m in range(1, count + 1):
        total = sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), fractions.Fraction(0))
        numbers.append(-total / (m + 1))
    return asarray([float(b) for b in numbers], dtypes.default_float(config.enable_x64.value))
