"""Dawson's integral, scaled and inverse complementary error functions, and Faddeeva's function of complex numbers."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import cast_as, select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.elementwise.complex_numbers import imag
from xtrace._src.ops.elementwise.special import erfc
from xtrace.numpy.elementwise.ufuncs import abs, exp, maximum, minimum
from xtrace.scipy.special import fits
from xtrace.scipy.special.normal import ndtri
from xtrace.scipy.special.primitive import promote_operands
from xtrace.scipy.special.series import (
    evaluate_chebyshev,
    evaluate_in_groups,
    evaluate_polynomial,
    evaluate_quotient,
    split_square,
    to_real_operands,
)

_ROOT = math.sqrt(math.pi)


@custom_jvp
@inline_jit(public=True)
def dawsn(x: RealLike) -> Array:
    """Return Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to x.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.dawsn(1.0)
        Array(0.5380795, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 7.2(ii).
    """
    (x,), dtype = to_real_operands(x)
    square = x * x
    inverse = 1 / square
    middle = evaluate_chebyshev(inverse, 1 / 40, 1 / 16, fits.DAWSON_MIDDLE)
    far = evaluate_chebyshev(inverse, 0, 1 / 40, fits.DAWSON_FAR)
    tail = select_where(square < 40, middle, far) * (0.5 / x)
    return convert_to(select_where(square < 16, x * evaluate_quotient(square, fits.DAWSON_NEAR), tail), dtype)


# F' = 1 - 2 x F
dawsn.defjvps(lambda t, y, x: t * (1 - 2 * x * y))


def _scale_erfc(x: Array) -> Array:
    # Above this limit the asymptotic expansion (DLMF 7.12.1) is exact to rounding. Up to it erfc(x) is a normal
    # number.
    limit, count = (25.0, 8) if x.dtype == dtypes.float64 else (9.0, 5)
    inverse = 0.5 / (x * x)
    far = evaluate_polynomial(inverse, tuple(math.prod(range(1 - 2 * k, 0, 2)) for k in range(count))) / (_ROOT * x)
    # For positive x, erfc contains exp(-x²) with x² rounded, which cancels. For negative x, erfc is at least 1.
    x = maximum(x, -2 * limit)
    high, low = split_square(x)
    high, low = select_where(x < 0, high, x * x), select_where(x < 0, low, 0.0)
    return select_where(x > limit, far, exp(high) * erfc(x) * exp(low))


@custom_jvp
@inline_jit(public=True)
def erfcx(x: ArrayLike) -> Array:
    """Return ``exp(x**2) * erfc(x)``, without overflow for large positive x.

    Args:
        x: an array of real or complex numbers.

    Returns:
        An array of the shape of `x` and a floating or complex dtype.

    Raises:
        TypeError: `x` is not an array or number.

    Example:
        >>> scipy.special.erfcx(10.0)
        Array(0.05614099, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 7.12(i), for large arguments.
    """
    (value,) = promote_operands(x)
    if dtypes.is_complex(value.dtype):
        return _compute_faddeeva(1j * value)
    (x,), dtype = to_real_operands(x)
    return convert_to(_scale_erfc(x), dtype)


erfcx.defjvps(lambda t, y, x: t * (2 * x * y - 2 / _ROOT))


def _compute_faddeeva(z: Array) -> Array:
    """Return w(z) (Weideman, Computation of the Complex Error Function, 1994), by reflection below the real axis."""
    wide = z.dtype == dtypes.complex128
    coefficients = fits.FADDEEVA if wide else fits.FADDEEVA_NARROW
    scale = math.sqrt(len(coefficients) / math.sqrt(2))
    below = imag(z) < 0
    turned = 1j * select_where(below, -z, z)
    inverse = 1 / (scale - turned)
    ratio = (scale + turned) * inverse
    series = evaluate_in_groups(ratio, coefficients, 8) if wide else evaluate_polynomial(ratio, coefficients)
    upper = (2 * series * inverse + 1 / _ROOT) * inverse
    # w(-z) = 2 exp(-z²) - w(z)
    return select_where(below, 2 * exp(-z * z) - upper, upper)


@custom_jvp
@inline_jit(public=True)
def wofz(z: ArrayLike) -> Array:
    """Return Faddeeva's function ``exp(-z**2) * erfc(-1j * z)``.

    Args:
        z: an array of real or complex numbers.

    Returns:
        An array of the shape of `z` and a complex dtype.

    Raises:
        TypeError: `z` is not an array or number.

    Example:
        >>> scipy.special.wofz(0.0)
        Array(0.9999998+0.j, dtype=complex64)

    Reference:
        J. A. C. Weideman, "Computation of the complex error function" (1994).
    """
    (z,) = promote_operands(z)
    wide = z.dtype in (dtypes.float64, dtypes.complex128)
    return _compute_faddeeva(convert_to(z, dtypes.complex128 if wide else dtypes.complex64))


# w' = -2 z w + 2 i / sqrt(pi)
wofz.defjvps(lambda t, y, z: t * (2j / _ROOT - 2 * z * y))


@custom_jvp
@inline_jit(public=True)
def erfcinv(y: RealLike) -> Array:
    """Return the inverse of `erfc`: infinite at 0 and 2, and NaN outside of [0, 2].

    Args:
        y: an array of real numbers.

    Returns:
        An array of the shape of `y` and a floating dtype.

    Raises:
        TypeError: `y` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.erfcinv(0.5)
        Array(0.47693628, dtype=float32)

    Reference:
        erfc(x) is 2 ndtr(-sqrt(2) x); NIST Digital Library of Mathematical Functions, section 7.17.
    """
    (y,), dtype = to_real_operands(y)
    return convert_to(select_where(y == 1, 0.0, ndtri(0.5 * y) * -math.sqrt(0.5)), dtype)


# dx/dy = -sqrt(π)/2 exp(x²), and exp(x²) is erfcx(|x|) / min(y, 2 - y), which does not magnify the error of x by x².
@erfcinv.defjvp
def _erfcinv_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (y,), (t,) = primals, tangents
    x = erfcinv(y)
    value = cast_as(x, y)
    tail = minimum(value, 2 - value)
    return x, t * cast_as(t, select_where(tail == 0, -math.inf, -0.5 * _ROOT * erfcx(abs(x)) / tail))
