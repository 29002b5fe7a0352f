"""NumPy's elementwise functions; those behind Python's operators come from ``xtrace._src.api.operators``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import BOOL, COMPLEX, INTEGER, UNSIGNED
from xtrace._src.algebra.vector_space import broadcast_in_dim, converted
from xtrace._src.api import operators
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import (
    INTEGERS,
    REAL_NUMBERS,
    alias,
    as_number,
    binary_function,
    cast_as,
    choose,
    elementwise_docstring,
    identity,
    round_decimals,
    scalar_like,
    truth,
    unary_function,
)
from xtrace._src.api.promotion import as_inexact, common_dtype, operand_aval, promote, promote_dtypes, scalar_value
from xtrace._src.core import config, dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.function_names import copy_with_name
from xtrace._src.core.integers import to_integer
from xtrace._src.core.ir import Literal
from xtrace._src.ops import elementwise as lax
from xtrace._src.ops.special import bessel_i0e
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.creation import asarray
from xtrace.numpy.indexing import nonzero
from xtrace.numpy.ufunc_methods import as_ufunc

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "cbrt", "ceil", "clip", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees", "divide",
    "divmod", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor", "floor_divide", "fmax", "fmin",
    "fmod", "frexp", "greater", "greater_equal", "heaviside", "hypot", "i0", "imag", "invert", "isclose",
    "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj",
    "ldexp", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "modf", "multiply",
    "nan_to_num", "negative", "nextafter", "not_equal", "positive", "pow", "power", "rad2deg", "radians", "real",
    "reciprocal", "remainder", "right_shift", "rint", "round", "sign", "signbit", "sin", "sinc", "sinh", "spacing",
    "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc", "where",
]


def _strong(example: Any, value: Any) -> Literal:
    """Return the strongly typed scalar `value` of the dtype of `example`."""
    return Literal(value, ShapedArray((), aval_of(example).dtype))


def _filled(x: Any, value: Any, dtype: np.dtype[Any] | None = None, weak: bool = False) -> Array:
    """Return `value` in the shape of `x`, in its dtype or another."""
    aval = aval_of(x)
    kind = aval.dtype if dtype is None else dtype
    literal = Literal(scalar_value(value, kind), ShapedArray((), kind, weak))
    return broadcast_in_dim.bind_positional((literal,), (aval.shape, (), None))


def _refuse_complex(function: str, error: type[Exception] = TypeError) -> Callable[..., Any]:
    """Return the operation that says `function` is not defined for complex numbers."""

    def refuse(*_: Any) -> Any:
        raise error(f"{function} does not support complex dtypes; take the absolute value or a part first")

    return refuse


def _of_parts(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function of complex numbers that applies `function` to both parts."""

    def by_parts(x: ArrayLike) -> Array:
        return lax.complex(function(lax.real(x)), function(lax.imag(x)))

    return by_parts


# Arithmetic

add = as_ufunc(operators.add)
subtract = as_ufunc(operators.subtract)
multiply = as_ufunc(operators.multiply)
negative = as_ufunc(operators.negative)
true_divide = operators.true_divide
divide = binary_function(
    "divide", lax.div, "Return the quotients of elements as floating numbers.", adjust=as_inexact,
    example=("jnp.divide(1, 2)", "Array(0.5, dtype=float32, weak_type=True)"),
)
floor_divide = operators.floor_divide
remainder = operators.remainder
mod = alias(remainder, "mod")
divmod = operators.divmod
power = operators.power
pow = copy_with_name(power, "pow")
positive = operators.positive
absolute = operators.absolute
abs = alias(absolute, "abs")
float_power = binary_function(
    "float_power", lax.pow, "Return `x` to the power `y` as floating numbers.", adjust=as_inexact, names=("x", "y"),
    example=("jnp.float_power(2, -1)", "Array(0.5, dtype=float32, weak_type=True)"),
)


@inline_jit
def fmod(x1: Any, x2: Any, /) -> Any:
    """Return the remainders of divisions, with the sign of `x1`; 0 for an integer divided by 0.

    Args:
        x1, x2: arrays or scalars of real numbers or booleans whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype, int32 for booleans.

    Raises:
        TypeError: an operand is complex, or no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.fmod(-7, 2)
        Array(-1, dtype=int32, weak_type=True)
    """
    _, dtype, _ = common_dtype("fmod", (x1, x2))
    x, y = promote("fmod", x1, x2, adjust=as_number)
    if dtypes.is_integer(dtype):
        y = choose(operators.equal(y, 0), 1, y)
    return lax.rem(x, y)


def _reciprocal(x: Any) -> Array:
    return lax.integer_pow.bind_positional((x,), (-1,))


reciprocal = unary_function(
    "reciprocal", _reciprocal, "Return 1 / x as floating numbers.", adjust=as_inexact,
    example=("jnp.reciprocal(4)", "Array(0.25, dtype=float32, weak_type=True)"),
)
square = unary_function(
    "square", lax.square, "Return the squares of elements.", adjust=as_number,
    example=("jnp.square(3)", "Array(9, dtype=int32, weak_type=True)"),
)
sign = unary_function(
    "sign", lax.sign, "Return the signs of elements: -1, 0 or 1; of complex numbers, x / abs(x).", domain="numbers",
    example=("jnp.sign(-2.5)", "Array(-1., dtype=float32, weak_type=True)"),
)
fabs = unary_function(
    "fabs", lax.abs, "Return the absolute values of elements as floating numbers.", adjust=as_inexact,
    cases={COMPLEX: _refuse_complex("fabs")}, domain=REAL_NUMBERS,
    example=("jnp.fabs(-2)", "Array(2., dtype=float32, weak_type=True)"),
)


