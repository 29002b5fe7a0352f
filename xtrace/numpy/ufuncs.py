"""NumPy's elementwise functions; those behind Python's operators come from ``xtrace._src.api.operators``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import BOOL, COMPLEX, INTEGER, UNSIGNED
from xtrace._src.algebra.vector_space import broadcast_in_dim, converted
from xtrace._src.api import operators
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import (
    alias,
    as_array,
    as_number,
    binary_function,
    cast_as,
    choose,
    constant_like,
    identity,
    rounded,
    truth,
    unary_function,
)
from xtrace._src.api.promotion import as_inexact, common_dtype, operand_aval, promote, promote_dtypes, scalar_value
from xtrace._src.core import config, dtypes
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.function_names import copy_with_name
from xtrace._src.core.ir import Literal
from xtrace._src.ops import elementwise as lax
from xtrace._src.ops.special import bessel_i0e
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


def _filled(x: Any, value: Any, dtype: Any = None, weak: bool = False) -> Any:
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

    def by_parts(x: Any) -> Any:
        return lax.complex(function(lax.real(x)), function(lax.imag(x)))

    return by_parts


# Arithmetic

add = as_ufunc(operators.add)
subtract = as_ufunc(operators.subtract)
multiply = as_ufunc(operators.multiply)
negative = as_ufunc(operators.negative)
true_divide = operators.true_divide
divide = binary_function("divide", lax.div, "Quotient as a floating number.", adjust=as_inexact)
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
    "float_power", lax.pow, "Power as a floating number.", adjust=as_inexact, names=("x", "y")
)


@inline_jit
def fmod(x1: Any, x2: Any, /) -> Any:
    """Remainder with the sign of x1; 0 for an integer divided by 0."""
    _, dtype, _ = common_dtype("fmod", (x1, x2))
    x, y = promote("fmod", x1, x2, adjust=as_number)
    if dtypes.is_integer(dtype):
        y = choose(operators.equal(y, 0), 1, y)
    return lax.rem(x, y)


def _reciprocal(x: Any) -> Any:
    return lax.integer_pow.bind_positional((x,), (-1,))


reciprocal = unary_function("reciprocal", _reciprocal, "1 / x as a floating number.", adjust=as_inexact)
square = unary_function("square", lax.square, "Square.", adjust=as_number)
sign = unary_function("sign", lax.sign, "Sign: -1, 0 or 1; of complex numbers, x / abs(x).")
fabs = unary_function(
    "fabs", lax.abs, "Absolute value as a floating number.", adjust=as_inexact, cases={COMPLEX: _refuse_complex("fabs")}
)


@inline_jit
def hypot(x1: Any, x2: Any, /) -> Any:
    """Length of the vector (x1, x2), without overflow of the squares. TypeError for complex numbers."""
    x, y = promote("hypot", x1, x2, adjust=as_inexact)
    if dtypes.is_complex(aval_of(x).dtype):
        _refuse_complex("hypot", ValueError)()
    x, y = lax.abs(x), lax.abs(y)
    infinite = constant_like(x, math.inf)
    either_infinite = lax.bitwise_or(lax.eq(x, infinite), lax.eq(y, infinite))
    larger, smaller = lax.max(x, y), lax.min(x, y)
    zero = operators.equal(larger, 0)
    ratio = lax.div(smaller, choose(zero, constant_like(larger, 1), larger))
    length = lax.mul(larger, lax.sqrt(operators.add(lax.square(ratio), 1)))
    return choose(either_infinite, infinite, choose(zero, larger, length))


# Exponentials, logarithms and roots

exp = unary_function("exp", lax.exp, "Exponential.", adjust=as_inexact)
exp2 = unary_function("exp2", lax.exp2, "Power of two.", adjust=as_inexact)
expm1 = unary_function("expm1", lax.expm1, "exp(x) - 1, exact near zero.", adjust=as_inexact)
log = unary_function("log", lax.log, "Natural logarithm.", adjust=as_inexact)
log1p = unary_function("log1p", lax.log1p, "log(1 + x), exact near zero.", adjust=as_inexact)
sqrt = unary_function("sqrt", lax.sqrt, "Square root.", adjust=as_inexact)
cbrt = unary_function("cbrt", lax.cbrt, "Cube root.", adjust=as_inexact)


def _in_base_2(natural: Any) -> Any:
    return lax.div(natural, lax.log(_strong(natural, 2.0)))


def _in_base_10(natural: Any) -> Any:
    return lax.mul(natural, _strong(natural, math.log10(math.e)))


log2 = unary_function(
    "log2",
    lambda x: _in_base_2(lax.log(x)),
    "Logarithm to base 2.",
    adjust=as_inexact,
    cases={COMPLEX: lambda x: _of_parts(_in_base_2)(lax.log(x))},
)
log10 = unary_function(
    "log10",
    lambda x: _in_base_10(lax.log(x)),
    "Logarithm to base 10.",
    adjust=as_inexact,
    cases={COMPLEX: lambda x: _of_parts(_in_base_10)(lax.log(x))},
)


# log(e^x + e^y) = max(x, y) + log1p(e^-|x - y|); x - y is NaN for equal infinities, whose sum is the result.
# Its derivatives are e^(x - f) and e^(y - f), also where x = y, where neither max nor |x - y| has one.
def _logaddexp(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    @custom_jvp
    def of_reals(x: Any, y: Any) -> Any:
        difference = lax.sub(x, y)
        correction = lax.log1p(exponential(lax.neg(lax.abs(difference))))
        if scale != 1:
            correction = lax.mul(correction, constant_like(correction, scale))
        return lax.select(lax.ne(difference, difference), lax.add(x, y), lax.add(lax.max(x, y), correction))

    @of_reals.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        found = of_reals(*primals)
        end = _finite_above(found)
        terms = [
            operators.multiply(t, exponential(operators.subtract(_finite_above(x), end)))
            for x, t in zip(primals, tangents, strict=True)
        ]
        return found, operators.add(*terms)

    return lambda x, y: of_reals(as_array(x), as_array(y))


def _finite_above(x: Any) -> Any:
    return choose(operators.equal(x, math.inf), 0, x)


# Of complex numbers the imaginary part is brought into (-π, π], in units of the base.
def _logaddexp_of_complex(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    def of_complex(x: Any, y: Any) -> Any:
        larger = choose(lax.eq(lax.max(x, y), x), x, y)
        correction = lax.log1p(exponential(operators.subtract(lax.add(x, y), operators.multiply(larger, 2))))
        if scale != 1:
            correction = lax.mul(correction, constant_like(correction, scale))
        found = lax.add(larger, correction)
        turn = operators.remainder(operators.add(lax.imag(found), math.pi * scale), 2 * math.pi * scale)
        found = lax.complex(lax.real(found), operators.subtract(turn, math.pi * scale))
        # As in jax, only numbers stay weakly typed.
        return converted(found, aval_of(found).dtype, False) if aval_of(found).shape else found

    return of_complex


logaddexp = binary_function(
    "logaddexp",
    _logaddexp(lax.exp, 1),
    "log(exp(x1) + exp(x2)), without overflow.",
    adjust=as_inexact,
    cases={COMPLEX: _logaddexp_of_complex(lax.exp, 1)},
)


logaddexp2 = binary_function(
    "logaddexp2",
    _logaddexp(lax.exp2, 1 / math.log(2)),
    "log2(2**x1 + 2**x2), without overflow.",
    adjust=as_inexact,
    cases={COMPLEX: _logaddexp_of_complex(lax.exp2, 1 / math.log(2))},
)
logaddexp, logaddexp2 = as_ufunc(logaddexp), as_ufunc(logaddexp2)


# Trigonometric and hyperbolic functions

sin = unary_function("sin", lax.sin, "Sine.", adjust=as_inexact)
cos = unary_function("cos", lax.cos, "Cosine.", adjust=as_inexact)
tan = unary_function("tan", lax.tan, "Tangent.", adjust=as_inexact)
sinh = unary_function("sinh", lax.sinh, "Hyperbolic sine.", adjust=as_inexact)
cosh = unary_function("cosh", lax.cosh, "Hyperbolic cosine.", adjust=as_inexact)
tanh = unary_function("tanh", lax.tanh, "Hyperbolic tangent.", adjust=as_inexact)
arcsin = unary_function("arcsin", lax.asin, "Inverse sine.", adjust=as_inexact)
arccos = unary_function("arccos", lax.acos, "Inverse cosine.", adjust=as_inexact)
arctan = unary_function("arctan", lax.atan, "Inverse tangent.", adjust=as_inexact)
arcsinh = unary_function("arcsinh", lax.asinh, "Inverse hyperbolic sine.", adjust=as_inexact)


# XLA's branch of the complex acosh may have a negative real part; NumPy's has not.
def _arccosh_of_complex(x: Any) -> Any:
    found = lax.acosh(x)
    return lax.select(operators.less(lax.real(found), 0), lax.neg(found), found)


arccosh = unary_function(
    "arccosh", lax.acosh, "Inverse hyperbolic cosine.", adjust=as_inexact, cases={COMPLEX: _arccosh_of_complex}
)
arctanh = unary_function("arctanh", lax.atanh, "Inverse hyperbolic tangent.", adjust=as_inexact)
arctan2 = binary_function("arctan2", lax.atan2, "Angle of the point (x2, x1).", adjust=as_inexact)
asin, acos, atan = alias(arcsin, "asin"), alias(arccos, "acos"), alias(arctan, "atan")
asinh, acosh, atanh = alias(arcsinh, "asinh"), alias(arccosh, "acosh"), alias(arctanh, "atanh")
atan2 = alias(arctan2, "atan2")


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda x: lax.mul(x, constant_like(x, factor))


deg2rad = unary_function("deg2rad", _times(math.pi / 180), "Radians of an angle in degrees.", adjust=as_inexact)
rad2deg = unary_function("rad2deg", _times(180 / math.pi), "Degrees of an angle in radians.", adjust=as_inexact)
radians, degrees = alias(deg2rad, "radians"), alias(rad2deg, "degrees")


def _sinc_at_zero_value(x: Any, order: int) -> Any:
    # The power series of sin(πx) / (πx) has the coefficients (-1)^k π^2k / (2k + 1)! of x^2k.
    value = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
    return _filled(x, value, weak=aval_of(x).weak_type)


# That derivative of sinc at 0, whose derivative is the next.
_sinc_at_zero = custom_jvp(_sinc_at_zero_value, nondiff_argnums=(1,))


@_sinc_at_zero.defjvp
def _sinc_at_zero_jvp(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    found = [_sinc_at_zero(primals[0], n) for n in (order, order + 1)]
    return found[0], lax.mul(tangents[0], found[1])


@inline_jit
def sinc(x: Any, /) -> Any:
    """sin(πx) / (πx), and 1 at 0."""
    (x,) = promote("sinc", x, adjust=as_inexact)
    zero = operators.equal(x, 0)
    scaled = choose(zero, constant_like(x, 1.0), operators.multiply(x, math.pi))
    return choose(zero, _sinc_at_zero(x, 0), lax.div(lax.sin(scaled), scaled))


def _i0(x: Any) -> Any:
    # |x| with derivative 0 at 0, where the function is even.
    return lax.mul(lax.exp(lax.mul(x, lax.sign(x))), bessel_i0e(x))


i0 = unary_function(
    "i0",
    _i0,
    "Modified Bessel function of the first kind, order 0.",
    adjust=as_inexact,
    cases={COMPLEX: _refuse_complex("i0", ValueError)},
    by_keyword=True,
)


# Larger and smaller

maximum = as_ufunc(
    binary_function("maximum", lax.max, "Larger element, NaN if either is; complex numbers by real part first.")
)
minimum = as_ufunc(
    binary_function("minimum", lax.min, "Smaller element, NaN if either is; complex numbers by real part first.")
)


@inline_jit
def fmax(x1: Any, x2: Any) -> Any:
    """Larger element, and not NaN where one is."""
    x, y = promote("fmax", x1, x2)
    return choose(lax.bitwise_or(operators.greater(x, y), lax.ne(y, y)), x, y)


@inline_jit
def fmin(x1: Any, x2: Any) -> Any:
    """Smaller element, and not NaN where one is."""
    x, y = promote("fmin", x1, x2)
    return choose(lax.bitwise_or(operators.less(x, y), lax.ne(y, y)), x, y)


@inline_jit
def _clip(*operands: Any, bounds: str) -> Any:
    if any(dtypes.is_complex(operand_aval("clip", i, x).dtype) for i, x in enumerate(operands)):
        raise ValueError(
            "clip: complex numbers have no order to clip by, and the array or a bound is complex; clip the real and "
            "imaginary parts"
        )
    (found,) = promote("clip", operands[0])
    # One bound after the other: the first is converted to the dtype that it and the array have in common.
    for bound, limit in zip(bounds, operands[1:], strict=True):
        limit, found = promote("clip", limit, found)
        found = (lax.max if bound == "l" else lax.min)(limit, found)
    return as_array(found)


@inline_jit(public=True)
def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """Elements moved into [min, max], `max` where min > max; a bound of None does not bound.

    ValueError for complex numbers, and without an array.
    """
    if arr is None:
        raise ValueError("clip: give the array to clip as the first argument")
    given = [(name, x) for name, x in (("l", min), ("h", max)) if x is not None]
    for position, operand in enumerate((arr, *[x for _, x in given])):
        operand_aval("clip", position, operand)
    return _clip(arr, *[x for _, x in given], bounds="".join([name for name, _ in given]))


# Rounding

_UNROUNDED = {BOOL: identity, INTEGER: identity}
floor = unary_function("floor", lax.floor, "Largest integer not above x.", cases=_UNROUNDED)
ceil = unary_function("ceil", lax.ceil, "Smallest integer not below x.", cases=_UNROUNDED)
trunc = unary_function(
    "trunc",
    lambda x: lax.select(operators.less(x, 0), lax.ceil(x), lax.floor(x)),
    "Integer part, towards zero.",
    cases=_UNROUNDED,
    by_keyword=True,
)


def _to_even(x: Any) -> Any:
    return lax.round.bind_positional((x,), (lax.RoundingMethod.TO_NEAREST_EVEN,))


def _as_float(x: Any) -> Any:
    return converted(x, dtypes.default_float(config.enable_x64.value))


rint = unary_function(
    "rint",
    _to_even,
    "Nearest integer as a floating number, halves to even.",
    cases={BOOL: _as_float, INTEGER: _as_float, COMPLEX: _of_parts(_to_even)},
)


@inline_jit(static=("decimals", "out"), public=True)
def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """Round to a number of decimals, halves to even.

    TypeError if `decimals` is no Python integer; NotImplementedError for integers and a negative `decimals`.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.round is not supported; arrays are immutable")
    try:
        places = operator.index(decimals)
    except TypeError:
        raise TypeError(f"round: decimals must be a Python integer, got {abbreviated(decimals)}") from None
    return rounded(a, decimals=places)


