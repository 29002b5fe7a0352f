"""Incomplete gamma and beta functions, and the derivative of samples from the gamma distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.families import Elementwise, mul, neg
from xtrace._src.algebra.kinds import FLOAT
from xtrace._src.algebra.vector_space import broadcast_in_dim
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import no_rule
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.ops.calls.lower_fun import lower_fun, repeat_while
from xtrace._src.ops.elementwise.constants import constant_like, constants_like
from xtrace._src.ops.elementwise.elementwise import abs, add, div, exp, log, log1p, sign, sqrt, sub
from xtrace._src.ops.elementwise.selection import clamp, select
from xtrace._src.ops.elementwise.special import compute_in_float32, digamma, erfc, lgamma
from xtrace._src.ops.reductions.reductions import reduce_or
from xtrace._src.transforms.jvp import jvp

# The incomplete gamma functions P and Q = 1 - P: a series for P where x is small, a continued fraction for Q elsewhere
# (Abramowitz and Stegun 6.5.29 and 6.5.31; the fraction's convergents as in Cephes' igamc). The derivatives with
# respect to a differentiate the recurrences term by term (Figurnov, Mohamed and Mnih, Implicit Reparameterization
# Gradients, 2018).

# The maximal number of terms. For x near a it is proportional to the square root of a; without a maximum the series
# would not end for a float32 a + n that rounds to a.
_MOST_TERMS, _MOST_CONVERGENTS = 20000, 2000


def _until_small(
    step: Callable[..., Any], active: Any, values: Sequence[Any], given: Sequence[Any], most: int = _MOST_CONVERGENTS
) -> list[Any]:
    """Return `values` after repeating ``more, values = step(n, *values, *given)`` for n = 1, 2, ….

    An element is final if it is not `active`, or once its `more` is False. The loop ends when all elements are final,
    or after `most` steps.
    """
    count, axes = len(values), tuple(range(active.ndim))

    def any_active(n: Array, active: Array, *_: Array) -> Array:
        return reduce_or(active, axes) & (n < most)

    def advance(n: ArrayLike, active: object, *rest: Array) -> list[Any]:
        more, advanced = step(n + 1, *rest)
        kept = [select(active, new, old) for new, old in zip(advanced, rest[:count], strict=True)]
        return [n + 1, active & more, *kept, *rest[count:]]

    first = broadcast_in_dim(constant_like(values[0], 0), (), ())
    return repeat_while(any_active, advance, [first, active, *values, *given])[2 : 2 + count]


def _gamma_series(a: Array, x: Array, active: object, differentiated: bool) -> tuple[Any, Any]:
    """Return the sum of x**n / ((a + 1) … (a + n)) over n = 0, 1, …, and its derivative by a.

    The sum ends when its value, or with `differentiated` its derivative, has converged.
    """
    smallest = float(dtypes.finfo(x.dtype).eps)

    def step(n: ArrayLike, divisor: Any, term: Any, total: ArrayLike, term_slope: Any, slope: Any, x: ArrayLike) -> Any:
        divisor = divisor + 1
        ratio = x / divisor
        term_slope = term_slope * ratio - term * x / (divisor * divisor)
        term = term * ratio
        total, slope = total + term, slope + term_slope
        change = abs(term_slope / slope) if differentiated else term / total
        return change > smallest, (divisor, term, total, term_slope, slope)

    zero, one = constants_like(x, 0), constants_like(x, 1)
    _, _, total, _, slope = _until_small(step, active, [a, one, one, zero, zero], [x], _MOST_TERMS)
    return total, slope


def _gamma_fraction(a: Array, x: Array, active: object, differentiated: bool) -> tuple[Any, Any]:
    """Return the continued fraction 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …)) of Q, and its derivative by a."""
    smallest = float(dtypes.finfo(x.dtype).eps)

    def step(
        n: ArrayLike, fraction: Any, slope: Any, p2: Any, q2: Any, p1: Any, q1: Any, dp2: Any, dq2: Any, dp1: Any,
        dq1: Any, a: ArrayLike, x: ArrayLike,
    ) -> Any:
        # Numerators and denominators of three successive convergents, and their derivatives.
        y = n + 1 - a
        z = x + y + n + 1
        numerator = y * n
        p, q = p1 * z - p2 * numerator, q1 * z - q2 * numerator
        dp = dp1 * z - p1 - dp2 * numerator + p2 * n
        dq = dq1 * z - q1 - dq2 * numerator + q2 * n
        divides = q != 0
        divisor = select(divides, q, constants_like(q, 1))
        now = select(divides, p / divisor, fraction)
        now_slope = select(divides, (dp - now * dq) / divisor, slope)
        if differentiated:
            change = abs(now_slope - slope)
        else:
            change = abs((fraction - now) / now)
        change = select(divides, change, constants_like(change, 1))
        scale = select(abs(p) > 1 / smallest, constants_like(p, smallest), constants_like(p, 1))
        kept = [value * scale for value in (p1, q1, p, q, dp1, dq1, dp, dq)]
        return change > smallest, (now, now_slope, *kept)

    zero, one = constants_like(x, 0), constants_like(x, 1)
    p1, q1 = x + 1, (x + 2 - a) * x
    fraction = p1 / q1
    # The derivative of q1 by a is -x.
    start = [fraction, fraction * x / q1, one, x, p1, q1, zero, zero, zero, -x]
    fraction, slope, *_ = _until_small(step, active, start, [a, x])
    return fraction, slope


def _is_far(x: Array) -> Array:
    """Return the mask of elements whose squares may overflow; there P(a, x) is 0 for a > x and 1 for a < x."""
    return x > math.pow(dtypes.finfo(x.dtype).max, 0.5) / 16


def _mask_regular(a: Array, x: Array) -> tuple[Any, Any, Any]:
    """Return the mask of elements for which P(a, x) is computed, and `a` and `x` with 1 in place of the others."""
    regular = (a > 0) & (x > 0) & ~_is_far(x)
    one = constants_like(x, 1)
    return regular, select(regular, a, one), select(regular, x, one)


# For large parameters the logarithm of a density is a difference of large numbers. Near the mean, Stirling's formula
# (DLMF 5.11.1) cancels the large parts: with u = (x - a) / a, a log x - x - log Γ(a) becomes
# a (log(1 + u) - u) + log(a / 2π) / 2 - δ(a).
_LARGE = 16
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def _stirling_remainder(a: Any) -> Any:
    """Return δ(a), the remainder of Stirling's formula for log Γ(a), for large `a`."""
    rest = constants_like(a, 0)
    for coefficient in reversed(_STIRLING):
        rest = rest / (a * a) + coefficient
    return rest / a


