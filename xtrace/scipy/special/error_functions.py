"""Dawson's integral, the scaled complementary error function, and Faddeeva's function of complex numbers."""

from __future__ import annotations

import math
from typing import Any

from xtrace.algebra.vector_space import converted
from xtrace.api.custom_derivatives import custom_jvp
from xtrace.api.operators import choose
from xtrace.core import dtypes
from xtrace.numpy.ufuncs import abs, exp
from xtrace.ops.elementwise import imag
from xtrace.ops.special import chebyshev
from xtrace.scipy.special import fits
from xtrace.scipy.special.primitive import inlined, promoted
from xtrace.scipy.special.series import fitted, polynomial, quotient, real_operands, square_parts

_ROOT = math.sqrt(math.pi)


@custom_jvp
@inlined
def dawsn(x: Any) -> Any:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x. ValueError for complex numbers."""
    (x,), dtype = real_operands("dawsn", x)
    square = x * x
    inverse = 1 / square
    middle = fitted(inverse, 1 / 40, 1 / 16, fits.DAWSON_MIDDLE)
    far = fitted(inverse, 0, 1 / 40, fits.DAWSON_FAR)
    tail = choose(square < 40, middle, far) * (0.5 / x)
    return converted(choose(square < 16, x * quotient(square, fits.DAWSON_NEAR), tail), dtype)


# F' = 1 - 2 x F
dawsn.defjvps(lambda t, y, x: t * (1 - 2 * x * y))


def _scaled(x: Any) -> Any:
    size = abs(x)
    right = chebyshev(2 - 15 / (size + 3.75), fits.ERFCX) / (1 + 2 * size)
    # exp(x²) overflows long before 100.
    high, low = square_parts(choose(size < 100, x, 100.0))
    return choose(x < 0, 2 * exp(high) * exp(low) - right, right)


@custom_jvp
@inlined
def erfcx(x: Any) -> Any:
    """exp(x²) erfc(x), of real or complex numbers, without overflow for large positive x."""
    (value,) = promoted("erfcx", x)
    if dtypes.is_complex(value.dtype):
        return _faddeeva(1j * value)
    (x,), dtype = real_operands("erfcx", x)
    return converted(_scaled(x), dtype)


erfcx.defjvps(lambda t, y, x: t * (2 * x * y - 2 / _ROOT))


def _faddeeva(z: Any) -> Any:
    """Weideman, Computation of the Complex Error Function, SIAM J. Numer. Anal. 31 (1994), above the real axis."""
    scale = math.sqrt(len(fits.FADDEEVA) / math.sqrt(2))
    below = imag(z) < 0
    upper = choose(below, -z, z)
    inverse = 1 / (scale - 1j * upper)
    series = polynomial((scale + 1j * upper) * inverse, fits.FADDEEVA)
    found = (2 * series * inverse + 1 / _ROOT) * inverse
    # w(-z) = 2 exp(-z²) - w(z)
    return choose(below, 2 * exp(-z * z) - found, found)


@custom_jvp
@inlined
def wofz(z: Any) -> Any:
    """Faddeeva's function exp(-z²) erfc(-i z), complex also for real z; to rounding relative to its modulus."""
    (z,) = promoted("wofz", z)
    wide = z.dtype in (dtypes.float64, dtypes.complex128)
    return _faddeeva(converted(z, dtypes.complex128 if wide else dtypes.complex64))


# w' = -2 z w + 2 i / sqrt(pi)
wofz.defjvps(lambda t, y, z: t * (2j / _ROOT - 2 * z * y))
