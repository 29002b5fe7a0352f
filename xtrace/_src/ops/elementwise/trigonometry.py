"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.families import (
    AccuracyMode,
    Binary,
    Tolerance,
    Unary,
)
from xtrace._src.algebra.families import mul as mul
from xtrace._src.algebra.families import neg as neg
from xtrace._src.algebra.kinds import (
    COMPLEX,
    INEXACT,
)
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.constants import constant_like, constants_like, number_like
from xtrace._src.ops.elementwise.elementwise import add, div, expm1, reciprocal, rsqrt, square, sub
from xtrace._src.ops.elementwise.selection import select

with late_modules(globals()):
    from xtrace._src.ops.elementwise.complex_numbers import complex, imag, real

# In derivatives t is the tangent, x and y are the operands, r is the result.


def _sine_parts(x: Array) -> tuple[Any, ...]:
    """Return a, sin a, cos a, sinh b and cosh b for x = a + ib; expm1(b) keeps sinh exact near zero."""
    a, b = real(x), imag(x)
    up, down = expm1(b), expm1(-b)
    return a, sin(a), cos(a), (up - down) / 2, (up + down + 2) / 2


# sin(a + ib) = sin a cosh b + i cos a sinh b; on the imaginary axis 0 * inf must not make the real part NaN.
@lower_fun
def _complex_sine(x: Array, *, accuracy: object) -> Array:
    a, sin_a, cos_a, sinh_b, cosh_b = _sine_parts(x)
    return complex(select(a == 0, constants_like(a, 0), sin_a * cosh_b), cos_a * sinh_b)


# cos(a + ib) = cos a cosh b - i sin a sinh b
@lower_fun
def _complex_cosine(x: Array, *, accuracy: object) -> Array:
    a, sin_a, cos_a, sinh_b, cosh_b = _sine_parts(x)
    return complex(cos_a * cosh_b, select(a == 0, constants_like(a, 0), -sin_a * sinh_b))


def _sin_derivative(t: Array, x: Array, r: Array, accuracy: Any) -> Array:
    return mul(t, cos(x, accuracy=accuracy))


@Unary.define("stablehlo.sine", INEXACT, cases={COMPLEX: _complex_sine}, derivatives=_sin_derivative)
def sin(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the sine of each element, an angle in radians.

    Example:
        >>> lax.sin(1.0)
        Array(0.84147096, dtype=float32, weak_type=True)
    """
    ...


@Unary.define(
    "stablehlo.cosine", INEXACT, cases={COMPLEX: _complex_cosine},
    derivatives=lambda t, x, r, accuracy: neg(mul(t, sin(x, accuracy=accuracy))),
)
def cos(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the cosine of each element, an angle in radians.

    Example:
        >>> lax.cos(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.tan", INEXACT, derivatives=lambda t, x, r, **_: mul(t, add(number_like(r, 1), square(r))))
def tan(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the tangent of each element, an angle in radians.

    Example:
        >>> lax.tan(1.0)
        Array(1.5574077, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("chlo.asin", INEXACT, derivatives=lambda t, x, r: mul(t, rsqrt(sub(number_like(x, 1), square(x)))))
def asin(x: ArrayLike | Literal) -> Array:
    """Return the inverse sine of each element in radians; NaN for real numbers outside [-1, 1].

    Example:
        >>> lax.asin(1.0)
        Array(1.5707964, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("chlo.acos", INEXACT, derivatives=lambda t, x, r: mul(t, neg(rsqrt(sub(number_like(x, 1), square(x))))))
def acos(x: ArrayLike | Literal) -> Array:
    """Return the inverse cosine of each element in radians; NaN for real numbers outside [-1, 1].

    Example:
        >>> lax.acos(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@Unary.define("chlo.atan", INEXACT, derivatives=lambda t, x, r: div(t, add(number_like(x, 1), square(x))))
def atan(x: ArrayLike | Literal) -> Array:
    """Return the inverse tangent of each element in radians.

    Example:
        >>> lax.atan(1.0)
        Array(0.7853982, dtype=float32, weak_type=True)
    """
    ...


def _sinh_derivative(t: Array, x: Array, r: Array) -> Array:
    return mul(t, cosh(x))


@Unary.define("chlo.sinh", INEXACT, derivatives=_sinh_derivative)
def sinh(x: ArrayLike | Literal) -> Array:
    """Return the hyperbolic sine of each element.

    Example:
        >>> lax.sinh(1.0)
        Array(1.1752012, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("chlo.cosh", INEXACT, derivatives=lambda t, x, r: mul(t, sinh(x)))
def cosh(x: ArrayLike | Literal) -> Array:
    """Return the hyperbolic cosine of each element.

    Example:
        >>> lax.cosh(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@Unary.define(
    "stablehlo.tanh", INEXACT, derivatives=lambda t, x, r, **_: mul(add(t, mul(t, r)), sub(constant_like(r, 1), r)),
)
def tanh(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the hyperbolic tangent of each element.

    Example:
        >>> lax.tanh(1.0)
        Array(0.7615942, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("chlo.asinh", INEXACT, derivatives=lambda t, x, r: mul(t, rsqrt(add(square(x), constant_like(x, 1)))))
def asinh(x: ArrayLike | Literal) -> Array:
    """Return the inverse hyperbolic sine of each element.

    Example:
        >>> lax.asinh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@Unary.define("chlo.acosh", INEXACT, derivatives=lambda t, x, r: mul(t, rsqrt(sub(square(x), constant_like(x, 1)))))
def acosh(x: ArrayLike | Literal) -> Array:
    """Return the inverse hyperbolic cosine of each element; NaN for real numbers below 1.

    Example:
        >>> lax.acosh(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


# 1 / (1 - x²) in two factors, which keep their precision near -1 and 1.
@Unary.define(
    "chlo.atanh", INEXACT,
    derivatives=lambda t, x, r: mul(reciprocal(add(constant_like(x, 1), x)), div(t, sub(constant_like(x, 1), x))),
)
def atanh(x: ArrayLike | Literal) -> Array:
    """Return the inverse hyperbolic tangent of each element; NaN for real numbers outside [-1, 1].

    Example:
        >>> lax.atanh(0.5)
        Array(0.54930615, dtype=float32, weak_type=True)
    """
    ...


@Binary.define(
    "stablehlo.atan2", INEXACT, promoting="arctan2", derivatives=(
        lambda t, x, y, r: mul(t, div(y, add(square(x), square(y)))),
        lambda t, x, y, r: mul(t, div(neg(x), add(square(x), square(y)))),
    ),
)
def atan2(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the angle in radians between the positive horizontal axis and the point with abscissa `y`, ordinate `x`.

    Example:
        >>> lax.atan2(1.0, -1.0)
        Array(2.3561945, dtype=float32, weak_type=True)
    """
    ...