# (artanh(r) - r) / r³ as a polynomial in r² up to 1/9, interpolated at Chebyshev points, for float32 and float64.
_ARTANH_REMAINDER = {
    32: (0.33333333325011805, 0.2000000538497483, 0.1428515286094183, 0.11132355604500663, 0.08732351232720387,
         0.10393808427873376),
    64: (0.3333333333333333, 0.19999999999999762, 0.1428571428580005, 0.11111111099118386, 0.09090909948981357,
         0.07692271982430275, 0.06667589315724629, 0.05867139530651599, 0.05422589197440007, 0.03746071897775383,
         0.07815288900461426),
}


def _log1p_remainder(u: Any) -> Any:
    """Return log(1 + u) - u for u in [-1/2, 1/2], as 2 artanh(r) - u with r = u / (2 + u)."""
    r = u / (2 + u)
    square = r * r
    total = constants_like(u, 0)
    for coefficient in reversed(_ARTANH_REMAINDER[dtypes.bit_width(u.dtype)]):
        total = total * square + coefficient
    return 2 * square * r * total - u * r


def _log_density(a: Array, x: Array) -> Array:
    """Return log(x**a exp(-x) / Γ(a))."""
    u = (x - a) / a
    near = (a > _LARGE) & (abs(u) < 0.5)
    u = select(near, u, constants_like(u, 0))
    central = a * _log1p_remainder(u) + 0.5 * log(a / (2 * math.pi)) - _stirling_remainder(a)
    return select(near, central, a * log(x) - x - lgamma(a))


