"""Special functions of lax: error, Bessel, gamma and incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.families import Elementwise, Unary, mul, neg
from xtrace._src.algebra.kinds import FLOAT
from xtrace._src.algebra.vector_space import convert_element_type
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import no_rule
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.comparisons import gt
from xtrace._src.ops.elementwise.constants import constant_like, constants_like, number_like
from xtrace._src.ops.elementwise.elementwise import abs, add, exp, reciprocal, sign, sqrt, square, sub
from xtrace._src.ops.elementwise.selection import select


def compute_in_float32(formula: Callable[..., Any]) -> Callable[..., Array]:
    """Return `formula` with operands of narrower dtypes computed in float32."""

    def compute(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtypes.bit_width(dtype) < 32:
            operands = tuple([convert_element_type(x, dtypes.float32) for x in operands])
        return convert_element_type(formula(*operands), dtype)

    compute.__name__ = formula.__name__
    return compute


# Error functions


def _gaussian(t: Array, x: Array, factor: float) -> Array:
    """Return factor t exp(-x²)."""
    return mul(number_like(x, factor), mul(t, exp(neg(square(x)))))


@Unary.define("chlo.erf", (FLOAT,), derivatives=lambda t, x, r: _gaussian(t, x, 2 / math.sqrt(math.pi)))
def erf(x: ArrayLike | Literal) -> Array:
    """Return the error function of each element.

    Example:
        >>> lax.erf(0.5)
        Array(0.5204999, dtype=float32, weak_type=True)

    Reference:
        DLMF 7.2.1.
    """
    ...


@Unary.define("chlo.erfc", (FLOAT,), derivatives=lambda t, x, r: _gaussian(t, x, -2 / math.sqrt(math.pi)))
def erfc(x: ArrayLike | Literal) -> Array:
    """Return the complementary error function 1 - erf(x), exact for large elements.

    Example:
        >>> lax.erfc(2.0)
        Array(0.00467773, dtype=float32, weak_type=True)

    Reference:
        DLMF 7.2.2.
    """
    ...


@Unary.define(
    "chlo.erf_inv", (FLOAT,),
    derivatives=lambda t, x, r: mul(number_like(x, math.sqrt(math.pi) / 2), mul(t, exp(square(r)))),
)
def erf_inv(x: ArrayLike | Literal) -> Array:
    """Return the inverse of the error function; infinite at -1 and 1, and NaN outside [-1, 1].

    Example:
        >>> lax.erf_inv(0.5)
        Array(0.47693628, dtype=float32, weak_type=True)

    Reference:
        DLMF 7.17.
    """
    ...


# Bessel functions


# Chebyshev coefficients of exp(-x) I0(x) on [0, 8], in x / 4 - 1, and of sqrt(x) exp(-x) I0(x) from 8 on, in
# 16 / x - 1, each from the constant term; computed to 100 digits. Cephes has the same series.
_I0E_NEAR = (
    0.6767952744094761, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
    0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11,
    2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14,
    1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
)
_I0E_FAR = (
    0.8044904110141088, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13,
    3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15,
    3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
)


def chebyshev(x: Any, coefficients: tuple[float, ...]) -> Array:
    """Return the Chebyshev series at x / 2 by Clenshaw's recurrence, without terms below the dtype's precision."""
    smallest = float(dtypes.finfo(x.dtype).eps) * 1e-2
    kept = [c for c in coefficients if c > smallest or -c > smallest]
    later: Array = constants_like(x, 0)
    one = two = later
    for coefficient in reversed(kept):
        one, two, later = x * one - two + coefficient, one, two
    return 0.5 * (one - later)


@lower_fun
@compute_in_float32
def _bessel_i0e(x: Array) -> Array:
    x = abs(x)
    near = chebyshev(0.5 * x - 2, _I0E_NEAR)
    far = chebyshev(32 / x - 2, _I0E_FAR) / sqrt(x)
    return select(x <= 8, near, far)


# I0' = I1
def _bessel_i0e_derivative(t: Array, x: Array, r: Array) -> Array:
    return mul(t, sub(bessel_i1e(x), mul(sign(x), r)))


@Unary.define(_bessel_i0e, (FLOAT,), derivatives=_bessel_i0e_derivative)
def bessel_i0e(x: ArrayLike | Literal) -> Array:
    """Return the modified Bessel function of the first kind of order 0, times exp(-abs(x)).

    Example:
        >>> lax.bessel_i0e(1.0)
        Array(0.46575963, dtype=float32, weak_type=True)

    Reference:
        DLMF 10.25.2; computed by Chebyshev series in two intervals, as Cephes does.
    """
    ...


# I1'(x) = I0(x) - I1(x) / x, which is 1/2 at 0; the factor exp(-|x|) adds -sign(x).
def _bessel_i1e_derivative(t: Array, x: Array, r: Array) -> Array:
    smallest = dtypes.finfo(aval_of(x).dtype).eps
    is_far = gt(abs(x), constant_like(x, smallest))
    divisor = select(is_far, x, constants_like(x, smallest))
    slope = sub(bessel_i0e(divisor), mul(r, add(sign(divisor), reciprocal(divisor))))
    return mul(t, select(is_far, slope, constants_like(x, 0.5)))


@Unary.define("chlo.bessel_i1e", (FLOAT,), derivatives=_bessel_i1e_derivative)
def bessel_i1e(x: ArrayLike | Literal) -> Array:
    """Return the modified Bessel function of the first kind of order 1, times exp(-abs(x)).

    Example:
        >>> lax.bessel_i1e(1.0)
        Array(0.20791042, dtype=float32, weak_type=True)

    Reference:
        DLMF 10.25.2.
    """
    ...


# The gamma function and its derivatives

def _polygamma_by_order(*_: Array) -> Array:
    raise ValueError("polygamma gradient with respect to m is not supported; only that with respect to x is known")


def _polygamma_by_x(t: Array, m: Array, x: Array, r: Array) -> Array:
    return mul(t, polygamma(add(m, constant_like(m, 1)), x))


@Elementwise.define("chlo.polygamma", (FLOAT,), operands=2, derivatives=(_polygamma_by_order, _polygamma_by_x))
def polygamma(m: ArrayLike | Literal, x: ArrayLike | Literal) -> Array:
    """Return the derivative of order m + 1 of the logarithm of the gamma function at `x`.

    Example:
        >>> lax.polygamma(1.0, 1.0)
        Array(1.644934, dtype=float32, weak_type=True)

    Reference:
        DLMF 5.15.
    """
    ...


@Unary.define("chlo.digamma", (FLOAT,), derivatives=lambda t, x, r: mul(t, polygamma(number_like(x, 1), x)))
def digamma(x: ArrayLike | Literal) -> Array:
    """Return the derivative of the logarithm of the gamma function.

    Example:
        >>> lax.digamma(1.0)
        Array(-0.5772154, dtype=float32, weak_type=True)

    Reference:
        DLMF 5.2.2.
    """
    ...


@Unary.define("chlo.lgamma", (FLOAT,), derivatives=lambda t, x, r: mul(t, digamma(x)))
def lgamma(x: ArrayLike | Literal) -> Array:
    """Return the logarithm of the absolute value of the gamma function.

    Example:
        >>> lax.lgamma(4.0)
        Array(1.7917603, dtype=float32, weak_type=True)

    Reference:
        DLMF 5.2.1.
    """
    ...


_zeta_by_x = no_rule(
    "zeta: the derivative with respect to x is not implemented; only that with respect to q is known"
)


def _zeta_by_q(t: Array, x: Array, q: Array, r: Array) -> Array:
    return mul(t, mul(neg(x), zeta(add(x, constant_like(x, 1)), q)))


@Elementwise.define("chlo.zeta", (FLOAT,), operands=2, derivatives=(_zeta_by_x, _zeta_by_q))
def zeta(x: ArrayLike | Literal, q: ArrayLike | Literal) -> Array:
    """Return the Hurwitz zeta function, the sum of (k + q)**-x over k = 0, 1, ….

    Example:
        >>> lax.zeta(2.0, 1.0)
        Array(1.644934, dtype=float32, weak_type=True)

    Reference:
        DLMF 25.11.1.
    """
    ...