@inline_jit
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the lengths of the vectors (x1, x2), without overflow of the squares.

    Args:
        x1, x2: arrays or scalars of real numbers or booleans whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype, as a floating one if that is integer or boolean.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: the shapes do not broadcast, or an operand is complex.

    Example:
        >>> jnp.hypot(3.0, 4.0)
        Array(5., dtype=float32, weak_type=True)
    """
    x, y = promote("hypot", x1, x2, adjust=as_inexact)
    if dtypes.is_complex(aval_of(x).dtype):
        _refuse_complex("hypot", ValueError)()
    x, y = lax.abs(x), lax.abs(y)
    infinite = scalar_like(x, math.inf)
    either_infinite = lax.bitwise_or(lax.eq(x, infinite), lax.eq(y, infinite))
    larger, smaller = lax.max(x, y), lax.min(x, y)
    zero = operators.equal(larger, 0)
    ratio = lax.div(smaller, choose(zero, scalar_like(larger, 1), larger))
    length = lax.mul(larger, lax.sqrt(operators.add(lax.square(ratio), 1)))
    return choose(either_infinite, infinite, choose(zero, larger, length))


# Exponentials, logarithms and roots

exp = unary_function(
    "exp", lax.exp, "Return the exponentials of elements.", adjust=as_inexact,
    example=("jnp.exp(0.0)", "Array(1., dtype=float32, weak_type=True)"),
)
exp2 = unary_function(
    "exp2", lax.exp2, "Return 2 to the power of each element.", adjust=as_inexact,
    example=("jnp.exp2(3.0)", "Array(8., dtype=float32, weak_type=True)"),
)
expm1 = unary_function(
    "expm1", lax.expm1, "Return exp(x) - 1, also exact near zero.", adjust=as_inexact,
    example=("jnp.expm1(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
log = unary_function(
    "log", lax.log, "Return the natural logarithms of elements.", adjust=as_inexact,
    example=("jnp.log(1.0)", "Array(0., dtype=float32, weak_type=True)"),
)
log1p = unary_function(
    "log1p", lax.log1p, "Return log(1 + x), also exact near zero.", adjust=as_inexact,
    example=("jnp.log1p(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
sqrt = unary_function(
    "sqrt", lax.sqrt, "Return the square roots of elements.", adjust=as_inexact,
    example=("jnp.sqrt(9.0)", "Array(3., dtype=float32, weak_type=True)"),
)
cbrt = unary_function(
    "cbrt", lax.cbrt, "Return the cube roots of elements.", adjust=as_inexact, domain=REAL_NUMBERS,
    example=("jnp.cbrt(8.0)", "Array(2., dtype=float32, weak_type=True)"),
)


def _in_base_2(natural: Array) -> Array:
    return lax.div(natural, lax.log(_strong(natural, 2.0)))


def _in_base_10(natural: Array) -> Array:
    return lax.mul(natural, _strong(natural, math.log10(math.e)))


log2 = unary_function(
    "log2", lambda x: _in_base_2(lax.log(x)), "Return the logarithms of elements to base 2.", adjust=as_inexact,
    cases={COMPLEX: lambda x: _of_parts(_in_base_2)(lax.log(x))}, example=("jnp.log2(8.0)", "Array(3., dtype=float32)"),
)
log10 = unary_function(
    "log10", lambda x: _in_base_10(lax.log(x)), "Return the logarithms of elements to base 10.", adjust=as_inexact,
    cases={COMPLEX: lambda x: _of_parts(_in_base_10)(lax.log(x))},
    example=("jnp.log10(100.0)", "Array(2., dtype=float32)"),
)


# log(e^x + e^y) = max(x, y) + log1p(e^-|x - y|); x - y is NaN for equal infinities, whose sum is the result.
# Its derivatives are e^(x - f) and e^(y - f), also where x = y, where neither max nor |x - y| has one.
def _logaddexp(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    @custom_jvp
    def of_reals(x: ArrayLike, y: ArrayLike) -> Array:
        difference = lax.sub(x, y)
        correction = lax.log1p(exponential(lax.neg(lax.abs(difference))))
        if scale != 1:
            correction = lax.mul(correction, scalar_like(correction, scale))
        return lax.select(lax.ne(difference, difference), lax.add(x, y), lax.add(lax.max(x, y), correction))

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
    return choose(operators.equal(x, math.inf), 0, x)


# Of complex numbers the imaginary part is brought into (-π, π], in units of the base.
def _logaddexp_of_complex(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    def of_complex(x: ArrayLike, y: Any) -> Array:
        larger = choose(lax.eq(lax.max(x, y), x), x, y)
        correction = lax.log1p(exponential(operators.subtract(lax.add(x, y), operators.multiply(larger, 2))))
        if scale != 1:
            correction = lax.mul(correction, scalar_like(correction, scale))
        total = lax.add(larger, correction)
        turn = operators.remainder(operators.add(lax.imag(total), math.pi * scale), 2 * math.pi * scale)
        total = lax.complex(lax.real(total), operators.subtract(turn, math.pi * scale))
        # As in jax, only numbers stay weakly typed.
        return converted(total, aval_of(total).dtype, False) if aval_of(total).shape else total

    return of_complex


logaddexp = binary_function(
    "logaddexp", _logaddexp(lax.exp, 1), "Return log(exp(x1) + exp(x2)), without overflow.", adjust=as_inexact,
    cases={COMPLEX: _logaddexp_of_complex(lax.exp, 1)},
    example=("jnp.logaddexp(0.0, -jnp.inf)", "Array(0., dtype=float32, weak_type=True)"),
)


logaddexp2 = binary_function(
    "logaddexp2", _logaddexp(lax.exp2, 1 / math.log(2)), "Return log2(2**x1 + 2**x2), without overflow.",
    adjust=as_inexact, cases={COMPLEX: _logaddexp_of_complex(lax.exp2, 1 / math.log(2))},
    example=("jnp.logaddexp2(3.0, 3.0)", "Array(4., dtype=float32, weak_type=True)"),
)
logaddexp, logaddexp2 = as_ufunc(logaddexp), as_ufunc(logaddexp2)


# Trigonometric and hyperbolic functions

sin = unary_function(
    "sin", lax.sin, "Return the sines of elements, which are angles in radians.", adjust=as_inexact,
    example=("jnp.sin(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
cos = unary_function(
    "cos", lax.cos, "Return the cosines of elements, which are angles in radians.", adjust=as_inexact,
    example=("jnp.cos(0.0)", "Array(1., dtype=float32, weak_type=True)"),
)
tan = unary_function(
    "tan", lax.tan, "Return the tangents of elements, which are angles in radians.", adjust=as_inexact,
    example=("jnp.tan(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
sinh = unary_function(
    "sinh", lax.sinh, "Return the hyperbolic sines of elements.", adjust=as_inexact,
    example=("jnp.sinh(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
cosh = unary_function(
    "cosh", lax.cosh, "Return the hyperbolic cosines of elements.", adjust=as_inexact,
    example=("jnp.cosh(0.0)", "Array(1., dtype=float32, weak_type=True)"),
)
tanh = unary_function(
    "tanh", lax.tanh, "Return the hyperbolic tangents of elements.", adjust=as_inexact,
    example=("jnp.tanh(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
arcsin = unary_function(
    "arcsin", lax.asin, "Return the inverse sines of elements, in radians; NaN for real numbers outside of [-1, 1].",
    adjust=as_inexact, example=("jnp.arcsin(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
arccos = unary_function(
    "arccos", lax.acos, "Return the inverse cosines of elements, in radians; NaN for real numbers outside of [-1, 1].",
    adjust=as_inexact, example=("jnp.arccos(1.0)", "Array(0., dtype=float32, weak_type=True)"),
)
arctan = unary_function(
    "arctan", lax.atan, "Return the inverse tangents of elements, in radians.", adjust=as_inexact,
    example=("jnp.arctan(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
arcsinh = unary_function(
    "arcsinh", lax.asinh, "Return the inverse hyperbolic sines of elements.", adjust=as_inexact,
    example=("jnp.arcsinh(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)


# XLA's branch of the complex acosh may have a negative real part; NumPy's has not.
def _arccosh_of_complex(x: Any) -> Any:
    root = lax.acosh(x)
    return lax.select(operators.less(lax.real(root), 0), lax.neg(root), root)


arccosh = unary_function(
    "arccosh", lax.acosh, "Return the inverse hyperbolic cosines of elements; NaN for real numbers below 1.",
    adjust=as_inexact, cases={COMPLEX: _arccosh_of_complex},
    example=("jnp.arccosh(1.0)", "Array(0., dtype=float32, weak_type=True)"),
)
arctanh = unary_function(
    "arctanh", lax.atanh,
    "Return the inverse hyperbolic tangents of elements; NaN for real numbers outside of [-1, 1].", adjust=as_inexact,
    example=("jnp.arctanh(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
arctan2 = binary_function(
    "arctan2", lax.atan2, "Return the angles of the points (x2, x1) in radians, in [-π, π].", adjust=as_inexact,
    example=("jnp.arctan2(0.0, 1.0)", "Array(0., dtype=float32, weak_type=True)"),
)
asin, acos, atan = alias(arcsin, "asin"), alias(arccos, "acos"), alias(arctan, "atan")
asinh, acosh, atanh = alias(arcsinh, "asinh"), alias(arccosh, "acosh"), alias(arctanh, "atanh")
atan2 = alias(arctan2, "atan2")


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda x: lax.mul(x, scalar_like(x, factor))


deg2rad = unary_function(
    "deg2rad", _times(math.pi / 180), "Return angles in radians, given degrees.", adjust=as_inexact,
    example=("jnp.deg2rad(180.0)", "Array(3.1415927, dtype=float32, weak_type=True)"),
)
rad2deg = unary_function(
    "rad2deg", _times(180 / math.pi), "Return angles in degrees, given radians.", adjust=as_inexact,
    example=("jnp.rad2deg(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
radians, degrees = alias(deg2rad, "radians"), alias(rad2deg, "degrees")


def _sinc_at_zero_value(x: Array, order: int) -> Array:
    # The power series of sin(πx) / (πx) has the coefficients (-1)^k π^2k / (2k + 1)! of x^2k.
    value = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
    return _filled(x, value, weak=aval_of(x).weak_type)


# That derivative of sinc at 0, whose derivative is the next.
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
    (x,) = promote("sinc", x, adjust=as_inexact)
    zero = operators.equal(x, 0)
    scaled = choose(zero, scalar_like(x, 1.0), operators.multiply(x, math.pi))
    return choose(zero, _sinc_at_zero(x, 0), lax.div(lax.sin(scaled), scaled))


def _i0(x: Any) -> Array:
    # |x| with derivative 0 at 0, where the function is even.
    return lax.mul(lax.exp(lax.mul(x, lax.sign(x))), bessel_i0e(x))


i0 = unary_function(
    "i0", _i0, "Return the modified Bessel function of the first kind of order 0.", adjust=as_inexact,
    cases={COMPLEX: _refuse_complex("i0", ValueError)}, by_keyword=True, domain=REAL_NUMBERS,
    raises={"ValueError": "the operand is complex."},
    reference="NIST Digital Library of Mathematical Functions, section 10.25.",
    example=("jnp.i0(0.0).round(4)", "Array(1., dtype=float32, weak_type=True)"),
)


# Larger and smaller

maximum = as_ufunc(
    binary_function(
        "maximum", lax.max,
        "Return the larger of two elements, NaN if either is NaN; complex numbers by real part first.",
        example=("jnp.maximum(2, jnp.array([1, 3]))", "Array([2, 3], dtype=int32)"),
    )
)
minimum = as_ufunc(
    binary_function(
        "minimum", lax.min,
        "Return the smaller of two elements, NaN if either is NaN; complex numbers by real part first.",
        example=("jnp.minimum(2, jnp.array([1, 3]))", "Array([1, 2], dtype=int32)"),
    )
)


@inline_jit
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the larger of two elements, and the other one where one is NaN.

    Args:
        x1, x2: arrays or scalars of numbers or booleans whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 2.0)
        Array([2., 2.], dtype=float32)
    """
    x, y = promote("fmax", x1, x2)
    return choose(lax.bitwise_or(operators.greater(x, y), lax.ne(y, y)), x, y)