# From this parameter on, for float32 and float64, Temme's uniform expansion has full precision (DLMF 8.12.3, with the
# coefficients of 8.12.8). The series and the fraction would need about sqrt(a) terms.
_UNIFORM = {32: 2.0**14, 64: 2.0**17}
_UNIFORM_TERMS = (
    (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515, -571 / 261273600),
    (-1 / 540, -1 / 288, 1 / 378, -77 / 77760, 1 / 4860),
)


def _uniform(a: Array, x: Array, upper: bool) -> Array:
    """Return Q(a, x) if `upper`, P(a, x) otherwise, for large `a`."""
    # Beyond these bounds both are 0 or 1.
    u = clamp(constants_like(x, -0.5), (x - a) / a, constants_like(x, 0.5))
    # -η² / 2 = log(1 + u) - u.
    half_square = -_log1p_remainder(u)
    eta = sign(u) * sqrt(2 * half_square)
    rest: Array = constants_like(x, 0)
    for terms in reversed(_UNIFORM_TERMS):
        total = constants_like(x, 0)
        for coefficient in reversed(terms):
            total = total * eta + coefficient
        rest = rest / a + total
    rest = rest * exp(-a * half_square) / sqrt(2 * math.pi * a)
    distance = eta * sqrt(a / 2)
    return 0.5 * erfc(distance) + rest if upper else 0.5 * erfc(-distance) - rest


def _incomplete_gamma(upper: bool) -> Any:
    """Return the formula of Q if `upper`, of P otherwise."""

    def formula(a: Array, x: Array) -> Array:
        regular, inner_a, inner_x = _mask_regular(a, x)
        # At x = a P is computed by its series and Q by its fraction.
        if upper:
            by_fraction = (inner_x >= 1) & (inner_x >= inner_a)
        else:
            by_fraction = (inner_x > 1) & (inner_x > inner_a)
        uniform = (inner_a > _UNIFORM[dtypes.bit_width(x.dtype)]) & (inner_a < math.inf)
        total, _ = _gamma_series(inner_a, inner_x, regular & ~by_fraction & ~uniform, False)
        fraction, _ = _gamma_fraction(inner_a, inner_x, regular & by_fraction & ~uniform, False)
        density = exp(_log_density(inner_a, inner_x))
        below, above = total * density / inner_a, fraction * density
        inside = select(by_fraction, above, 1 - below) if upper else select(by_fraction, 1 - above, below)
        nowhere, everywhere = [constants_like(x, v) for v in ((1, 0) if upper else (0, 1))]
        if not upper:
            # The density underflows where P is 1 to rounding.
            inside = select(inner_a < 1e-3 * float(dtypes.finfo(x.dtype).eps), everywhere, inside)
        inside = select(uniform, _uniform(select(uniform, inner_a, inner_x + 1), inner_x, upper), inside)
        # P is 0 for x = 0 and 1 for a = 0 or x = inf; it is NaN outside of the domain and where both are 0.
        edge = select((x == 0) & (a > 0), nowhere, constants_like(x, math.nan))
        far = select(a > x, nowhere, select((a == x) & (x < math.inf), constants_like(x, 0.5), everywhere))
        edge = select((a > 0) & _is_far(x), far, edge)
        edge = select((a == 0) & (x > 0), everywhere, edge)
        result = select(regular, inside, edge)
        if not is_newer():
            return result
        return select((a == math.inf) & (x > 0), select(x < math.inf, nowhere, constants_like(x, math.nan)), result)

    formula.__name__ = "igammac" if upper else "igamma"
    return lower_fun(compute_in_float32(formula))


def _slope_over_density(a: Array, x: Array) -> tuple[Any, ...]:
    """Return the mask of computed elements, dP(a, x)/da divided by x**a exp(-x) / Γ(a), and the masked `a` and `x`."""
    regular, inner_a, inner_x = _mask_regular(a, x)
    by_fraction = (inner_x > 1) & (inner_x > inner_a)
    total, slope = _gamma_series(inner_a, inner_x, regular & ~by_fraction, True)
    # The series has the factor x**a exp(-x) / Γ(a + 1).
    below = (slope + total * (log(inner_x) - digamma(inner_a + 1))) / inner_a
    fraction, slope = _gamma_fraction(inner_a, inner_x, regular & by_fraction, True)
    above = slope + fraction * (log(inner_x) - digamma(inner_a))
    return regular, select(by_fraction, -above, below), inner_a, inner_x