@inline_jit(static=("decimals", "out"), public=True)
def around(a: Any, decimals: int = 0, out: None = None) -> Any:
    """Round to a number of decimals, halves to even; another name of `round`."""
    return round(a, decimals, out)


@inline_jit
def _modf(x: Any) -> tuple[Any, Any]:
    (x,) = promote("modf", x, adjust=as_inexact)
    whole = choose(operators.greater_equal(x, 0), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


@inline_jit(static=("out",), public=True)
def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """Fractional and integer parts, both with the sign of x."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.modf is not supported; arrays are immutable")
    return _modf(x)


# Complex numbers


def _imaginary_zero(x: Any) -> Any:
    return _filled(x, 0, weak=aval_of(x).weak_type)


_REAL = {BOOL: identity, INTEGER: identity}
conjugate = unary_function("conjugate", identity, "Complex conjugate.", cases={COMPLEX: lambda x: lax.conj(x)})
conj = unary_function("conj", identity, "Complex conjugate.", cases={COMPLEX: lambda x: lax.conj(x)})
real = unary_function("real", identity, "Real part.", cases={COMPLEX: lax.real}, names=("val",))
imag = unary_function(
    "imag", _imaginary_zero, "Imaginary part, zero for real numbers.", cases={COMPLEX: lax.imag}, names=("val",)
)


def _as_default_float(dtype: Any, weak: bool) -> tuple[Any, bool]:
    return (dtype, weak) if dtypes.is_inexact(dtype) else (dtypes.default_float(config.enable_x64.value), weak)


@inline_jit
def _angle(z: Any, *, deg: bool) -> Any:
    (x,) = promote("angle", z, adjust=_as_default_float)
    if dtypes.is_complex(aval_of(x).dtype):
        found = lax.atan2(lax.imag(x), lax.real(x))
    else:
        given = aval_of(z)
        if given.shape:
            found = lax.atan2(_filled(x, 0.0, weak=given.weak_type and dtypes.is_inexact(given.dtype)), x)
        else:  # the 0 beside a single number is of the default dtype, as in JAX
            default = dtypes.default_float(config.enable_x64.value)
            wider = max(aval_of(x).dtype, default, key=dtypes.bit_width)
            found = lax.atan2(_filled(x, 0.0, wider), converted(x, wider))
    return lax.mul(found, constant_like(found, 180 / math.pi)) if deg else found


@inline_jit(static=("deg",), public=True)
def angle(z: Any, deg: bool = False) -> Any:
    """Angle of a complex number in radians, or degrees if `deg`; of a real one, 0 or π."""
    return _angle(z, deg=bool(deg))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of `x`, an array, a scalar, a list or one of the scalar types, is complex.

    None and text have none. TypeError for other objects.
    """
    if x is None or isinstance(x, str):
        return False
    x = asarray(x) if isinstance(x, (list, tuple)) else x
    own = getattr(x, "dtype", None)
    return dtypes.is_complex(own if isinstance(own, np.dtype) else operand_aval("iscomplexobj", 0, x).dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype of `x` is not complex."""
    return not iscomplexobj(x)


@inline_jit
def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is not zero."""
    part = imag(x)
    return lax.ne(part, constant_like(part, 0))


@inline_jit
def isreal(x: Any) -> Any:
    """Whether the imaginary part is zero."""
    part = imag(x)
    return lax.eq(part, constant_like(part, 0))


# Kinds of floating number


def _everywhere(value: bool) -> Callable[[Any], Any]:
    return lambda x: _filled(x, value, dtypes.bool_)


def _finite_complex(x: Any) -> Any:
    return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))