@inline_jit
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the smaller of two elements, and the other one where one is NaN.

    Args:
        x1, x2: arrays or scalars of numbers or booleans whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 2.0)
        Array([1., 2.], dtype=float32)
    """
    x, y = promote("fmin", x1, x2)
    return choose(lax.bitwise_or(operators.less(x, y), lax.ne(y, y)), x, y)


@inline_jit
def _clip(*operands: ArrayLike, bounds: str) -> Array:
    if any(dtypes.is_complex(operand_aval("clip", i, x).dtype) for i, x in enumerate(operands)):
        raise ValueError(
            "clip: complex numbers have no order to clip by, and the array or a bound is complex; clip the real and "
            "imaginary parts"
        )
    (clipped,) = promote("clip", operands[0])
    # One bound after the other: the first is converted to the dtype that it and the array have in common.
    for bound, limit in zip(bounds, operands[1:], strict=True):
        limit, clipped = promote("clip", limit, clipped)
        clipped = (lax.max if bound == "l" else lax.min)(limit, clipped)
    return to_array(clipped)


@inline_jit(public=True)
def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """Return the elements moved into the interval from `min` to `max`.

    Args:
        arr: an array or a scalar of real numbers.
        min: the lower bounds, an array or a scalar that broadcasts against `arr`; None for no bound.
        max: the upper bounds, as `min`; where `min` is larger, the result is `max`.

    Returns:
        An array of the broadcast shape and the promoted dtype of the array and the bounds.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: an operand is complex, the shapes do not broadcast, or `arr` is missing.

    Example:
        >>> jnp.clip(jnp.array([-1, 2, 7]), 0, 5)
        Array([0, 2, 5], dtype=int32)
    """
    if arr is None:
        raise ValueError("clip: give the array to clip as the first argument")
    given = [(name, x) for name, x in (("l", min), ("h", max)) if x is not None]
    for position, operand in enumerate((arr, *[x for _, x in given])):
        operand_aval("clip", position, operand)
    return _clip(arr, *[x for _, x in given], bounds="".join([name for name, _ in given]))


# Rounding

_UNROUNDED = {BOOL: identity, INTEGER: identity}
floor = unary_function(
    "floor", lax.floor, "Return the largest integers that are not above the elements.", cases=_UNROUNDED,
    domain=REAL_NUMBERS, example=("jnp.floor(-1.5)", "Array(-2., dtype=float32, weak_type=True)"),
)
ceil = unary_function(
    "ceil", lax.ceil, "Return the smallest integers that are not below the elements.", cases=_UNROUNDED,
    domain=REAL_NUMBERS, example=("jnp.ceil(-1.5)", "Array(-1., dtype=float32, weak_type=True)"),
)
trunc = unary_function(
    "trunc", lambda x: lax.select(operators.less(x, 0), lax.ceil(x), lax.floor(x)),
    "Return the elements rounded towards zero.", cases=_UNROUNDED, by_keyword=True, domain=REAL_NUMBERS,
    example=("jnp.trunc(-1.5)", "Array(-1., dtype=float32, weak_type=True)"),
)


def _to_even(x: Array) -> Array:
    return lax.round.bind_positional((x,), (lax.RoundingMethod.TO_NEAREST_EVEN,))


def _as_float(x: Any) -> Any:
    return converted(x, dtypes.default_float(config.enable_x64.value))


rint = unary_function(
    "rint", _to_even, "Return the elements rounded to integers, halves to even.",
    cases={BOOL: _as_float, INTEGER: _as_float, COMPLEX: _of_parts(_to_even)},
    returns="the promoted dtype, the default floating dtype if that is integer or boolean",
    example=("jnp.rint(2.5)", "Array(2., dtype=float32, weak_type=True)"),
)


@inline_jit(static=("decimals", "out"), public=True)
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, halves to even.

    Args:
        a: an array or a scalar of numbers.
        decimals: the number of decimals, a Python integer; of a negative one, digits before the point become 0.
        out: not supported; leave it at None.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `out` is given, or `a` has integers and `decimals` is negative.
        TypeError: `decimals` is no Python integer, or `a` is no array and no scalar.
        ValueError: `a` has booleans.

    Example:
        >>> jnp.round(jnp.array([0.5, 2.75]), 1)
        Array([0.5, 2.8], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.round is not supported; arrays are immutable")
    return round_decimals(a, decimals=to_integer("round", "decimals", decimals))


@inline_jit(static=("decimals", "out"), public=True)
def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, halves to even; another name of `round`.

    Args:
        a: an array or a scalar of numbers.
        decimals: the number of decimals, a Python integer.
        out: not supported; leave it at None.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `out` is given, or `a` has integers and `decimals` is negative.
        TypeError: `decimals` is no Python integer, or `a` is no array and no scalar.
        ValueError: `a` has booleans.

    Example:
        >>> jnp.around(jnp.array([0.5, 2.75]), 1)
        Array([0.5, 2.8], dtype=float32)
    """
    return round(a, decimals, out)