def _fill_edges(a: Array, x: Array, regular: object, inside: object) -> Array:
    """Return `inside` where `regular`, 0 for x = 0 and for large finite `x`, and NaN elsewhere."""
    zero = constants_like(x, 0)
    flat = (a > 0) & ((x == 0) | (_is_far(x) & (x < math.inf)))
    return select(regular, inside, select(flat, zero, constants_like(x, math.nan)))


@lower_fun
@compute_in_float32
def _igamma_grad_a(a: Array, x: Array) -> Array:
    regular, ratio, inner_a, inner_x = _slope_over_density(a, x)
    return _fill_edges(a, x, regular, ratio * exp(_log_density(inner_a, inner_x)))


def _sample_slope(a: Array, x: Array) -> Array:
    # By the implicit function theorem -(dP/da) / (dP/dx); dP/dx is x**a exp(-x) / Γ(a) divided by x.
    regular, ratio, _, inner_x = _slope_over_density(a, x)
    return _fill_edges(a, x, regular, -ratio * inner_x)


@lower_fun
@compute_in_float32
def _sample_slope_by_a(a: Array, x: Array) -> Any:
    return jvp(lambda a: [_sample_slope(a, x)], [a], [constants_like(a, 1)])[1][0]


# The density x**(a - 1) exp(-x) / Γ(a).
def _igamma_by_x(t: Array, a: Array, x: Array) -> Array:
    exponent = sub(add(neg(x), mul(sub(a, constants_like(a, 1)), log(x))), lgamma(a))
    return mul(t, exp(exponent))


@Elementwise.define(
    _igamma_grad_a, (FLOAT,), operands=2, derivatives=(
        no_rule("igamma_grad_a: the second derivative of igamma with respect to a is not implemented"),
        lambda t, a, x, r: mul(_igamma_by_x(t, a, x), sub(log(x), digamma(a))),
    ),
)
def igamma_grad_a(a: ArrayLike | Literal, x: ArrayLike | Literal) -> Array:
    """Return the derivative of igamma(a, x) with respect to `a`.

    Example:
        >>> lax.igamma_grad_a(1.0, 2.0)
        Array(-0.22082524, dtype=float32, weak_type=True)

    Reference:
        Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018.
    """
    ...


@Elementwise.define(
    _incomplete_gamma(upper=False), (FLOAT,), operands=2,
    derivatives=(lambda t, a, x, r: mul(t, igamma_grad_a(a, x)), lambda t, a, x, r: _igamma_by_x(t, a, x)),
)
def igamma(a: ArrayLike | Literal, x: ArrayLike | Literal) -> Array:
    """Return the regularized lower incomplete gamma function, the integral of t**(a - 1) exp(-t) / Γ(a) up to `x`.

    Example:
        >>> lax.igamma(1.0, 2.0)
        Array(0.8646648, dtype=float32, weak_type=True)

    Reference:
        DLMF 8.2.4; computed by a series, a continued fraction, or for large `a` by the expansion DLMF 8.12.3.
    """
    ...


@Elementwise.define(
    _incomplete_gamma(upper=True), (FLOAT,), operands=2,
    derivatives=(lambda t, a, x, r: neg(mul(t, igamma_grad_a(a, x))), lambda t, a, x, r: neg(_igamma_by_x(t, a, x))),
)
def igammac(a: ArrayLike | Literal, x: ArrayLike | Literal) -> Array:
    """Return the regularized upper incomplete gamma function 1 - igamma(a, x), exact for large `x`.

    Example:
        >>> lax.igammac(1.0, 2.0)
        Array(0.13533522, dtype=float32, weak_type=True)

    Reference:
        DLMF 8.2.4; computed by a series, a continued fraction, or for large `a` by the expansion DLMF 8.12.3.
    """
    ...


@Elementwise.define(
    _sample_slope_by_a, (FLOAT,), operands=2, name="random_gamma_grad_by_a",
    jvp=no_rule("random_gamma_grad: its second derivatives are not implemented"),
)
def _random_gamma_grad_by_a(a: ArrayLike | Literal, sample: ArrayLike | Literal) -> Array:
    """Return the derivative of random_gamma_grad with respect to `a`."""
    ...


