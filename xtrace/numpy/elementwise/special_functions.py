"""The special functions that NumPy has: logarithms of sums of exponentials, sinc, and a Bessel function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.kinds import COMPLEX
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators import operators
from xtrace._src.api.operators.elementwise_functions import REAL_NUMBERS, elementwise_function
from xtrace._src.api.operators.operators import scalar_like, select_where
from xtrace._src.api.operators.promotion import as_inexact, promote
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.ops.elementwise import complex_numbers, trigonometry
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import eq, ne
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.elementwise.special import bessel_i0e
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufunc_objects import as_ufunc
from xtrace.numpy.operands import fill_as, refuse_complex


# log(e^x + e^y) = max(x, y) + log1p(e^-|x - y|); x - y is NaN for equal infinities, whose sum is the result.
# Its derivatives are e^(x - f) and e^(y - f), also where x = y, where neither max nor |x - y| has one.
def _logaddexp(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    @custom_jvp
    def of_reals(x: ArrayLike, y: ArrayLike) -> Array:
        difference = lax.sub(x, y)
        correction = lax.log1p(exponential(lax.neg(lax.abs(difference))))
        if scale != 1:
            correction = lax.mul(correction, scalar_like(correction, scale))
        return select(ne(difference, difference), lax.add(x, y), lax.add(lax.max(x, y), correction))

    @of_reals.defjvp
    def _(primals: Any, tangents: tuple[Array, ...]) -> tuple[Array, ...]:
        result = of_reals(*primals)
        end = _finite_above(result)
        terms = [
            operators.multiply(t, exponential(operators.subtract(_finite_above(x), end)))
            for x, t in zip(primals, tangents, strict=True)
        ]
        return result, operators.add(*terms)

    return lambda x, y: of_reals(to_array(x), to_array(y))


def _finite_above(x: Array) -> Array:
    return select_where(operators.equal(x, math.inf), 0, x)


# The imaginary part of a complex result is brought into (-π, π], in units of the base.
def _logaddexp_of_complex(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    def of_complex(x: ArrayLike, y: Array) -> Array:
        larger = select_where(eq(lax.max(x, y), x), x, y)
        correction = lax.log1p(exponential(operators.subtract(lax.add(x, y), operators.multiply(larger, 2))))
        if scale != 1:
            correction = lax.mul(correction, scalar_like(correction, scale))
        total = lax.add(larger, correction)
        turn = operators.remainder(operators.add(complex_numbers.imag(total), math.pi * scale), 2 * math.pi * scale)
        total = complex_numbers.complex(complex_numbers.real(total), operators.subtract(turn, math.pi * scale))
        # As in jax, only scalars stay weakly typed.
        return convert_to(total, aval_of(total).dtype, False) if aval_of(total).shape else total

    return of_complex


@as_ufunc
@elementwise_function(_logaddexp(lax.exp, 1), adjust=as_inexact, cases={COMPLEX: _logaddexp_of_complex(lax.exp, 1)})
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return log(exp(x1) + exp(x2)), without overflow.

    Example:
        >>> jnp.logaddexp(0.0, -jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@as_ufunc
@elementwise_function(
    _logaddexp(lax.exp2, 1 / math.log(2)), adjust=as_inexact,
    cases={COMPLEX: _logaddexp_of_complex(lax.exp2, 1 / math.log(2))},
)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return log2(2**x1 + 2**x2), without overflow.

    Example:
        >>> jnp.logaddexp2(3.0, 3.0)
        Array(4., dtype=float32, weak_type=True)
    """
    ...


def _sinc_at_zero_value(x: Array, order: int) -> Array:
    # The power series of sin(πx) / (πx) has the coefficients (-1)^k π^2k / (2k + 1)! of x^2k.
    value = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
    return fill_as(x, value, weak=aval_of(x).weak_type)


# The derivative of sinc at 0 of the given order; its own derivative is that of the next order.
_sinc_at_zero = custom_jvp(_sinc_at_zero_value, nondiff_argnums=(1,))


@_sinc_at_zero.defjvp
def _sinc_at_zero_jvp(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    values = [_sinc_at_zero(primals[0], n) for n in (order, order + 1)]
    return values[0], lax.mul(tangents[0], values[1])


@inline_jit
def sinc(x: Any, /) -> Array:
    """Return sin(πx) / (πx), and 1 where `x` is 0.

    Args:
        x: an array or a scalar of numbers or booleans.

    Returns:
        An array of the shape of `x` and its dtype, as a floating one if that is integer or boolean.

    Raises:
        TypeError: `x` is no array and no scalar.

    Example:
        >>> jnp.sinc(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = promote(x, adjust=as_inexact)
    zero = operators.equal(x, 0)
    scaled = select_where(zero, scalar_like(x, 1.0), operators.multiply(x, math.pi))
    return select_where(zero, _sinc_at_zero(x, 0), lax.div(trigonometry.sin(scaled), scaled))


def _i0(x: Array) -> Array:
    # |x| with derivative 0 at 0, where the function is even.
    return lax.mul(lax.exp(lax.mul(x, lax.sign(x))), bessel_i0e(x))


@elementwise_function(
    _i0, adjust=as_inexact, cases={COMPLEX: refuse_complex(ValueError, function="i0")}, domain=REAL_NUMBERS,
    raises={"ValueError": "the operand is complex."},
)
def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind of order 0.

    Example:
        >>> jnp.i0(0.0).round(4)
        Array(1., dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 10.25.
    """
    ...