@inline_jit
def _modf(x: ArrayLike) -> tuple[Any, Any]:
    (x,) = promote("modf", x, adjust=as_inexact)
    whole = choose(operators.greater_equal(x, 0), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


@inline_jit(static=("out",), public=True)
def modf(x: ArrayLike, /, out: None = None) -> tuple[Any, Any]:
    """Return the fractional and the integer parts of elements, both with the sign of `x`.

    Args:
        x: an array or a scalar of real numbers or booleans.
        out: not supported; leave it at None.

    Returns:
        Two arrays of the shape of `x` and its dtype, as a floating one if that is integer or boolean.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `x` is complex, or no array and no scalar.

    Example:
        >>> jnp.modf(-2.5)
        (Array(-0.5, dtype=float32, weak_type=True), Array(-2., dtype=float32, weak_type=True))
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.modf is not supported; arrays are immutable")
    return _modf(x)


# Complex numbers


def _imaginary_zero(x: Any) -> Array:
    return _filled(x, 0, weak=aval_of(x).weak_type)


_REAL = {BOOL: identity, INTEGER: identity}
conjugate = unary_function(
    "conjugate", identity, "Return the complex conjugates of elements.", cases={COMPLEX: lambda x: lax.conj(x)},
    example=("jnp.conjugate(1.0 + 2.0j)", "Array(1.-2.j, dtype=complex64, weak_type=True)"),
)
conj = unary_function(
    "conj", identity, "Return the complex conjugates of elements; another name of `conjugate`.",
    cases={COMPLEX: lambda x: lax.conj(x)},
    example=("jnp.conj(1.0 + 2.0j)", "Array(1.-2.j, dtype=complex64, weak_type=True)"),
)
real = unary_function(
    "real", identity, "Return the real parts of elements.", cases={COMPLEX: lax.real}, names=("val",),
    returns="the promoted dtype; for complex numbers that of their parts",
    example=("jnp.real(1.0 + 2.0j)", "Array(1., dtype=float32, weak_type=True)"),
)
imag = unary_function(
    "imag", _imaginary_zero, "Return the imaginary parts of elements, zero for real numbers.",
    cases={COMPLEX: lax.imag}, names=("val",), returns="the promoted dtype; for complex numbers that of their parts",
    example=("jnp.imag(1.0 + 2.0j)", "Array(2., dtype=float32, weak_type=True)"),
)


def _as_default_float(dtype: np.dtype[Any], weak: bool) -> tuple[Any, bool]:
    return (dtype, weak) if dtypes.is_inexact(dtype) else (dtypes.default_float(config.enable_x64.value), weak)


@inline_jit
def _angle(z: ArrayLike, *, deg: bool) -> Array:
    (x,) = promote("angle", z, adjust=_as_default_float)
    if dtypes.is_complex(aval_of(x).dtype):
        angle = lax.atan2(lax.imag(x), lax.real(x))
    else:
        given = aval_of(z)
        if given.shape:
            angle = lax.atan2(_filled(x, 0.0, weak=given.weak_type and dtypes.is_inexact(given.dtype)), x)
        else:  # the 0 beside a single number is of the default dtype, as in JAX
            default = dtypes.default_float(config.enable_x64.value)
            wider = max(aval_of(x).dtype, default, key=dtypes.bit_width)
            angle = lax.atan2(_filled(x, 0.0, wider), converted(x, wider))
    return lax.mul(angle, scalar_like(angle, 180 / math.pi)) if deg else angle


@inline_jit(static=("deg",), public=True)
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angles of complex numbers; of real numbers, 0 or π.

    Args:
        z: an array or a scalar of numbers or booleans.
        deg: whether the angles are in degrees instead of radians.

    Returns:
        An array of the shape of `z`, of the floating dtype of its parts.

    Raises:
        TypeError: `z` is no array and no scalar.

    Example:
        >>> jnp.angle(1.0j, deg=True)
        Array(90., dtype=float32, weak_type=True)
    """
    return _angle(z, deg=bool(deg))


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype of an object is complex.

    Args:
        x: an array, a scalar, a list of numbers or one of the scalar types; for None and text the result is False.

    Returns:
        A Python bool.

    Raises:
        TypeError: `x` is another object.

    Example:
        >>> jnp.iscomplexobj(1j)
        True
    """
    if x is None or isinstance(x, str):
        return False
    x = asarray(x) if isinstance(x, (list, tuple)) else x
    own = getattr(x, "dtype", None)
    return dtypes.is_complex(own if isinstance(own, np.dtype) else operand_aval("iscomplexobj", 0, x).dtype)


def isrealobj(x: Any) -> bool:
    """Return whether the dtype of an object is not complex.

    Args:
        x: an array, a scalar, a list of numbers or one of the scalar types; for None and text the result is True.

    Returns:
        A Python bool.

    Raises:
        TypeError: `x` is another object.

    Example:
        >>> jnp.isrealobj(1j)
        False
    """
    return not iscomplexobj(x)


@inline_jit
def iscomplex(x: ArrayLike) -> Array:
    """Return whether elements have an imaginary part that is not zero.

    Args:
        x: an array or a scalar of numbers or booleans.

    Returns:
        An array of the shape of `x` and dtype bool.

    Raises:
        TypeError: `x` is no array and no scalar.

    Example:
        >>> jnp.iscomplex(jnp.array([1.0, 1.0j]))
        Array([False,  True], dtype=bool)
    """
    part = imag(x)
    return lax.ne(part, scalar_like(part, 0))


@inline_jit
def isreal(x: ArrayLike) -> Array:
    """Return whether elements have an imaginary part of zero.

    Args:
        x: an array or a scalar of numbers or booleans.

    Returns:
        An array of the shape of `x` and dtype bool.

    Raises:
        TypeError: `x` is no array and no scalar.

    Example:
        >>> jnp.isreal(jnp.array([1.0, 1.0j]))
        Array([ True, False], dtype=bool)
    """
    part = imag(x)
    return lax.eq(part, scalar_like(part, 0))


# Kinds of floating number


def _everywhere(value: bool) -> Callable[[Any], Any]:
    return lambda x: _filled(x, value, dtypes.bool_)


def _finite_complex(x: Any) -> Array:
    return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))


def _infinite(x: Any) -> Array:
    return lax.eq(lax.abs(x), _strong(x, math.inf))


isfinite = unary_function(
    "isfinite", lax.is_finite, "Return whether elements are neither infinite nor NaN.",
    cases={COMPLEX: _finite_complex, BOOL: _everywhere(True), INTEGER: _everywhere(True)}, returns="dtype bool",
    example=("jnp.isfinite(jnp.array([1.0, jnp.inf]))", "Array([ True, False], dtype=bool)"),
)
isinf = unary_function(
    "isinf", _infinite, "Return whether elements are infinite; complex numbers are if one of their parts is.", cases={
        COMPLEX: lambda x: lax.bitwise_or(_infinite(lax.real(x)), _infinite(lax.imag(x))), BOOL: _everywhere(False),
        INTEGER: _everywhere(False),
    },
    returns="dtype bool", example=("jnp.isinf(jnp.array([1.0, jnp.inf]))", "Array([False,  True], dtype=bool)"),
)
isnan = unary_function(
    "isnan", lambda x: lax.ne(x, x), "Return whether elements are NaN; complex numbers are if one of their parts is.",
    returns="dtype bool", example=("jnp.isnan(jnp.array([1.0, jnp.nan]))", "Array([False,  True], dtype=bool)"),
)
_is_infinity = {
    name: unary_function(
        name, lambda x, value=value: lax.eq(x, _strong(x, value)), "",
        cases={COMPLEX: _refuse_complex(name, ValueError), BOOL: _everywhere(False), INTEGER: _everywhere(False)},
    )
    for name, value in (("isposinf", math.inf), ("isneginf", -math.inf))
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
        TypeError: `x` is no array and no scalar.
        ValueError: `x` is complex.

    Example:
        >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
        Array([ True, False], dtype=bool)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.isposinf is not supported; arrays are immutable")
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
        TypeError: `x` is no array and no scalar.
        ValueError: `x` is complex.

    Example:
        >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.isneginf is not supported; arrays are immutable")
    return _is_infinity["isneginf"](x)


@inline_jit
def _nan_to_num(x: ArrayLike, *replacements: ArrayLike, given: str) -> Array:
    (x,) = promote("nan_to_num", x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        parts = [_nan_to_num(part(x), *replacements, given=given) for part in (lax.real, lax.imag)]
        return lax.complex(*parts)
    if not dtypes.is_floating(dtype):
        return to_array(x)
    limits = dtypes.finfo(dtype)
    values: dict[str, Any] = {"p": float(limits.max), "n": float(limits.min)}
    values |= dict(zip(given, replacements, strict=True))
    x = choose(lax.ne(x, x), cast_as(x, values["a"]), x)
    x = choose(lax.eq(x, _strong(x, math.inf)), cast_as(x, values["p"]), x)
    return choose(lax.eq(x, _strong(x, -math.inf)), cast_as(x, values["n"]), x)


@inline_jit(static=("copy",), public=True)
def nan_to_num(x: ArrayLike, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """Replace NaN and infinities by finite numbers.

    Args:
        x: an array or a scalar of numbers; of complex numbers, both parts are replaced.
        copy: makes no difference, since arrays are immutable.
        nan: the number in the place of NaN.
        posinf, neginf: the numbers in the place of the infinities; None for the largest and smallest ones of the dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is no array and no scalar.

    Example:
        >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf]), posinf=9.0)
        Array([0., 9.], dtype=float32)
    """
    given = {"a": nan, "p": posinf, "n": neginf}
    kept = {k: v for k, v in given.items() if v is not None or k == "a"}
    return _nan_to_num(x, *kept.values(), given="".join(kept))


@inline_jit
def _isclose(a: Any, b: ArrayLike, rtol: ArrayLike, atol: ArrayLike, *, equal_nan: bool) -> Array:
    x, y = promote("isclose", a, b, adjust=as_inexact)
    if isinstance(aval_of(x).dtype, dtypes.ExtendedDType):
        return operators.equal(x, y)
    finite = isfinite(y)
    example = lax.abs(y)
    relative, absolute_part = [converted(value, example.dtype) for value in (rtol, atol)]
    allowed = operators.add(absolute_part, operators.multiply(relative, example))
    near = operators.bitwise_and(finite, operators.less_equal(lax.abs(lax.sub(x, y)), allowed))
    close = operators.bitwise_or(lax.eq(x, y), near)
    if equal_nan:
        close = operators.bitwise_or(close, operators.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return close


@inline_jit(static=("equal_nan",), public=True)
def isclose(a: Any, b: ArrayLike, rtol: Any = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False) -> Array:
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
        TypeError: an operand is no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.isclose(jnp.array([1.0, 2.0]), 1.0 + 1e-6)
        Array([ True, False], dtype=bool)
    """
    return _isclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