def _infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), _strong(x, math.inf))


isfinite = unary_function(
    "isfinite",
    lax.is_finite,
    "Whether x is neither infinite nor NaN.",
    cases={COMPLEX: _finite_complex, BOOL: _everywhere(True), INTEGER: _everywhere(True)},
)
isinf = unary_function(
    "isinf",
    _infinite,
    "Whether x is infinite.",
    cases={
        COMPLEX: lambda x: lax.bitwise_or(_infinite(lax.real(x)), _infinite(lax.imag(x))),
        BOOL: _everywhere(False),
        INTEGER: _everywhere(False),
    },
)
isnan = unary_function("isnan", lambda x: lax.ne(x, x), "Whether x is NaN.")
_is_infinity = {
    name: unary_function(
        name,
        lambda x, value=value: lax.eq(x, _strong(x, value)),
        "",
        cases={COMPLEX: _refuse_complex(name, ValueError), BOOL: _everywhere(False), INTEGER: _everywhere(False)},
    )
    for name, value in (("isposinf", math.inf), ("isneginf", -math.inf))
}


def isposinf(x: Any, /, out: None = None) -> Any:
    """Whether x is positive infinity. ValueError for complex numbers."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.isposinf is not supported; arrays are immutable")
    return _is_infinity["isposinf"](x)


def isneginf(x: Any, /, out: None = None) -> Any:
    """Whether x is negative infinity. ValueError for complex numbers."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to xtrace.numpy.isneginf is not supported; arrays are immutable")
    return _is_infinity["isneginf"](x)