# The derivative of -(dP/da) / p by x, with the density p: dp/da = p (log x - ψ(a)) and dp/dx = p ((a - 1) / x - 1).
def _random_gamma_grad_by_sample(t: Array, a: Array, x: Array, r: Array) -> Array:
    one = constants_like(a, 1)
    by_a = sub(log(x), digamma(a))
    by_x = sub(div(sub(a, one), x), one)
    return mul(t, neg(add(by_a, mul(r, by_x))))


@Elementwise.define(
    lower_fun(compute_in_float32(_sample_slope)), [(FLOAT,), (FLOAT,)], has_body=True,
    derivatives=(lambda t, a, x, r: mul(t, _random_gamma_grad_by_a(a, x)), _random_gamma_grad_by_sample),
)
def random_gamma_grad(*args: ArrayLike) -> Array:
    """Return the derivative of a sample from the gamma distribution with respect to its shape, at a fixed percentile.

    Args:
        args: the shape ``a`` and the sample, two arrays or scalars of real floating numbers of one dtype, by position.

    Returns:
        An array of the broadcast shape and the operands' dtype.

    Raises:
        TypeError: there are not two arguments, one is no array of real floating numbers, or dtypes or shapes differ.

    Example:
        >>> lax.random_gamma_grad(1.0, 2.0)
        Array(1.6316909, dtype=float32, weak_type=True)

    Reference:
        Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018.
    """
    if len(args) != 2:
        raise TypeError(f"random_gamma_grad takes the shape a and the sample; got {len(args)} arguments")
    return random_gamma_grad.bind_positional(args)


# The incomplete beta function by the even part of its continued fraction (DLMF 8.17.22), evaluated by the modified
# Lentz method (Thompson and Barnett, 1986). It converges fast for x < (a + 1) / (a + b + 2); elsewhere
# I_x(a, b) = 1 - I_1-x(b, a). In terms of a y - b x, y = 1 - x, nothing cancels where a or b is large (Didonato and
# Morris, 1992).
def _beta_fraction(a: Array, b: Array, x: Array, y: Array, active: object) -> Any:
    tiny, smallest = float(dtypes.finfo(x.dtype).tiny), float(dtypes.finfo(x.dtype).eps)

    def nonzero(y: ArrayLike) -> Any:
        return select(abs(y) < tiny, constants_like(y, tiny), y)

    def step(n: Array, fraction: Any, c: ArrayLike, d: ArrayLike, a: Array, b: Array, x: Array, y: Array) -> Any:
        below, above = a + n + n - 1, a + n + n + 1
        # The factor a of the first numerator is left out: the product may underflow.
        first = select(n < 1.5, 1 / below, (a + n - 1) / below)
        term = n * (b - n) * x / below
        numerator = first * ((a + b + n - 1) * x) * term
        denominator = n + term + (a + n) * (1 + (a * y - b * x) + n * (1 + y)) / above
        c = nonzero(denominator + numerator / c)
        d = 1 / nonzero(denominator + numerator * d)
        factor = c * d
        return abs(factor - 1) > smallest, (fraction / factor, c, d)

    start = nonzero((1 + (a * y - b * x)) / (a + 1))
    fraction, _, _ = _until_small(step, active, [1 / start, start, constants_like(x, 0)], [a, b, x, y])
    return fraction


def _log_gamma_ratio(p: Any, q: Any) -> Any:
    """Return log(Γ(p + q) / Γ(q)); for large q by Stirling's formula, in which the large terms cancel."""
    large = (q > _LARGE) & (p < q)
    q_, ratio = select(large, q, constants_like(q, _LARGE)), select(large, p / q, constants_like(q, 0))
    below = ratio < 0.5
    rest = select(below, _log1p_remainder(select(below, ratio, constants_like(q, 0))), log1p(ratio) - ratio)
    corrections = _stirling_remainder(p + q_) - _stirling_remainder(q_)
    ratio_of_large = p * log(q_) + (p + q_ - 0.5) * rest + (p - 0.5) * ratio + corrections
    return select(large, ratio_of_large, lgamma(p + q) - lgamma(q))