# Parts of floating numbers

_INTEGERS = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _sign_of_float(x: Any) -> Array:
    dtype = aval_of(x).dtype
    width = dtypes.bit_width(dtype)
    if width not in _INTEGERS:
        raise NotImplementedError(f"signbit of {dtype.name}, which has {width} bits; convert to float16 first")
    return operators.less(lax.bitcast_convert_type(x, _INTEGERS[width]), 0)


signbit = unary_function(
    "signbit", _sign_of_float, "Return whether elements have the sign bit set: they are below zero, or -0.0.", cases={
        COMPLEX: _refuse_complex("signbit", ValueError), BOOL: _everywhere(False),
        INTEGER: lambda x: lax.lt(x, _strong(x, 0)), UNSIGNED: _everywhere(False),
    },
    domain=REAL_NUMBERS, returns="dtype bool",
    raises={"ValueError": "the operand is complex.", "NotImplementedError": "a floating dtype has fewer than 8 bits."},
    example=("jnp.signbit(jnp.array([1.0, -0.0]))", "Array([False,  True], dtype=bool)"),
)


def _copysign(x: Any, y: Any) -> Array:
    size = lax.abs(x)
    return choose(signbit(y), lax.neg(size), size)


copysign = binary_function(
    "copysign", _copysign, "Return elements of size |x1| with the signs of `x2`.", adjust=as_inexact,
    cases={COMPLEX: _refuse_complex("copysign")}, domain=REAL_NUMBERS,
    example=("jnp.copysign(2.0, -1.0)", "Array(-2., dtype=float32, weak_type=True)"),
)
nextafter = binary_function(
    "nextafter", lax.nextafter, "Return the numbers next to `x` in the direction of `y`.", adjust=as_inexact,
    names=("x", "y"), domain=REAL_NUMBERS,
    example=("jnp.nextafter(0.0, 1.0)", "Array(1.e-45, dtype=float32, weak_type=True)"),
)


