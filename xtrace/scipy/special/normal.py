"""The normal distribution's cumulative function, its logarithm and its inverse."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.elementwise.elementwise import mul
from xtrace._src.ops.elementwise.special import erfc
from xtrace.numpy.arrays.conversion import from_sequence
from xtrace.numpy.elementwise.ufuncs import exp, log, maximum, minimum, sqrt, square
from xtrace.scipy.special.primitive import to_wide_operand
from xtrace.scipy.special.series import evaluate_quotient

_LOG_ROOT = math.log(2 * math.pi) / 2


@inline_jit(public=True)
def ndtr(x: RealLike) -> Array:
    """Return the cumulative distribution function of the normal distribution.

    Args:
        x: an array of float32 or float64.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` has another dtype.

    Example:
        >>> scipy.special.ndtr(0.0)
        Array(0.5, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 7.18(i).
    """
    x = from_sequence(x)
    return 0.5 * erfc(to_wide_operand(x) * -math.sqrt(0.5))


# The range of log(ndtr) by dtype: below it the series is exact to rounding, above it -ndtr(-x) is.
_BOUNDS = {dtypes.float32: (-10.0, 5.0), dtypes.float64: (-20.0, 8.0)}


def _sum_series(x: Array, order: int) -> RealLike:
    """Return 1 - 1/x² + 3/x⁴ - 15/x⁶ … with `order` terms after the first (DLMF 7.12.1)."""
    inverse = 1 / square(x)
    total: RealLike = 1.0
    factor, power = 1.0, inverse
    for n in range(1, order + 1):
        factor *= -(2 * n - 1)
        total = total + factor * power
        power = power * inverse
    return total


@inline_jit
def _log_ndtr_value(x: Array, *, order: int) -> Array:
    x = to_wide_operand(x)
    lower, upper = _BOUNDS[x.dtype]
    far = minimum(x, lower)
    tail = -square(far) / 2 - log(-far) - _LOG_ROOT + log(_sum_series(far, order))
    return select_where(x > upper, -ndtr(-x), select_where(x > lower, log(ndtr(maximum(x, lower))), tail))


_log_ndtr = custom_jvp(lambda x, order: _log_ndtr_value(x, order=order), nondiff_argnums=(1,))


@_log_ndtr.defjvp
def _log_ndtr_jvp(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,) = primals
    result = _log_ndtr(x, order)
    # The slope is the density over the function, by the difference of their logarithms.
    return result, mul(tangents[0], exp(-square(x) / 2 - result - _LOG_ROOT))


def log_ndtr(x: RealLike, series_order: int = 3) -> Array:
    """Return the logarithm of `ndtr`, accurate in both tails.

    Args:
        x: an array of float32 or float64.
        series_order: the number of terms of the asymptotic series far below 0, from 0 to 30.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` has another dtype, or `series_order` is not an integer.
        ValueError: `series_order` is out of range.

    Example:
        >>> scipy.special.log_ndtr(-20.0)
        Array(-203.91716, dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 7.12(i).
    """
    order = to_integer("series_order", series_order)
    if not 0 <= order <= 30:
        raise ValueError(f"log_ndtr: series_order must be from 0 to 30, got {order}")
    return _log_ndtr(from_sequence(x), order)


# Wichura, Algorithm AS 241: The Percentage Points of the Normal Distribution, 1988 (PPND16): quotients of polynomials,
# numerator and denominator from the constant term, for the middle, the outer part and the tails.
_MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)
_OUTER = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)


@custom_jvp
@inline_jit(public=True)
def ndtri(p: RealLike) -> Array:
    """Return the inverse of `ndtr`: -inf at 0, inf at 1, NaN outside of [0, 1].

    Args:
        p: an array of float32 or float64.

    Returns:
        An array of the shape and dtype of `p`.

    Raises:
        TypeError: `p` has another dtype.

    Example:
        >>> scipy.special.ndtri(0.5)
        Array(0., dtype=float32)

    Reference:
        M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution" (1988).
    """
    p = to_wide_operand(p)
    centred = p - 0.5
    middle = centred * evaluate_quotient(0.180625 - square(centred), _MIDDLE)
    tail = minimum(p, 1 - p)
    distance = sqrt(-log(tail))
    size = select_where(distance <= 5, evaluate_quotient(distance - 1.6, _OUTER), evaluate_quotient(distance - 5, _FAR))
    quantile = select_where((centred > -0.425) & (centred < 0.425), middle, select_where(centred < 0, -size, size))
    return select_where(p == 0, -math.inf, select_where(p == 1, math.inf, quantile))


# The slope is one over the density at the result.
ndtri.defjvps(lambda t, y, p: t * exp(square(y) / 2 + _LOG_ROOT))
