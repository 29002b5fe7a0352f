"""Special functions of lax with operands that promote and broadcast; integers become floats."""

from __future__ import annotations

import fractions
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from xtrace._src.algebra.vector_space import check_broadcast, convert_to, operand_aval
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.differentiation.grad import jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.elementwise_functions import REAL_NUMBERS, elementwise_function
from xtrace._src.api.operators.operators import broadcast_to_shape, cast_as
from xtrace._src.api.operators.promotion import as_inexact, common_dtype, promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.elementwise import incomplete_functions, special
from xtrace._src.ops.elementwise.elementwise import logistic
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufuncs import abs, exp, sign

_Function = TypeVar("_Function", bound=Callable[..., Any])


@elementwise_function(special.erf, adjust=as_inexact, domain=REAL_NUMBERS)
def erf(x: ArrayLike) -> Array:
    """Return the error function of elements.

    Example:
        >>> scipy.special.erf(0.0)
        Array(0., dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 7.2.
    """
    ...


@elementwise_function(special.erfc, adjust=as_inexact, domain=REAL_NUMBERS)
def erfc(x: ArrayLike) -> Array:
    """Return 1 - erf(x), also exact for large `x`.

    Example:
        >>> scipy.special.erfc(0.0)
        Array(1., dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 7.2.
    """
    ...


@elementwise_function(special.erf_inv, adjust=as_inexact, domain=REAL_NUMBERS)
def erfinv(x: ArrayLike) -> Array:
    """Return the inverse of the error function; NaN outside of [-1, 1].

    Example:
        >>> scipy.special.erfinv(0.0)
        Array(0., dtype=float32, weak_type=True)

    Reference:
        M. Giles, Approximating the erfinv function, GPU Computing Gems 2 (2011).
    """
    ...


@elementwise_function(logistic, adjust=as_inexact)
def expit(x: ArrayLike) -> Array:
    """Return the logistic function 1 / (1 + exp(-x)) of elements.

    Example:
        >>> scipy.special.expit(0.0)
        Array(0.5, dtype=float32, weak_type=True)

    Reference:
        Defined as in ``scipy.special.expit``.
    """
    ...


@elementwise_function(special.digamma, adjust=as_inexact, domain=REAL_NUMBERS)
def digamma(x: ArrayLike) -> Array:
    """Return the derivative of `gammaln`.

    Example:
        >>> scipy.special.digamma(1.0).round(2)
        Array(-0.58, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 5.2 and 5.11.
    """
    ...


@elementwise_function(special.lgamma, adjust=as_inexact, domain=REAL_NUMBERS)
def gammaln(x: ArrayLike) -> Array:
    """Return the logarithm of |gamma(x)|.

    Example:
        >>> scipy.special.gammaln(jnp.inf)
        Array(inf, dtype=float32, weak_type=True)

    Reference:
        C. Lanczos, A precision approximation of the gamma function, SIAM J. Numer. Anal. 1 (1964).
    """
    ...


@elementwise_function(special.bessel_i0e, adjust=as_inexact, domain=REAL_NUMBERS)
def i0e(x: ArrayLike) -> Array:
    """Return the modified Bessel function `i0` times exp(-|x|).

    Example:
        >>> scipy.special.i0e(0.0).round(4)
        Array(1., dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 10.25.
    """
    ...


@elementwise_function(special.bessel_i1e, adjust=as_inexact, domain=REAL_NUMBERS)
def i1e(x: ArrayLike) -> Array:
    """Return the modified Bessel function `i1` times exp(-|x|).

    Example:
        >>> scipy.special.i1e(0.0)
        Array(0., dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 10.25.
    """
    ...


@inline_jit(public=True)
def i0(x: RealLike) -> Array:
    """Return the modified Bessel function of the first kind of order 0.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: an operand is complex, or no array or number.

    Example:
        >>> scipy.special.i0(1.0)
        Array(1.266066, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 10.25.
    """
    (x,) = to_operands(x)
    # |x| with derivative 0 at 0, where the function is even.
    return exp(x * sign(x)) * special.bessel_i0e(x)


@inline_jit(public=True)
def i1(x: RealLike) -> Array:
    """Return the modified Bessel function of the first kind of order 1.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: an operand is complex, or no array or number.

    Example:
        >>> scipy.special.i1(1.0)
        Array(0.5651591, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 10.25.
    """
    (x,) = to_operands(x)
    return exp(abs(x)) * special.bessel_i1e(x)


def with_strong_results(function: _Function) -> _Function:
    """Decorate a function: its results are strongly typed unless the first operand is a single number.

    In JAX, constants make the results of these functions strongly typed if the first operand is an array.
    """
    parameter = function.__code__.co_varnames[0]

    @functools.wraps(function)
    def strong(*args: ArrayLike, **kwargs: Any) -> Array:
        result, first = function(*args, **kwargs), args[0] if args else kwargs[parameter]
        return convert_to(result, result.dtype) if result.aval.weak_type and np.ndim(first) else result

    return strong  # type: ignore[return-value]


def promote_operands(*values: ArrayLike, function: str = "") -> list[Array]:
    """Convert values to arrays of their common floating dtype; check that their shapes broadcast.

    TypeError for a value that is neither an array nor a number, ValueError for shapes that do not broadcast.
    """
    return [to_array(x) for x in promote(*values, adjust=as_inexact, function=function)]