@custom_jvp
def _scaled(mantissa: Any, x: Any, exponent: Any) -> Any:
    """`mantissa`, which is x / 2**exponent, found without a derivative of its own."""
    return mantissa


@_scaled.defjvp
def _scaled_jvp(primals: Any, tangents: Any) -> Any:
    mantissa, x, exponent = primals
    tangent = lax.mul(tangents[1], lax.pow(_strong(x, 2.0), lax.neg(converted(exponent, x.dtype))))
    return mantissa, converted(tangent, x.dtype, aval_of(x).weak_type)


@inline_jit
def _frexp(x: ArrayLike) -> tuple[Any, Any]:
    (x,) = promote("frexp", x, adjust=as_inexact)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        _refuse_complex("frexp")()
    limits = dtypes.finfo(dtype)
    width, digits = dtypes.bit_width(dtype), limits.nmant
    if width not in _INTEGERS or width == 8:
        raise NotImplementedError(f"frexp of {dtype.name}; convert to float16 first")
    x = to_array(x)
    bits = _INTEGERS[width]
    exponent_mask, fraction_mask, bias = (1 << limits.nexp) - 1, (1 << digits) - 1, (1 << (limits.nexp - 1)) - 1
    pattern = lax.bitcast_convert_type(x, bits)
    # Arithmetic takes subnormal numbers for 0, so they are told by their bits; their fraction is an integer.
    fraction = operators.bitwise_and(pattern, fraction_mask)
    subnormal = operators.equal(operators.bitwise_and(pattern, exponent_mask << digits), 0)
    unscaled = lax.bitwise_or(
        lax.bitwise_not(lax.is_finite(x)), lax.bitwise_and(subnormal, operators.equal(fraction, 0))
    )
    sign = operators.bitwise_and(pattern, ~((exponent_mask << digits) | fraction_mask))
    scaled = operators.bitwise_or(lax.bitcast_convert_type(converted(fraction, dtype), bits), sign)
    pattern = choose(subnormal, scaled, pattern)
    shift = choose(subnormal, cast_as(pattern, 1 - bias - digits), cast_as(pattern, 0))
    exponent = operators.bitwise_and(operators.right_shift(pattern, digits), exponent_mask)
    exponent = operators.add(operators.subtract(exponent, bias - 1), shift)
    # The bits of the exponent are replaced by those of numbers in [0.5, 1).
    kept = operators.bitwise_and(pattern, ~(exponent_mask << digits))
    mantissa = lax.bitcast_convert_type(operators.bitwise_or(kept, (bias - 1) << digits), dtype)
    exponent = converted(choose(unscaled, 0, exponent), dtypes.int32)
    return choose(unscaled, x, _scaled(mantissa, x, exponent)), exponent