def _log_beta_density(p: Any, q: Any, y: ArrayLike, z: ArrayLike, log_y: Any, log_z: Any) -> Any:
    """Return log(y**p z**q / (p B(p, q))), where y + z = 1."""
    distance = y * q - p * z
    u, v = distance / p, -distance / q
    near = (p > _LARGE) & (q > _LARGE) & (abs(u) < 0.5) & (abs(v) < 0.5)
    u, v = [select(near, w, constants_like(w, 0)) for w in (u, v)]
    rest = _stirling_remainder(p + q) - _stirling_remainder(p) - _stirling_remainder(q)
    scale = 0.5 * log(q / (2 * math.pi * p * (p + q)))
    central = p * _log1p_remainder(u) + q * _log1p_remainder(v) + scale + rest
    # The ratio with the larger parameter uses Stirling's formula if that parameter is large.
    constant = select(p < q, _log_gamma_ratio(p, q) - lgamma(p + 1), _log_gamma_ratio(q, p) - log(p) - lgamma(q))
    return select(near, central, p * log_y + q * log_z + constant)


@lower_fun
@compute_in_float32
def _betainc(a: Array, b: Array, x: Array) -> Array:
    regular = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < math.inf) & (b < math.inf)
    one, half, zero, nan = [constants_like(x, v) for v in (1, 0.5, 0, math.nan)]
    inner_a, inner_b, inner_x = select(regular, a, one), select(regular, b, one), select(regular, x, half)
    swapped = inner_x > (inner_a + 1) / (inner_a + inner_b + 2)
    p, q = select(swapped, inner_b, inner_a), select(swapped, inner_a, inner_b)
    y, z = select(swapped, 1 - inner_x, inner_x), select(swapped, inner_x, 1 - inner_x)
    log_x, log_rest = log(inner_x), log1p(-inner_x)
    logarithms = select(swapped, log_rest, log_x), select(swapped, log_x, log_rest)
    factor = exp(_log_beta_density(p, q, y, z, *logarithms))
    fraction = _beta_fraction(p, q, y, z, regular)
    inside = select(swapped, 1 - fraction * factor, fraction * factor)
    # In the limits of a and b the distribution is concentrated at 0 or at 1.
    below, above = (a == 0) | (b == math.inf), (b == 0) | (a == math.inf)
    edge = select((x == 0) | ((x < 1) & above), zero, one)
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~(below & above)
    return select(regular, inside, select(valid, edge, nan))


def _betainc_by_parameter(*_: Array) -> Array:
    raise ValueError("betainc gradient with respect to a and b is not supported; only that with respect to x is known")


# The density x**(a - 1) (1 - x)**(b - 1) / B(a, b).
def _betainc_by_x(t: Array, a: Array, b: Array, x: Array, r: Array) -> Array:
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    one_a, one_b = constant_like(a, 1), constant_like(b, 1)
    logarithm = sub(add(mul(sub(b, one_b), log1p(neg(x))), mul(sub(a, one_a), log(x))), log_beta)
    return mul(exp(logarithm), t)


@Elementwise.define(
    _betainc, (FLOAT,), operands=3, has_body=True, name="regularized_incomplete_beta",
    derivatives=(_betainc_by_parameter, _betainc_by_parameter, _betainc_by_x),
)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function, the integral of t**(a - 1) (1 - t)**(b - 1) / B(a, b) up to `x`.

    Args:
        a, b, x: arrays or scalars of real floating numbers of one dtype whose shapes agree, but for scalars and axes of
            size 1.

    Returns:
        An array of the broadcast shape and the operands' dtype; NaN for negative `a` or `b` and for `x` outside [0, 1].

    Raises:
        TypeError: an operand is no array of real floating numbers, or dtypes or shapes do not agree.

    Example:
        >>> lax.betainc(1.0, 2.0, 0.5)
        Array(0.75000006, dtype=float32, weak_type=True)

    Reference:
        DLMF 8.17.2; computed by the continued fraction DLMF 8.17.22.
    """
    return betainc.bind_positional((a, b, x))