def to_operands(*values: ArrayLike) -> list[Array]:
    """Convert values to arrays of their common floating dtype and shape; errors as in `promote_operands`."""
    ready = promote_operands(*values)
    shape = check_broadcast([x.shape for x in ready])
    return [broadcast_to_shape(x, shape) for x in ready]


def refuse_complex(*values: ArrayLike) -> None:
    """Raise ValueError if a value is complex."""
    for position, x in enumerate(values):
        if dtypes.is_complex(operand_aval(x, position).dtype):
            raise ValueError(
                f"{called_function()} does not support complex-valued inputs; argument {position} is complex"
            )


def to_wide_operand(x: ArrayLike) -> Array:
    """Convert `x` to an array; TypeError unless its dtype is float32 or float64."""
    dtype = operand_aval(x, 0).dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"{called_function()}: dtype {dtype.name} is not supported; convert x to float32 or float64")
    return convert_to(to_array(promote(x)[0]), dtype)


@inline_jit(public=True)
def gammainc(a: RealLike, x: RealLike) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x).

    Args:
        a: an array of positive numbers.
        x: an array of non-negative numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is complex, or no array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.gammainc(1.0, 2.0)
        Array(0.8646648, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 8.2, 8.11 and 8.12.
    """
    return incomplete_functions.igamma(*to_operands(a, x))


@inline_jit(public=True)
def gammaincc(a: RealLike, x: RealLike) -> Array:
    """Return the regularized upper incomplete gamma function, 1 - P(a, x).

    Args:
        a: an array of positive numbers.
        x: an array of non-negative numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is complex, or no array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.gammaincc(1.0, 2.0)
        Array(0.13533522, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, sections 8.2, 8.11 and 8.12.
    """
    return incomplete_functions.igammac(*to_operands(a, x))


@inline_jit(public=True)
def betainc(a: RealLike, b: RealLike, x: RealLike) -> Array:
    """Return the regularized incomplete beta function.

    Args:
        a, b: arrays of positive numbers.
        x: an array of numbers from 0 to 1.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is complex, or no array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.betainc(1.0, 2.0, 0.5)
        Array(0.75000006, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 8.17.
    """
    return incomplete_functions.betainc(*to_operands(a, b, x))


# B(2k) / (2k)! for k = 1, 2, …, and the number of terms to sum before the expansion.
_BERNOULLI_OVER_FACTORIALS = tuple(
    float(fractions.Fraction(*ratio) / math.factorial(2 * k + 2))
    for k, ratio in enumerate(
        ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798))
    )
)
_ZETA_TERMS = 10


def _zeta_expansion(x: Array, q: Array) -> Array:
    """Return zeta(x, q) by Euler's and Maclaurin's formula (DLMF 25.11.5), which also continues zeta analytically."""
    total: Array | float = 0.0
    rest: Array | float = 0.5
    for k in range(_ZETA_TERMS):
        total = total + (q + k) ** -x
    last = q + _ZETA_TERMS
    factor = x / last
    for k, coefficient in enumerate(_BERNOULLI_OVER_FACTORIALS):
        rest = rest + coefficient * factor
        factor = factor * ((x + (2 * k + 1)) / last) * ((x + (2 * k + 2)) / last)
    return total + last ** (1 - x) / (x - 1) + last**-x * rest


@custom_jvp
@inline_jit(public=True)
def _zeta(x: RealLike, q: RealLike) -> Array:
    return special.zeta(*to_operands(x, q))


@_zeta.defjvp
def _zeta_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    return _zeta(*primals), jvp(_zeta_expansion, to_operands(*primals), to_operands(*tangents))[1]


def zeta(x: RealLike, q: RealLike | None = None) -> Array:
    """Return Hurwitz' zeta function, the sum of ``(k + q)**-x`` over k = 0, 1, ….

    Args:
        x: an array of real numbers.
        q: an array of real numbers; None for 1, which gives Riemann's.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is complex, or no array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.zeta(2.0, 1.0)
        Array(1.644934, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 25.11.
    """
    return _zeta(x, 1.0 if q is None else q)


@inline_jit(public=True)
def polygamma(n: RealLike, x: RealLike) -> Array:
    """Return the derivative of order `n` of `digamma`.

    Args:
        n: an array of integers, the orders.
        x: an array of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: `n` has another dtype, or the shapes do not broadcast.

    Example:
        >>> scipy.special.polygamma(1, 1.0)
        Array(1.644934, dtype=float32, weak_type=True)

    Reference:
        NIST Digital Library of Mathematical Functions, section 5.15.
    """
    type_of_order = operand_aval(n, 0)
    if not dtypes.is_integer(type_of_order.dtype):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {type_of_order.dtype.name}.")
    weak = common_dtype((n, x), as_inexact)[2]
    (x,) = to_operands(x)
    shape = check_broadcast([type_of_order.shape, x.shape])
    order = convert_to(broadcast_to_shape(to_array(cast_as(x, n)), shape), x.dtype, False)
    x, order = [convert_to(y, x.dtype, weak) for y in (x, order)]
    return special.polygamma(order, broadcast_to_shape(x, shape))