@inline_jit(public=True)
def frexp(x: ArrayLike, /) -> tuple[Any, Any]:
    """Return the mantissas m in [0.5, 1) and the exponents n of ``x = m * 2**n``.

    Args:
        x: an array or a scalar of real numbers or booleans.

    Returns:
        The mantissas, of the shape of `x` and its dtype, as a floating one if that is integer or boolean, and the
        exponents as int32. Zeros, infinities and NaN are their own mantissas, with the exponent 0.

    Raises:
        NotImplementedError: the dtype is a floating one of at most 8 bits.
        TypeError: `x` is complex, or no array and no scalar.

    Example:
        >>> jnp.frexp(6.0)
        (Array(0.75, dtype=float32), Array(3, dtype=int32))
    """
    return _frexp(x)


@inline_jit
def _ldexp(x: Array, exponent: Array) -> Array:
    (x,) = promote("ldexp", x, adjust=as_inexact)
    x = converted(x, aval_of(x).dtype)
    x, exponent = promote("ldexp", x, converted(exponent, x.dtype))
    mantissa, own = _frexp(x)
    exponent = lax.add(converted(own, x.dtype), exponent)
    # Mantissas from 1 on: 2 ** exponent stays in range where the result does.
    above = operators.greater(exponent, 0)
    mantissa = choose(above, operators.multiply(mantissa, 2), mantissa)
    exponent = choose(above, operators.subtract(exponent, 1), exponent)
    scaled = lax.mul(mantissa, lax.pow(_strong(x, 2.0), exponent))
    return choose(lax.bitwise_or(_infinite(x), operators.equal(x, 0)), x, scaled)


@inline_jit(public=True)
def ldexp(x1: Any, x2: Any, /) -> Array:
    """Return ``x1 * 2**x2``, without overflow of ``2**x2``.

    Args:
        x1: an array or a scalar of real numbers or booleans.
        x2: the exponents, an array or a scalar of integers or booleans that broadcasts against `x1`.

    Returns:
        An array of the broadcast shape and the dtype of `x1`, as a floating one if that is integer or boolean.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: `x1` is complex, `x2` is no integer, or the shapes do not broadcast.

    Example:
        >>> jnp.ldexp(3.0, 2)
        Array(12., dtype=float32)
    """
    left, right = operand_aval("ldexp", 0, x1).dtype, operand_aval("ldexp", 1, x2).dtype
    if dtypes.is_complex(left) or dtypes.is_inexact(right):
        raise ValueError(f"ldexp: not supported for input types ({left.name}, {right.name}); x2 must be an integer")
    return _ldexp(x1, x2)


