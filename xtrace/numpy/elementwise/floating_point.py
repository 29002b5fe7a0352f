"""Floating-point numbers: infinities and NaN, signs, exponents, distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.kinds import BOOL, COMPLEX, INTEGER, UNSIGNED
from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators import operators
from xtrace._src.api.operators.elementwise_functions import REAL_NUMBERS, elementwise_function
from xtrace._src.api.operators.operators import cast_as, scalar_like, select_where
from xtrace._src.api.operators.promotion import as_inexact, promote, promote_dtypes
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.function_names import set_function_name
from xtrace._src.ops.elementwise import complex_numbers
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_not, bitwise_or, eq, gt, lt, ne
from xtrace._src.ops.elementwise.complex_numbers import imag, real
from xtrace._src.ops.elementwise.constants import strong_scalar
from xtrace._src.ops.elementwise.reinterpretation import bitcast_convert_type
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.operands import fill_as, refuse, refuse_complex

# Kinds of floating-point numbers

def _fill_result(value: bool) -> Callable[[Any], Any]:
    return lambda x: fill_as(x, value, dtypes.bool_)


def _is_finite_complex(x: Array) -> Array:
    return bitwise_and(lax.is_finite(real(x)), lax.is_finite(imag(x)))


def _is_infinite(x: Array) -> Array:
    return eq(lax.abs(x), strong_scalar(x, math.inf))


@elementwise_function(
    lax.is_finite, cases={COMPLEX: _is_finite_complex, BOOL: _fill_result(True), INTEGER: _fill_result(True)},
    returns="dtype bool",
)
def isfinite(x: ArrayLike, /) -> Array:
    """Return whether elements are neither infinite nor NaN.

    Example:
        >>> jnp.isfinite(jnp.array([1.0, jnp.inf]))
        Array([ True, False], dtype=bool)
    """
    ...


@elementwise_function(
    _is_infinite, cases={
        COMPLEX: lambda x: bitwise_or(_is_infinite(real(x)), _is_infinite(imag(x))), BOOL: _fill_result(False),
        INTEGER: _fill_result(False),
    }, returns="dtype bool",
)
def isinf(x: ArrayLike, /) -> Array:
    """Return whether elements are infinite; complex numbers are if one part is.

    Example:
        >>> jnp.isinf(jnp.array([1.0, jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    ...


@elementwise_function(lambda x: ne(x, x), returns="dtype bool")
def isnan(x: ArrayLike, /) -> Array:
    """Return whether elements are NaN; complex numbers are if one part is.

    Example:
        >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    ...


def _define_comparison_with(value: float, name: str) -> Callable[[Any], Array]:
    def function(x: ArrayLike, /) -> Array:
        """Return whether elements equal `value`."""
        ...

    refused = refuse_complex(ValueError, function=name)
    return elementwise_function(
        lambda x: eq(x, strong_scalar(x, value)),
        cases={COMPLEX: refused, BOOL: _fill_result(False), INTEGER: _fill_result(False)},
    )(set_function_name(function, name))


_is_infinity = {
    name: _define_comparison_with(value, name) for name, value in (("isposinf", math.inf), ("isneginf", -math.inf))
}


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether elements are positive infinity.

    Args:
        x: an array or a scalar of real numbers or booleans.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `x` and dtype bool.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `x` is neither an array nor a scalar.
        ValueError: `x` is complex.

    Example:
        >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
        Array([ True, False], dtype=bool)
    """
    refuse(out=out)
    return _is_infinity["isposinf"](x)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether elements are negative infinity.

    Args:
        x: an array or a scalar of real numbers or booleans.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `x` and dtype bool.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `x` is neither an array nor a scalar.
        ValueError: `x` is complex.

    Example:
        >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    refuse(out=out)
    return _is_infinity["isneginf"](x)


@inline_jit(static=("copy",), public=True)
def nan_to_num(x: ArrayLike, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """Replace NaN and infinities with finite numbers.

    Args:
        x: an array or a scalar of numbers; of complex numbers, both parts are replaced.
        copy: makes no difference, since arrays are immutable.
        nan: the number in the place of NaN.
        posinf, neginf: the numbers in the place of the infinities; None for the largest and smallest ones of the dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf]), posinf=9.0)
        Array([0., 9.], dtype=float32)
    """
    (x,) = promote(x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return complex_numbers.complex(*[nan_to_num(part(x), copy, nan, posinf, neginf) for part in (real, imag)])
    if not dtypes.is_floating(dtype):
        return to_array(x)
    limits = dtypes.finfo(dtype)
    highest = float(limits.max) if posinf is None else posinf
    lowest = float(limits.min) if neginf is None else neginf
    x = select_where(ne(x, x), cast_as(x, nan), x)
    x = select_where(eq(x, strong_scalar(x, math.inf)), cast_as(x, highest), x)
    return select_where(eq(x, strong_scalar(x, -math.inf)), cast_as(x, lowest), x)


@inline_jit
def _isclose(a: object, b: ArrayLike, rtol: ArrayLike, atol: ArrayLike, *, equal_nan: bool) -> Array:
    x, y = promote(a, b, adjust=as_inexact)
    if isinstance(aval_of(x).dtype, dtypes.ExtendedDType):
        return operators.equal(x, y)
    finite = isfinite(y)
    example = lax.abs(y)
    relative, absolute_part = [convert_to(value, example.dtype) for value in (rtol, atol)]
    allowed = operators.add(absolute_part, operators.multiply(relative, example))
    near = operators.bitwise_and(finite, operators.less_equal(lax.abs(lax.sub(x, y)), allowed))
    close = operators.bitwise_or(eq(x, y), near)
    if equal_nan:
        close = operators.bitwise_or(close, operators.bitwise_and(ne(x, x), ne(y, y)))
    return close


@inline_jit(static=("equal_nan",), public=True)
def isclose(a: ArrayLike, b: ArrayLike, rtol: Any = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False) -> Array:
    """Return whether ``|a - b| <= atol + rtol * |b|``; infinities are close to themselves.

    Args:
        a, b: arrays or scalars of numbers or booleans, or arrays of random keys, whose shapes broadcast. Keys are close
            if they are equal.
        rtol: the tolerance relative to `b`, a number.
        atol: the absolute tolerance, a number.
        equal_nan: whether two NaN are close.

    Returns:
        An array of the broadcast shape and dtype bool.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.isclose(jnp.array([1.0, 2.0]), 1.0 + 1e-6)
        Array([ True, False], dtype=bool)
    """
    return _isclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


# Parts of floating-point numbers

_INTEGERS = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _has_sign_bit(x: Array) -> Array:
    dtype = aval_of(x).dtype
    width = dtypes.bit_width(dtype)
    if width not in _INTEGERS:
        raise NotImplementedError(f"signbit of {dtype.name}, which has {width} bits; convert to float16 first")
    return operators.less(bitcast_convert_type(x, _INTEGERS[width]), 0)


@elementwise_function(
    _has_sign_bit, cases={
        COMPLEX: refuse_complex(ValueError, function="signbit"), BOOL: _fill_result(False),
        INTEGER: lambda x: lt(x, strong_scalar(x, 0)), UNSIGNED: _fill_result(False),
    }, domain=REAL_NUMBERS, returns="dtype bool",
    raises={"ValueError": "the operand is complex.", "NotImplementedError": "a floating dtype has fewer than 8 bits."},
)
def signbit(x: ArrayLike, /) -> Array:
    """Return whether elements have the sign bit set: they are below zero, or -0.0.

    Example:
        >>> jnp.signbit(jnp.array([1.0, -0.0]))
        Array([False,  True], dtype=bool)
    """
    ...


def _copysign(x: Array, y: ArrayLike) -> Array:
    size = lax.abs(x)
    return select_where(signbit(y), lax.neg(size), size)


@elementwise_function(
    _copysign, adjust=as_inexact, cases={COMPLEX: refuse_complex(function="copysign")}, domain=REAL_NUMBERS
)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return elements of size |x1| with the signs of `x2`.

    Example:
        >>> jnp.copysign(2.0, -1.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.nextafter, adjust=as_inexact, domain=REAL_NUMBERS)
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the numbers next to `x` in the direction of `y`.

    Example:
        >>> jnp.nextafter(0.0, 1.0)
        Array(1.e-45, dtype=float32, weak_type=True)
    """
    ...


@custom_jvp
def _scaled(mantissa: object, x: Array, exponent: object) -> Any:
    """Return `mantissa`, which is x / 2**exponent; the derivative takes the exponent as constant."""
    return mantissa


@_scaled.defjvp
def _scaled_jvp(primals: Any, tangents: Any) -> Any:
    mantissa, x, exponent = primals
    tangent = lax.mul(tangents[1], lax.pow(strong_scalar(x, 2.0), lax.neg(convert_to(exponent, x.dtype))))
    return mantissa, convert_to(tangent, x.dtype, aval_of(x).weak_type)


@inline_jit
def _frexp(x: ArrayLike) -> tuple[Any, Any]:
    (x,) = promote(x, adjust=as_inexact)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        refuse_complex()()
    limits = dtypes.finfo(dtype)
    width, digits = dtypes.bit_width(dtype), limits.nmant
    if width not in _INTEGERS or width == 8:
        raise NotImplementedError(f"frexp of {dtype.name}; convert to float16 first")
    x = to_array(x)
    bits = _INTEGERS[width]
    exponent_mask, fraction_mask, bias = (1 << limits.nexp) - 1, (1 << digits) - 1, (1 << (limits.nexp - 1)) - 1
    pattern = bitcast_convert_type(x, bits)
    # XLA flushes subnormal numbers to 0, so their bits are read; their fraction is an integer.
    fraction = operators.bitwise_and(pattern, fraction_mask)
    subnormal = operators.equal(operators.bitwise_and(pattern, exponent_mask << digits), 0)
    unscaled = bitwise_or(bitwise_not(lax.is_finite(x)), bitwise_and(subnormal, operators.equal(fraction, 0)))
    sign = operators.bitwise_and(pattern, ~((exponent_mask << digits) | fraction_mask))
    scaled = operators.bitwise_or(bitcast_convert_type(convert_to(fraction, dtype), bits), sign)
    original, pattern = pattern, select_where(subnormal, scaled, pattern)
    shift = select_where(subnormal, cast_as(pattern, 1 - bias - digits), cast_as(pattern, 0))
    exponent = operators.bitwise_and(operators.right_shift(pattern, digits), exponent_mask)
    exponent = operators.add(operators.subtract(exponent, bias - 1), shift)
    # Mantissas in [0.5, 1) all have the exponent bits `bias - 1`.
    kept = operators.bitwise_and(pattern, ~(exponent_mask << digits))
    # Selected as integers: jaxlib 0.12 confuses subnormal bfloat16 numbers.
    mantissa = select_where(unscaled, original, operators.bitwise_or(kept, (bias - 1) << digits))
    exponent = convert_to(select_where(unscaled, 0, exponent), dtypes.int32)
    return _scaled(bitcast_convert_type(mantissa, dtype), x, exponent), exponent


@inline_jit(public=True)
def frexp(x: ArrayLike, /) -> tuple[Any, Any]:
    """Return the mantissas m in [0.5, 1) and the exponents n of ``x = m * 2**n``.

    Args:
        x: an array or a scalar of real numbers or booleans.

    Returns:
        The mantissas, of the shape of `x` and its dtype, floating for integers and booleans, and the
        exponents as int32. Zeros, infinities and NaN are their own mantissas, with exponent 0.

    Raises:
        NotImplementedError: the dtype is a floating one of at most 8 bits.
        TypeError: `x` is complex, or neither an array nor a scalar.

    Example:
        >>> jnp.frexp(6.0)
        (Array(0.75, dtype=float32), Array(3, dtype=int32))
    """
    return _frexp(x)


@inline_jit(public=True)
def ldexp(x1: Any, x2: Any, /) -> Array:
    """Return ``x1 * 2**x2``, without overflow of ``2**x2``.

    Args:
        x1: an array or a scalar of real numbers or booleans.
        x2: the exponents, an array or a scalar of integers or booleans that broadcasts against `x1`.

    Returns:
        An array of the broadcast shape and the dtype of `x1`, floating for integers and booleans.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: `x1` is complex, `x2` is not an integer, or the shapes do not broadcast.

    Example:
        >>> jnp.ldexp(3.0, 2)
        Array(12., dtype=float32)
    """
    left, right = operand_aval(x1, 0).dtype, operand_aval(x2, 1).dtype
    if dtypes.is_complex(left) or dtypes.is_inexact(right):
        raise ValueError(f"ldexp: not supported for input types ({left.name}, {right.name}); x2 must be an integer")
    (x,) = promote(x1, adjust=as_inexact)
    x = convert_to(x, aval_of(x).dtype)
    x, exponent = promote(x, convert_to(x2, x.dtype))
    mantissa, own = _frexp(x)
    exponent = lax.add(convert_to(own, x.dtype), exponent)
    # With mantissas of at least 1, 2 ** exponent is in range if the result is.
    above = operators.greater(exponent, 0)
    mantissa = select_where(above, operators.multiply(mantissa, 2), mantissa)
    exponent = select_where(above, operators.subtract(exponent, 1), exponent)
    scaled = lax.mul(mantissa, lax.pow(strong_scalar(x, 2.0), exponent))
    return select_where(bitwise_or(_is_infinite(x), operators.equal(x, 0)), x, scaled)


@inline_jit
def spacing(x: ArrayLike, /) -> Array:
    """Return the distances to the next numbers away from zero, with the signs of `x`; in float16, to the next larger.

    Args:
        x: an array or a scalar of real numbers or booleans.

    Returns:
        An array of the shape of `x` and its dtype, floating for integers and booleans.

    Raises:
        TypeError: `x` is neither an array nor a scalar.
        ValueError: `x` is complex.

    Example:
        >>> jnp.spacing(1.0)
        Array(1.1920929e-07, dtype=float32)
    """
    (x,) = promote(x, adjust=as_inexact)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        refuse_complex(ValueError)()
    x = convert_to(x, dtype)
    # NumPy's float16 differs from its other types here.
    signed = lax.abs(x) if dtype == dtypes.float16 else x
    distance = lax.sub(lax.nextafter(x, _copysign(fill_as(x, math.inf), signed)), x)
    smallest = _copysign(fill_as(x, float(dtypes.finfo(dtype).smallest_subnormal)), signed)
    return select_where(operators.equal(distance, 0), smallest, distance)


@inline_jit
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return 0 where ``x1 < 0``, 1 where ``x1 > 0``, `x2` where `x1` is 0, and NaN where it is NaN.

    Args:
        x1, x2: arrays or scalars of real numbers or booleans whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype, floating for integers and booleans.

    Raises:
        TypeError: an operand is complex, or neither an array nor a scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    _, (x, y) = promote_dtypes((x1, x2), as_inexact)
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    return select_where(lt(x, zero), zero, select_where(gt(x, zero), one, select_where(ne(x, x), x, y)))