@inline_jit
def _nan_to_num(x: Any, *replacements: Any, given: str) -> Any:
    (x,) = promote("nan_to_num", x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        parts = [_nan_to_num(part(x), *replacements, given=given) for part in (lax.real, lax.imag)]
        return lax.complex(*parts)
    if not dtypes.is_floating(dtype):
        return as_array(x)
    limits = dtypes.finfo(dtype)
    values: dict[str, Any] = {"p": float(limits.max), "n": float(limits.min)}
    values |= dict(zip(given, replacements, strict=True))
    x = choose(lax.ne(x, x), cast_as(x, values["a"]), x)
    x = choose(lax.eq(x, _strong(x, math.inf)), cast_as(x, values["p"]), x)
    return choose(lax.eq(x, _strong(x, -math.inf)), cast_as(x, values["n"]), x)


@inline_jit(static=("copy",), public=True)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN by `nan`, and infinities by `posinf` and `neginf` or the largest finite numbers.

    `copy` makes no difference: arrays are immutable.
    """
    given = {"a": nan, "p": posinf, "n": neginf}
    kept = {k: v for k, v in given.items() if v is not None or k == "a"}
    return _nan_to_num(x, *kept.values(), given="".join(kept))


@inline_jit
def _isclose(a: Any, b: Any, rtol: Any, atol: Any, *, equal_nan: bool) -> Any:
    x, y = promote("isclose", a, b, adjust=as_inexact)
    if isinstance(aval_of(x).dtype, dtypes.ExtendedDType):
        return operators.equal(x, y)
    finite = isfinite(y)
    example = lax.abs(y)
    relative, absolute_part = [converted(value, example.dtype) for value in (rtol, atol)]
    allowed = operators.add(absolute_part, operators.multiply(relative, example))
    near = operators.bitwise_and(finite, operators.less_equal(lax.abs(lax.sub(x, y)), allowed))
    found = operators.bitwise_or(lax.eq(x, y), near)
    if equal_nan:
        found = operators.bitwise_or(found, operators.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return found


@inline_jit(static=("equal_nan",), public=True)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol * |b|; infinities are close to themselves, and NaN is if `equal_nan`.

    Random keys are close if they are equal.
    """
    return _isclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


# Parts of floating numbers

_INTEGERS = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _sign_of_float(x: Any) -> Any:
    dtype = aval_of(x).dtype
    width = dtypes.bit_width(dtype)
    if width not in _INTEGERS:
        raise NotImplementedError(f"signbit of {dtype.name}, which has {width} bits; convert to float16 first")
    return operators.less(lax.bitcast_convert_type(x, _INTEGERS[width]), 0)


signbit = unary_function(
    "signbit",
    _sign_of_float,
    "Whether the sign bit is set: below zero, or -0.0.",
    cases={
        COMPLEX: _refuse_complex("signbit", ValueError),
        BOOL: _everywhere(False),
        INTEGER: lambda x: lax.lt(x, _strong(x, 0)),
        UNSIGNED: _everywhere(False),
    },
)


def _copysign(x: Any, y: Any) -> Any:
    size = lax.abs(x)
    return choose(signbit(y), lax.neg(size), size)


copysign = binary_function(
    "copysign", _copysign, "x1 with the sign of x2.", adjust=as_inexact, cases={COMPLEX: _refuse_complex("copysign")}
)
nextafter = binary_function(
    "nextafter", lax.nextafter, "Next number after x towards y.", adjust=as_inexact, names=("x", "y")
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
def _frexp(x: Any) -> tuple[Any, Any]:
    (x,) = promote("frexp", x, adjust=as_inexact)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        _refuse_complex("frexp")()
    limits = dtypes.finfo(dtype)
    width, digits = dtypes.bit_width(dtype), limits.nmant
    if width not in _INTEGERS or width == 8:
        raise NotImplementedError(f"frexp of {dtype.name}; convert to float16 first")
    x = as_array(x)
    bits = _INTEGERS[width]
    # Subnormal numbers are first scaled into the normal range.
    subnormal = lax.lt(lax.abs(x), _strong(x, float(limits.tiny)))
    pattern = lax.bitcast_convert_type(choose(subnormal, operators.multiply(x, 2.0**digits), x), bits)
    shift = choose(subnormal, cast_as(pattern, -digits), cast_as(pattern, 0))
    exponent_mask, bias = (1 << limits.nexp) - 1, (1 << (limits.nexp - 1)) - 1
    exponent = operators.bitwise_and(operators.right_shift(pattern, digits), exponent_mask)
    exponent = operators.add(operators.subtract(exponent, bias - 1), shift)
    # The bits of the exponent are replaced by those of numbers in [0.5, 1).
    kept = operators.bitwise_and(pattern, ~(exponent_mask << digits))
    mantissa = lax.bitcast_convert_type(operators.bitwise_or(kept, (bias - 1) << digits), dtype)
    unscaled = lax.bitwise_or(lax.bitwise_not(lax.is_finite(x)), operators.equal(x, 0))
    exponent = converted(choose(unscaled, 0, exponent), dtypes.int32)
    return choose(unscaled, x, _scaled(mantissa, x, exponent)), exponent


@inline_jit(public=True)
def frexp(x: Any, /) -> tuple[Any, Any]:
    """Mantissa in [0.5, 1) and exponent: x = mantissa * 2**exponent. TypeError for complex numbers."""
    return _frexp(x)


@inline_jit
def _ldexp(x: Any, exponent: Any) -> Any:
    (x,) = promote("ldexp", x, adjust=as_inexact)
    x = converted(x, aval_of(x).dtype)
    x, exponent = promote("ldexp", x, converted(exponent, x.dtype))
    mantissa, own = _frexp(x)
    exponent = lax.add(converted(own, x.dtype), exponent)
    # Mantissas from 1 on: 2 ** exponent stays in range where the result does.
    above = operators.greater(exponent, 0)
    mantissa = choose(above, operators.multiply(mantissa, 2), mantissa)
    exponent = choose(above, operators.subtract(exponent, 1), exponent)
    found = lax.mul(mantissa, lax.pow(_strong(x, 2.0), exponent))
    return choose(lax.bitwise_or(_infinite(x), operators.equal(x, 0)), x, found)


@inline_jit(public=True)
def ldexp(x1: Any, x2: Any, /) -> Any:
    """x1 * 2**x2, without overflow of 2**x2. ValueError if x1 is complex or x2 no integer."""
    left, right = operand_aval("ldexp", 0, x1).dtype, operand_aval("ldexp", 1, x2).dtype
    if dtypes.is_complex(left) or dtypes.is_inexact(right):
        raise ValueError(f"ldexp: not supported for input types ({left.name}, {right.name}); x2 must be an integer")
    return _ldexp(x1, x2)


@inline_jit
def spacing(x: Any, /) -> Any:
    """Distance to the next number away from zero, with the sign of x; in float16, to the next larger one.

    ValueError for complex numbers.
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
def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 where x1 < 0, 1 where x1 > 0, x2 where x1 is 0, NaN where it is NaN."""
    _, (x, y) = promote_dtypes("heaviside", (x1, x2), as_inexact)
    zero, one = constant_like(x, 0), constant_like(x, 1)
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


def _count_bits(x: Any) -> Any:
    size = lax.abs(x) if dtypes.is_signed(aval_of(x).dtype) else x
    return converted(lax.population_count(size), dtypes.uint8)


bitwise_count = unary_function(
    "bitwise_count", _count_bits, "Number of bits set in the absolute value, as uint8.", adjust=as_number
)


# Logic and comparisons


def _logical(name: str, combine: Callable[[Any, Any], Any], doc: str) -> Callable[..., Any]:
    def logical(x1: Any, x2: Any, /) -> Any:
        left, right = promote(name, x1, x2)
        return combine(truth(left), truth(right))

    logical.__name__ = logical.__qualname__ = name
    logical.__doc__ = doc
    return as_ufunc(inline_jit(logical))


logical_and = _logical("logical_and", lax.bitwise_and, "Whether both are true or not zero.")
logical_or = _logical("logical_or", lax.bitwise_or, "Whether one or both are true or not zero.")
logical_xor = _logical("logical_xor", lax.bitwise_xor, "Whether one of the two is true or not zero.")
logical_not = unary_function(
    "logical_not", lambda x: lax.bitwise_not(truth(x)), "Whether x is false or zero.", cases={BOOL: lax.bitwise_not}
)
equal = operators.equal
not_equal = operators.not_equal
less = operators.less
less_equal = operators.less_equal
greater = operators.greater
greater_equal = operators.greater_equal

_choose = inline_jit(choose)


@inline_jit(public=True)
def _where(condition: Any, x: Any, y: Any) -> Any:
    for position, operand in enumerate((condition, x, y)):
        operand_aval("where", position, operand)
    return _choose(condition, x, y)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Elements of `x` where `condition` is true or not zero, of `y` elsewhere; without them, the positions where it is.

    `size` and `fill_value` are for positions only: a number of them that is known while tracing, and what fills the
    rest. TypeError for what is no array or scalar, ValueError for shapes that do not broadcast.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for the form with a condition only; leave them out")
    if x is None or y is None:
        raise TypeError(f"where: {'x' if x is None else 'y'} is None; give both x and y, or neither for the positions")
    return _where(condition, x, y)