@inline_jit
def spacing(x: Any, /) -> Any:
    """Return the distances to the next numbers away from zero, signed as `x`; in float16, to the next larger ones.

    Args:
        x: an array or a scalar of real numbers or booleans.

    Returns:
        An array of the shape of `x` and its dtype, as a floating one if that is integer or boolean.

    Raises:
        TypeError: `x` is no array and no scalar.
        ValueError: `x` is complex.

    Example:
        >>> jnp.spacing(1.0)
        Array(1.1920929e-07, dtype=float32)
    """
    (x,) = promote("spacing", x, adjust=as_inexact)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        _refuse_complex("spacing", ValueError)()
    x = converted(x, dtype)
    # NumPy's float16 differs from its other types here.
    signed = lax.abs(x) if dtype == dtypes.float16 else x
    distance = lax.sub(lax.nextafter(x, _copysign(_filled(x, math.inf), signed)), x)
    smallest = _copysign(_filled(x, float(dtypes.finfo(dtype).smallest_subnormal)), signed)
    return choose(operators.equal(distance, 0), smallest, distance)


@inline_jit
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return 0 where ``x1 < 0``, 1 where ``x1 > 0``, `x2` where `x1` is 0, and NaN where it is NaN.

    Args:
        x1, x2: arrays or scalars of real numbers or booleans whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype, as a floating one if that is integer or boolean.

    Raises:
        TypeError: an operand is complex, or no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    _, (x, y) = promote_dtypes("heaviside", (x1, x2), as_inexact)
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    return choose(lax.lt(x, zero), zero, choose(lax.gt(x, zero), one, choose(lax.ne(x, x), x, y)))


# Bits

bitwise_and = as_ufunc(operators.bitwise_and)
bitwise_or = as_ufunc(operators.bitwise_or)
bitwise_xor = as_ufunc(operators.bitwise_xor)
invert = operators.invert
bitwise_invert = alias(invert, "bitwise_invert")
bitwise_not = alias(invert, "bitwise_not")
left_shift = operators.left_shift
bitwise_left_shift = alias(left_shift, "bitwise_left_shift")
right_shift = operators.right_shift
bitwise_right_shift = alias(right_shift, "bitwise_right_shift")


def _count_bits(x: Any) -> Array:
    size = lax.abs(x) if dtypes.is_signed(aval_of(x).dtype) else x
    return converted(lax.population_count(size), dtypes.uint8)


bitwise_count = unary_function(
    "bitwise_count", _count_bits, "Return the numbers of bits that are set in the absolute values of elements.",
    adjust=as_number, domain=INTEGERS, returns="dtype uint8",
    example=("jnp.bitwise_count(-7)", "Array(3, dtype=uint8)"),
)


# Logic and comparisons


def _logical(name: str, combine: Callable[[Any, Any], Any], contract: str, **documentation: Any) -> Callable[..., Any]:
    def logical(x1: Any, x2: ArrayLike, /) -> Array:
        left, right = promote(name, x1, x2)
        return combine(truth(left), truth(right))

    logical.__name__ = logical.__qualname__ = name
    logical.__doc__ = elementwise_docstring(contract, ("x1", "x2"), None, **documentation)
    return as_ufunc(inline_jit(logical))


logical_and = _logical(
    "logical_and", lax.bitwise_and, "Return whether both elements are true or not zero.", returns="dtype bool",
    example=("jnp.logical_and(jnp.array([True, False]), True)", "Array([ True, False], dtype=bool)"),
)
logical_or = _logical(
    "logical_or", lax.bitwise_or, "Return whether one or both elements are true or not zero.", returns="dtype bool",
    example=("jnp.logical_or(jnp.array([True, False]), False)", "Array([ True, False], dtype=bool)"),
)
logical_xor = _logical(
    "logical_xor", lax.bitwise_xor, "Return whether exactly one of the two elements is true or not zero.",
    returns="dtype bool",
    example=("jnp.logical_xor(jnp.array([True, False]), True)", "Array([False,  True], dtype=bool)"),
)
logical_not = unary_function(
    "logical_not", lambda x: lax.bitwise_not(truth(x)), "Return whether elements are false or zero.",
    cases={BOOL: lax.bitwise_not}, returns="dtype bool",
    example=("jnp.logical_not(jnp.array([True, False]))", "Array([False,  True], dtype=bool)"),
)
equal = operators.equal
not_equal = operators.not_equal
less = operators.less
less_equal = operators.less_equal
greater = operators.greater
greater_equal = operators.greater_equal

_choose = inline_jit(choose)


@inline_jit(public=True)
def _where(condition: Any, x: ArrayLike, y: ArrayLike) -> Array:
    for position, operand in enumerate((condition, x, y)):
        operand_aval("where", position, operand)
    return _choose(condition, x, y)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return the elements of `x` where `condition` holds, of `y` elsewhere; of a condition alone, its positions.

    Args:
        condition: an array or a scalar; it holds where it is true or not zero.
        x, y: arrays or scalars that broadcast against `condition`; both or neither.
        size: the number of positions, which must be known while tracing: more are left out, and missing ones filled.
        fill_value: fills missing positions; None for 0.

    Returns:
        An array of the broadcast shape and the promoted dtype of `x` and `y`. Without them, a tuple of arrays of
        integers, one for each axis of `condition`.

    Raises:
        ConcretizationTypeError: the positions of a traced condition are asked for without `size`.
        TypeError: an operand is no array and no scalar, or only one of `x` and `y` is given.
        ValueError: the shapes do not broadcast, or `size` or `fill_value` is given beside `x` and `y`.

    Example:
        >>> jnp.where(jnp.array([True, False]), 1, jnp.array([5, 6]))
        Array([1, 6], dtype=int32)
        >>> jnp.where(jnp.array([0, 3, 0, 4]))
        (Array([1, 3], dtype=int32),)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for the form with a condition only; leave them out")
    if x is None or y is None:
        raise TypeError(f"where: {'x' if x is None else 'y'} is None; give both x and y, or neither for the positions")
    return _where(condition, x, y)
