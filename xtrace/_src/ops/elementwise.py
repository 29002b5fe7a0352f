"""Elementwise operations of lax, and those that go with them: choice, conversion, reinterpretation of bits."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.families import (
    Elementwise,
    Unary,
    add_any,
    as_bool,
    binary,
    compare,
    elementwise,
    unary,
)
from xtrace._src.algebra.families import mul as mul
from xtrace._src.algebra.families import neg as neg
from xtrace._src.algebra.kinds import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    PART,
    REAL,
    SIGNED,
    UNSIGNED,
    check_kind,
    check_same_dtype,
)
from xtrace._src.algebra.monoids import AND, OR
from xtrace._src.algebra.vector_space import (
    LINEAR,
    ZERO_DERIVATIVE,
    broadcast_in_dim,
    broadcast_like,
    converted,
    move_axis,
    unbroadcast,
    with_axis,
    zeros,
)
from xtrace._src.core import dtypes, pytree
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.integers import to_integer
from xtrace._src.core.ir import Literal
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.lower_fun import lower_fun
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitcast_convert_type", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clamp", "clz", "complex", "conj", "cos", "cosh",
    "div", "eq", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag", "integer_pow", "is_finite", "le", "log",
    "log1p", "logistic", "lt", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter", "optimization_barrier",
    "population_count", "pow", "real", "reciprocal", "reduce_precision", "rem", "round", "RoundingMethod", "rsqrt",
    "select", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh",
    "sqrt", "square", "sub", "tan", "tanh",
]


def constant_like(x: ArrayLike, value: Any) -> Literal:
    """Return the scalar `value` in the dtype of `x`."""
    aval = aval_of(x)
    return Literal(dtypes.scalar_type_of(aval.dtype)(value), ShapedArray((), aval.dtype, aval.weak_type))


def constants_like(x: ArrayLike, value: Any) -> Any:
    """Return `value` in the shape and dtype of `x`."""
    shape = aval_of(x).shape
    return broadcast_in_dim(constant_like(x, value), shape, ()) if shape else constant_like(x, value)


# How derivatives read below: t is the tangent, x and y are the operands, r is the result.


# Signs and rounding


def _sign_of_unsigned(builder: FunctionBuilder, x: Value) -> Value:
    return builder.elementwise("minimum", x, _constant(builder, 1, x))


sign = unary(
    "sign", "stablehlo.sign", NUMBER,
    "Return the sign of each element: -1, 0 or 1, zeros and NaN unchanged, and x / abs(x) for complex numbers.",
    cases={UNSIGNED: _sign_of_unsigned}, derivatives=0,
    example=("lax.sign(-2.5)", "Array(-1., dtype=float32, weak_type=True)"),
)
floor = unary(
    "floor", "stablehlo.floor", (FLOAT,),
    "Return the largest integer that is not above each element, as a floating number.", derivatives=0,
    example=("lax.floor(1.7)", "Array(1., dtype=float32, weak_type=True)"),
)
ceil = unary(
    "ceil", "stablehlo.ceil", (FLOAT,),
    "Return the smallest integer that is not below each element, as a floating number.", derivatives=0,
    example=("lax.ceil(1.2)", "Array(2., dtype=float32, weak_type=True)"),
)
is_finite = unary(
    "is_finite", "stablehlo.is_finite", (FLOAT,), "Return whether each element is neither infinite nor NaN.",
    result=as_bool, derivatives=0, example=("lax.is_finite(jnp.inf)", "Array(False, dtype=bool, weak_type=True)"),
)


# d|x| = t sign(x), and of a complex number Re(t conj(x) / |x|); at 0 it is t, of a complex 0 it is 0.
def _abs_derivative(t: Any, x: Any, r: Any) -> Any:
    if not dtypes.is_complex(aval_of(x).dtype):
        return select(ge(x, constant_like(x, 0)), t, neg(t))
    modulus = converted(r, aval_of(x).dtype)
    divisor = select(eq(modulus, constant_like(x, 0)), constants_like(x, 1), modulus)
    return real(mul(t, div(conj(x), divisor)))


abs = unary(
    "abs", "stablehlo.abs", (FLOAT, COMPLEX, SIGNED),
    "Return the absolute value of each element; of complex numbers, the modulus.", result=dtypes.real_part_dtype,
    derivatives=_abs_derivative, example=("lax.abs(3 + 4j)", "Array(5., dtype=float32, weak_type=True)"),
    returns="the dtype of real parts",
)


class RoundingMethod(enum.IntEnum):
    """The result of `round` for numbers halfway between two integers: away from zero, or the even one.

    Example:
        >>> lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN)
        Array(2., dtype=float32, weak_type=True)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round(builder: FunctionBuilder, x: Value, *, rounding_method: RoundingMethod) -> Value:
    name = "round_nearest_even" if rounding_method == RoundingMethod.TO_NEAREST_EVEN else "round_nearest_afz"
    return builder.elementwise(name, x)


@elementwise("round", _round, (FLOAT,), parameters=("rounding_method",), derivatives=0)
def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Round each element to the nearest integer.

    Args:
        x: an array or a scalar of real floating numbers.
        rounding_method: a `RoundingMethod`: numbers halfway between two integers go away from zero, or to the even one.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is no array or scalar of real floating numbers.
        ValueError: `rounding_method` is no `RoundingMethod`.

    Example:
        >>> lax.round(2.5)
        Array(3., dtype=float32, weak_type=True)
    """
    return round.bind_positional((x,), (RoundingMethod(rounding_method),))


nextafter = binary(
    "nextafter", "chlo.next_after", (FLOAT,), "Return the floating-point number next to `x1` in the direction of `x2`.",
    promoting="nextafter", names=("x1", "x2"),
    jvp=no_rule("nextafter has no derivative: it steps from one floating-point number to the next"),
    example=("lax.nextafter(0.0, 1.0)", "Array(1.e-45, dtype=float32, weak_type=True)"),
)


# Exponentials, logarithms, powers and roots


@lower_fun
def _exp2(x: Any, *, accuracy: Any) -> Any:
    return exp(x * math.log(2), accuracy=accuracy)


exp = unary(
    "exp", "stablehlo.exponential", INEXACT, "Return the exponential of each element.", accuracy=True,
    derivatives=lambda t, x, r, **_: mul(t, r),
    example=("lax.exp(1.0)", "Array(2.7182817, dtype=float32, weak_type=True)"),
)
exp2 = unary(
    "exp2", _exp2, INEXACT, "Return 2 to the power of each element.", accuracy=True,
    derivatives=lambda t, x, r, **_: mul(constant_like(x, math.log(2)), mul(t, r)),
    example=("lax.exp2(3.0)", "Array(8., dtype=float32, weak_type=True)"),
)
expm1 = unary(
    "expm1", "stablehlo.exponential_minus_one", INEXACT, "Return exp(x) - 1, exact near zero.", accuracy=True,
    derivatives=lambda t, x, r, **_: mul(t, add(r, constant_like(r, 1))),
    example=("lax.expm1(1e-6)", "Array(1.0000005e-06, dtype=float32, weak_type=True)"),
)
log = unary(
    "log", "stablehlo.log", INEXACT, "Return the natural logarithm of each element; NaN for negative real numbers.",
    accuracy=True, derivatives=lambda t, x, r, **_: div(t, x),
    example=("lax.log(2.0)", "Array(0.6931472, dtype=float32, weak_type=True)"),
)
log1p = unary(
    "log1p", "stablehlo.log_plus_one", INEXACT, "Return log(1 + x), exact near zero.", accuracy=True,
    derivatives=lambda t, x, r, **_: div(t, add(x, constant_like(x, 1))),
    example=("lax.log1p(1e-6)", "Array(9.999995e-07, dtype=float32, weak_type=True)"),
)
logistic = unary(
    "logistic", "stablehlo.logistic", INEXACT, "Return the logistic function 1 / (1 + exp(-x)) of each element.",
    accuracy=True, derivatives=lambda t, x, r, **_: mul(t, mul(r, sub(constant_like(r, 1), r))),
    example=("lax.logistic(0.0)", "Array(0.5, dtype=float32, weak_type=True)"),
)
sqrt = unary(
    "sqrt", "stablehlo.sqrt", INEXACT, "Return the square root of each element; NaN for negative real numbers.",
    accuracy=True, derivatives=lambda t, x, r, **_: mul(t, div(constant_like(r, 0.5), r)),
    example=("lax.sqrt(4.0)", "Array(2., dtype=float32, weak_type=True)"),
)
rsqrt = unary(
    "rsqrt", "stablehlo.rsqrt", INEXACT, "Return the reciprocal of the square root of each element.", accuracy=True,
    derivatives=lambda t, x, r, **_: mul(t, mul(constant_like(x, -0.5), div(r, x))),
    example=("lax.rsqrt(4.0)", "Array(0.5, dtype=float32, weak_type=True)"),
)


def _cbrt_derivative(t: Any, x: Any, r: Any, **_: Any) -> Any:
    return mul(t, mul(constant_like(r, 1 / 3), integer_pow(r, -2)))


cbrt = unary(
    "cbrt", "stablehlo.cbrt", (FLOAT,), "Return the real cube root of each element.", accuracy=True,
    derivatives=_cbrt_derivative, example=("lax.cbrt(-8.0)", "Array(-2., dtype=float32, weak_type=True)"),
)


def _square_of_integer(builder: FunctionBuilder, x: Value) -> Value:
    return builder.elementwise("multiply", x, x)


square = unary(
    "square", "chlo.square", NUMBER, "Return the square of each element.", cases={INTEGER: _square_of_integer},
    derivatives=lambda t, x, r: mul(t, mul(constant_like(x, 2), x)),
    example=("lax.square(3)", "Array(9, dtype=int32, weak_type=True)"),
)


def _integer_pow(builder: FunctionBuilder, x: Value, *, y: int) -> Value:
    aval = x.aval
    one = builder.literal(1, aval.update(shape=()))
    power, product, exponent = x, None, -y if y < 0 else y
    # By squaring: the exponent's bits from the lowest on say which of x, x², x⁴ … are factors.
    while exponent:
        if exponent & 1:
            product = power if product is None else builder.elementwise("multiply", product, power)
        exponent >>= 1
        if exponent:
            power = builder.elementwise("multiply", power, power)
    if product is None:
        return builder.broadcast_operand(one, aval.shape)
    if y > 0:
        return product
    return builder.elementwise("divide", builder.broadcast_operand(one, aval.shape), product)


def _integer_pow_result(dtype: Any, *, y: int) -> Any:
    if y < 0 and dtypes.is_integer(dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({dtype.name}, {y}). "
            "Convert the base to a floating dtype first"
        )
    return dtype


def _integer_pow_derivative(t: Any, x: Any, r: Any, *, y: int) -> Any:
    if y == 0:
        return zeros(aval_of(x))
    if y == 1:
        return t
    return mul(t, mul(constant_like(x, y), x if y == 2 else integer_pow.bind_positional((x,), (y - 1,))))


@elementwise(
    "integer_pow", _integer_pow, NUMBER, result=_integer_pow_result, parameters=("y",),
    derivatives=_integer_pow_derivative,
)
def integer_pow(x: Any, y: int) -> Any:
    """Return `x` to a power that is known while tracing, by repeated multiplication.

    Args:
        x: an array or a scalar of numbers.
        y: a Python integer; a negative one asks for floating or complex `x`.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is no array of numbers, or `y` is no Python integer, or is negative for an integer `x`.

    Example:
        >>> lax.integer_pow(2.0, -2)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow.bind_positional((x,), (to_integer("integer_pow", "y", y),))


def reciprocal(x: Any) -> Any:
    """Return 1 / x.

    Args:
        x: an array or a scalar of real floating or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is no array or scalar of real floating or complex numbers.

    Example:
        >>> lax.reciprocal(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow(x, -1)


def _pow(builder: FunctionBuilder, x: Value, y: Value) -> Value:
    return builder.elementwise("power", x, builder.convert(y, x.aval.dtype))


def _pow_result(x: Any, y: Any) -> Any:
    if x != y and not dtypes.is_integer(y):
        raise TypeError(
            f"lax.pow requires a floating or complex base, and an exponent of the same or an integer dtype; got "
            f"{x.name} and {y.name}. (Tip: xtrace.numpy.power is a similar function that does automatic type promotion "
            "on inputs)."
        )
    return x


# The derivative y x**(y - 1) is 0 for the integer exponent 0, also where x**-1 is infinite. As in JAX it is strongly
# typed, unless that by y is added to it.
def _pow_by_base(t: Any, x: Any, y: Any, r: Any) -> Any:
    x = converted(x, aval_of(x).dtype)
    if dtypes.is_inexact(aval_of(y).dtype):
        return mul(t, mul(y, pow(x, sub(y, constants_like(y, 1)))))
    exponent = converted(y, aval_of(x).dtype)
    is_zero = eq(exponent, constant_like(x, 0))
    one = constants_like(exponent, 1)
    power = pow(x, sub(select(is_zero, one, exponent), one))
    factor = mul(exponent, power)
    return mul(t, select(broadcast_like(is_zero, factor), constants_like(factor, 0), factor))


# The derivative r log x is 0 for x = 0, where r is 0.
def _pow_by_exponent(t: Any, x: Any, y: Any, r: Any) -> Any:
    base = select(eq(x, constant_like(x, 0)), constants_like(x, 1), x)
    return mul(t, mul(log(base), r))


pow = binary(
    "pow", _pow, (INEXACT, NUMBER), "Return `x` to the power `y`, in the dtype of `x`; `y` may have an integer dtype.",
    result=_pow_result, same_dtype=False, derivatives=(_pow_by_base, _pow_by_exponent),
    example=("lax.pow(2.0, 3)", "Array(8., dtype=float32, weak_type=True)"), returns="the dtype of `x`",
)


# Trigonometric and hyperbolic functions


def _parts_of_sine(x: Any) -> tuple[Any, ...]:
    """Return a, sin a, cos a, sinh b and cosh b of x = a + ib; exp(b) - 1 keeps sinh exact near zero."""
    a, b = real(x), imag(x)
    up, down = expm1(b), expm1(-b)
    return a, sin(a), cos(a), (up - down) / 2, (up + down + 2) / 2


# sin(a + ib) = sin a cosh b + i cos a sinh b; on the imaginary axis 0 * inf must not make the real part NaN.
@lower_fun
def _complex_sine(x: Any, *, accuracy: Any) -> Any:
    a, sin_a, cos_a, sinh_b, cosh_b = _parts_of_sine(x)
    return complex(select(a == 0, constants_like(a, 0), sin_a * cosh_b), cos_a * sinh_b)


# cos(a + ib) = cos a cosh b - i sin a sinh b
@lower_fun
def _complex_cosine(x: Any, *, accuracy: Any) -> Any:
    a, sin_a, cos_a, sinh_b, cosh_b = _parts_of_sine(x)
    return complex(cos_a * cosh_b, select(a == 0, constants_like(a, 0), -sin_a * sinh_b))


sin = unary(
    "sin", "stablehlo.sine", INEXACT, "Return the sine of each element, an angle in radians.", accuracy=True,
    cases={COMPLEX: _complex_sine}, derivatives=lambda t, x, r, accuracy: mul(t, cos(x, accuracy=accuracy)),
    example=("lax.sin(1.0)", "Array(0.84147096, dtype=float32, weak_type=True)"),
)
cos: Unary = unary(
    "cos", "stablehlo.cosine", INEXACT, "Return the cosine of each element, an angle in radians.", accuracy=True,
    cases={COMPLEX: _complex_cosine}, derivatives=lambda t, x, r, accuracy: neg(mul(t, sin(x, accuracy=accuracy))),
    example=("lax.cos(0.0)", "Array(1., dtype=float32, weak_type=True)"),
)
tan = unary(
    "tan", "stablehlo.tan", INEXACT, "Return the tangent of each element, an angle in radians.", accuracy=True,
    derivatives=lambda t, x, r, **_: mul(t, add(constant_like(r, 1), square(r))),
    example=("lax.tan(1.0)", "Array(1.5574077, dtype=float32, weak_type=True)"),
)
asin = unary(
    "asin", "chlo.asin", INEXACT,
    "Return the inverse sine of each element in radians; NaN for real numbers outside [-1, 1].",
    derivatives=lambda t, x, r: mul(t, rsqrt(sub(constant_like(x, 1), square(x)))),
    example=("lax.asin(1.0)", "Array(1.5707964, dtype=float32, weak_type=True)"),
)
acos = unary(
    "acos", "chlo.acos", INEXACT,
    "Return the inverse cosine of each element in radians; NaN for real numbers outside [-1, 1].",
    derivatives=lambda t, x, r: mul(t, neg(rsqrt(sub(constant_like(x, 1), square(x))))),
    example=("lax.acos(1.0)", "Array(0., dtype=float32, weak_type=True)"),
)
atan = unary(
    "atan", "chlo.atan", INEXACT, "Return the inverse tangent of each element in radians.",
    derivatives=lambda t, x, r: div(t, add(constant_like(x, 1), square(x))),
    example=("lax.atan(1.0)", "Array(0.7853982, dtype=float32, weak_type=True)"),
)
sinh = unary(
    "sinh", "chlo.sinh", INEXACT, "Return the hyperbolic sine of each element.",
    derivatives=lambda t, x, r: mul(t, cosh(x)),
    example=("lax.sinh(1.0)", "Array(1.1752012, dtype=float32, weak_type=True)"),
)
cosh: Unary = unary(
    "cosh", "chlo.cosh", INEXACT, "Return the hyperbolic cosine of each element.",
    derivatives=lambda t, x, r: mul(t, sinh(x)), example=("lax.cosh(0.0)", "Array(1., dtype=float32, weak_type=True)"),
)
tanh = unary(
    "tanh", "stablehlo.tanh", INEXACT, "Return the hyperbolic tangent of each element.", accuracy=True,
    derivatives=lambda t, x, r, **_: mul(add(t, mul(t, r)), sub(constant_like(r, 1), r)),
    example=("lax.tanh(1.0)", "Array(0.7615942, dtype=float32, weak_type=True)"),
)
asinh = unary(
    "asinh", "chlo.asinh", INEXACT, "Return the inverse hyperbolic sine of each element.",
    derivatives=lambda t, x, r: mul(t, rsqrt(add(square(x), constant_like(x, 1)))),
    example=("lax.asinh(0.0)", "Array(0., dtype=float32, weak_type=True)"),
)
acosh = unary(
    "acosh", "chlo.acosh", INEXACT,
    "Return the inverse hyperbolic cosine of each element; NaN for real numbers below 1.",
    derivatives=lambda t, x, r: mul(t, rsqrt(sub(square(x), constant_like(x, 1)))),
    example=("lax.acosh(1.0)", "Array(0., dtype=float32, weak_type=True)"),
)
# 1 / (1 - x²) in two factors, which keep their precision near -1 and 1.
atanh = unary(
    "atanh", "chlo.atanh", INEXACT,
    "Return the inverse hyperbolic tangent of each element; NaN for real numbers outside [-1, 1].",
    derivatives=lambda t, x, r: mul(reciprocal(add(constant_like(x, 1), x)), div(t, sub(constant_like(x, 1), x))),
    example=("lax.atanh(0.5)", "Array(0.54930615, dtype=float32, weak_type=True)"),
)
atan2 = binary(
    "atan2", "stablehlo.atan2", INEXACT,
    "Return the angle in radians between the positive horizontal axis and the point with abscissa `y`, ordinate `x`.",
    promoting="arctan2",
    derivatives=(
        lambda t, x, y, r: mul(t, div(y, add(square(x), square(y)))),
        lambda t, x, y, r: mul(t, div(neg(x), add(square(x), square(y)))),
    ),
    example=("lax.atan2(1.0, -1.0)", "Array(2.3561945, dtype=float32, weak_type=True)"),
)


# Arithmetic

add: Elementwise = binary(
    "add", "stablehlo.add", NUMBER, "Return the sum of corresponding elements.", promoting="add", derivatives=1,
    example=("lax.add(1, 2)", "Array(3, dtype=int32, weak_type=True)"),
)
sub: Elementwise = binary(
    "sub", "stablehlo.subtract", NUMBER, "Return the difference x - y of corresponding elements.", promoting="subtract",
    derivatives=(1, -1), example=("lax.sub(1, 2)", "Array(-1, dtype=int32, weak_type=True)"),
)


def _integer_division(op: str, of_zero: Callable[[FunctionBuilder, Value], Value]) -> Any:
    """Return how the division `op` of integers is written; `of_zero` gives the result for a divisor of 0 from x.

    XLA on CPU folds constants with the processor's division, and the process dies of one by zero: there a divisor
    that may be zero is replaced by 1.
    """

    def emit(builder: FunctionBuilder, x: Value, y: Value) -> Value:
        text = builder.text_of_constant(y)
        if builder.platform != "cpu" or (text is not None and not _zero_element.search(text)):
            return builder.elementwise(op, x, y)
        is_zero = builder.compare("EQ", y, _constant(builder, 0, y))
        divisor = builder.select(is_zero, _constant(builder, 1, y), y)
        quotient = builder.elementwise(op, x, divisor)
        return builder.select(is_zero, of_zero(builder, x), quotient)

    return emit


def _constant(builder: FunctionBuilder, value: int, like: Value) -> Value:
    return builder.broadcast_operand(builder.literal(value, like.aval.update(shape=())), like.aval.shape)


def _all_ones(builder: FunctionBuilder, x: Value) -> Value:
    return _constant(builder, -1 if dtypes.is_signed(x.aval.dtype) else int(dtypes.iinfo(x.aval.dtype).max), x)


# An element that is zero, or a form of the text that does not show the elements.
_zero_element = re.compile(r"[<\[ ]0[>\],]|0x")


def _div_transpose(cotangent: Any, x: Any, y: Any) -> list[Any]:
    return [unbroadcast(div(cotangent, y), x.aval), None]


div: Elementwise = binary(
    "div", "stablehlo.divide", NUMBER,
    "Return the quotient x / y of corresponding elements; of integers, rounded towards zero.", promoting="divide",
    derivatives=(lambda t, x, y, z: div(t, y), lambda t, x, y, z: mul(mul(neg(t), x), integer_pow(y, -2))),
    transpose=_div_transpose, cases={INTEGER: _integer_division("divide", _all_ones)},
    example=("lax.div(-7, 2)", "Array(-3, dtype=int32, weak_type=True)"),
)


# x - y trunc(x / y)
def _rem_by_divisor(t: Any, x: Any, y: Any, r: Any) -> Any:
    quotient = div(x, y)
    return mul(neg(t), mul(sign(quotient), floor(abs(quotient))))


rem = binary(
    "rem", "stablehlo.remainder", REAL, "Return the remainder of the division of `x` by `y`, with the sign of `x`.",
    promoting="remainder", derivatives=(lambda t, x, y, r: t, _rem_by_divisor),
    cases={INTEGER: _integer_division("remainder", lambda _, x: x)},
    example=("lax.rem(-7, 2)", "Array(-1, dtype=int32, weak_type=True)"),
)


@elementwise("mulhi", "chlo.mulhi", (INTEGER,), operands=2, derivatives=0)
def mulhi(x: Any, y: Any, /) -> Any:
    """Return the upper half of the bits of the product of two integers.

    Args:
        x, y: arrays or scalars of integers of one dtype whose shapes agree, but for scalars and axes of size 1.

    Returns:
        An array of the broadcast shape and the operands' dtype.

    Raises:
        TypeError: an operand is no array of integers, or dtypes or shapes do not agree.

    Example:
        >>> lax.mulhi(2**20, 2**20)
        Array(256, dtype=int32, weak_type=True)
    """
    return mulhi.bind_positional((x, y), ())


# Complex numbers are ordered by their real parts, those of equal real parts by the imaginary ones.
def _chosen_by_order(greater: bool) -> Any:
    def formula(x: Any, y: Any) -> Any:
        before = gt if greater else lt
        parts = before(real(x), real(y)), before(imag(x), imag(y))
        return select(select(real(x) == real(y), parts[1], parts[0]), x, y)

    return lower_fun(formula)


# The tangent is that of the operand that was chosen, of equal ones their mean.
def _chosen_derivatives() -> Any:
    def share(t: Any, own: Any, other: Any, r: Any) -> Any:
        chosen = select(eq(own, r), constants_like(r, 1), constants_like(r, 0))
        return mul(t, div(chosen, select(eq(other, r), constants_like(r, 2), constants_like(r, 1))))

    return lambda t, x, y, r: share(t, x, y, r), lambda t, x, y, r: share(t, y, x, r)


max = binary(
    "max", "stablehlo.maximum", ANY,
    "Return the larger of corresponding elements, NaN if one is; complex numbers are in lexicographic order.",
    promoting="maximum", cases={COMPLEX: _chosen_by_order(greater=True)}, derivatives=_chosen_derivatives(),
    example=("lax.max(1, 2)", "Array(2, dtype=int32, weak_type=True)"),
)
min = binary(
    "min", "stablehlo.minimum", ANY,
    "Return the smaller of corresponding elements, NaN if one is; complex numbers are in lexicographic order.",
    promoting="minimum", cases={COMPLEX: _chosen_by_order(greater=False)}, derivatives=_chosen_derivatives(),
    example=("lax.min(1, 2)", "Array(1, dtype=int32, weak_type=True)"),
)


# Complex numbers


def _part(name: str) -> Any:
    def emit(builder: FunctionBuilder, x: Value) -> Value:
        return builder.cast(name, x, builder.results[0])

    return emit


def _complex_of(part: Any, *_: Any, **parameters: Any) -> Any:
    return dtypes.complex128 if part in (dtypes.float64, dtypes.complex128) else dtypes.complex64


def _complex(builder: FunctionBuilder, x: Value, y: Value) -> Value:
    return builder.complex(x, y, ShapedArray(x.aval.shape, _complex_of(x.aval.dtype)))


@lower_fun
def _conj(x: Any, *, input_dtype: Any) -> Any:
    is_complex = dtypes.is_complex(aval_of(x).dtype)
    return complex(real(x), -imag(x)) if is_complex else complex(x, constants_like(x, 0))


# Transposes are those of real linear maps under the pairing Re(cotangent * value).
# The cotangent of a complex number is strongly typed, also where that of its part is not, as in JAX.
def _strong_zero(ct: Any) -> Literal:
    return Literal(0.0, ShapedArray((), aval_of(ct).dtype))


real = unary(
    "real", _part("real"), (COMPLEX,), "Return the real part of each element.", result=dtypes.real_part_dtype,
    jvp=LINEAR, transpose=lambda ct, x: [complex(ct, _strong_zero(ct))],
    example=("lax.real(1 + 2j)", "Array(1., dtype=float32, weak_type=True)"), returns="the dtype of the parts",
)
imag = unary(
    "imag", _part("imag"), (COMPLEX,), "Return the imaginary part of each element.", result=dtypes.real_part_dtype,
    jvp=LINEAR, transpose=lambda ct, x: [complex(_strong_zero(ct), neg(ct))],
    example=("lax.imag(1 + 2j)", "Array(2., dtype=float32, weak_type=True)"), returns="the dtype of the parts",
)


def _complex_transpose(cotangent: Any, x: Any, y: Any) -> list[Any]:
    return [
        unbroadcast(real(cotangent), x.aval) if type(x) is UndefinedPrimal else None,
        unbroadcast(imag(neg(cotangent)), y.aval) if type(y) is UndefinedPrimal else None,
    ]


complex: Elementwise = binary(
    "complex", _complex, PART, "Return the complex numbers x + iy.", result=_complex_of, jvp=LINEAR,
    transpose=_complex_transpose, example=("lax.complex(1.0, 2.0)", "Array(1.+2.j, dtype=complex64, weak_type=True)"),
    returns="the dtype complex64 or complex128",
)


def _conj_transpose(cotangent: Any, x: Any, *, input_dtype: Any) -> list[Any]:
    return [conj(cotangent) if dtypes.is_complex(x.aval.dtype) else real(cotangent)]


@elementwise(
    "conj", _conj, (*PART, COMPLEX), parameters=("input_dtype",), result=_complex_of, jvp=LINEAR,
    transpose=_conj_transpose,
)
def conj(x: Any) -> Any:
    """Return the complex conjugate of each element.

    Args:
        x: an array or a scalar of complex numbers, or of float32 or float64 numbers, whose imaginary part is 0.

    Returns:
        An array of the shape of `x` and the dtype complex64 or complex128.

    Raises:
        TypeError: `x` is no array or scalar of an accepted dtype.

    Example:
        >>> lax.conj(1 + 2j)
        Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    return conj.bind_positional((x,), (aval_of(x).dtype,))


# Bits

bitwise_not = unary(
    "not", "stablehlo.not", BITS, "Invert every bit; of booleans, return the negation.", public_name="bitwise_not",
    derivatives=0, example=("lax.bitwise_not(5)", "Array(-6, dtype=int32, weak_type=True)"),
)
bitwise_and = binary(
    "and", "stablehlo.and", BITS, "Return the bits that are set in both operands; of booleans, the conjunction.",
    promoting="bitwise_and", public_name="bitwise_and", derivatives=0,
    example=("lax.bitwise_and(6, 3)", "Array(2, dtype=int32, weak_type=True)"),
)
bitwise_or = binary(
    "or", "stablehlo.or", BITS, "Return the bits that are set in either operand; of booleans, the disjunction.",
    promoting="bitwise_or", public_name="bitwise_or", derivatives=0,
    example=("lax.bitwise_or(6, 3)", "Array(7, dtype=int32, weak_type=True)"),
)
bitwise_xor = binary(
    "xor", "stablehlo.xor", BITS, "Return the bits that are set in exactly one operand.", promoting="bitwise_xor",
    public_name="bitwise_xor", derivatives=0,
    example=("lax.bitwise_xor(6, 3)", "Array(5, dtype=int32, weak_type=True)"),
)
population_count = unary(
    "population_count", "stablehlo.popcnt", (INTEGER,), "Return the number of bits that are set in each element.",
    derivatives=0, example=("lax.population_count(7)", "Array(3, dtype=int32, weak_type=True)"),
)
clz = unary(
    "clz", "stablehlo.count_leading_zeros", (INTEGER,),
    "Return the number of zero bits above the highest bit set in each element.", derivatives=0,
    example=("lax.clz(1)", "Array(31, dtype=int32, weak_type=True)"),
)
shift_left = binary(
    "shift_left", "stablehlo.shift_left", (INTEGER,),
    "Shift the bits of `x` up by `y` places; the result is 0 if `y` is at least the number of bits.",
    promoting="left_shift", derivatives=0, example=("lax.shift_left(1, 4)", "Array(16, dtype=int32, weak_type=True)"),
)
shift_right_logical = binary(
    "shift_right_logical", "stablehlo.shift_right_logical", (INTEGER,),
    "Shift the bits of `x` down by `y` places and fill with zeros; 0 if `y` is at least the number of bits.",
    promoting="right_shift", derivatives=0,
    example=("lax.shift_right_logical(16, 2)", "Array(4, dtype=int32, weak_type=True)"),
)
shift_right_arithmetic = binary(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", (INTEGER,),
    "Shift the bits of `x` down by `y` places and fill with copies of the sign bit.", promoting="right_shift",
    derivatives=0, example=("lax.shift_right_arithmetic(-16, 2)", "Array(-4, dtype=int32, weak_type=True)"),
)


# Comparisons

eq = compare(
    "eq", "EQ", "Return whether corresponding elements are equal.", "equal", ordered=False, of_words=AND,
    example=("lax.eq(1, 2)", "Array(False, dtype=bool, weak_type=True)"),
)
ne = compare(
    "ne", "NE", "Return whether corresponding elements differ.", "not_equal", ordered=False, of_words=OR,
    example=("lax.ne(1, 2)", "Array(True, dtype=bool, weak_type=True)"),
)
lt = compare(
    "lt", "LT", "Return whether elements of `x` are smaller than those of `y`.", "less",
    example=("lax.lt(1, 2)", "Array(True, dtype=bool, weak_type=True)"),
)
le = compare(
    "le", "LE", "Return whether elements of `x` are smaller than those of `y`, or equal.", "less_equal",
    example=("lax.le(1, 2)", "Array(True, dtype=bool, weak_type=True)"),
)
gt = compare(
    "gt", "GT", "Return whether elements of `x` are larger than those of `y`.", "greater",
    example=("lax.gt(1, 2)", "Array(False, dtype=bool, weak_type=True)"),
)
ge = compare(
    "ge", "GE", "Return whether elements of `x` are larger than those of `y`, or equal.", "greater_equal",
    example=("lax.ge(1, 2)", "Array(False, dtype=bool, weak_type=True)"),
)
eq_to = compare(
    "eq_to", "EQ", "Return whether corresponding elements are equal in the total order of floating numbers.", None,
    total=True,
)
lt_to = compare(
    "lt_to", "LT", "Return whether elements of `x` are smaller in the total order of floating numbers.", None,
    total=True,
)
le_to = compare(
    "le_to", "LE", "Return whether elements of `x` are smaller or equal in the total order of floating numbers.", None,
    total=True,
)


# Choice


def _select_abstract(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases:
        raise ValueError("select_n() must have at least one case")
    if not (dtypes.is_boolean(which.dtype) or dtypes.is_integer(which.dtype)):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    if dtypes.is_boolean(which.dtype) and len(cases) > 2:
        raise TypeError(f"select with boolean `which` cannot have > 2 cases, got {len(cases)}.")
    shapes = [c.shape for c in cases]
    if len(set(shapes)) > 1:
        raise TypeError(
            f"select cases must have the same shapes, got {shapes}. xtrace.numpy.where broadcasts; in lax, use "
            "broadcast_in_dim."
        )
    if which.shape and which.shape != shapes[0]:
        raise TypeError(
            f"select `which` must be scalar or have the same shape as cases, got `which` shape {which.shape} but case "
            f"shape {shapes[0]}."
        )
    check_same_dtype("select", cases, "where")
    return ShapedArray(shapes[0], cases[0].dtype, all(c.weak_type for c in cases))


def _select_emit(builder: FunctionBuilder, which: Value, *cases: Value) -> Value:
    if dtypes.is_boolean(which.aval.dtype):
        return builder.select(which, cases[1], cases[0]) if len(cases) > 1 else cases[0]
    return _select_between(builder, which, cases, 0)


def _select_between(builder: FunctionBuilder, which: Value, cases: tuple[Value, ...], first: int) -> Value:
    """Write the choice among `cases`, which are for the indices from `first` on, by halving."""
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    below = builder.compare("LT", which, _constant(builder, first + middle, which))
    return builder.select(
        below, _select_between(builder, which, cases[:middle], first),
        _select_between(builder, which, cases[middle:], first + middle),
    )


def _select_transpose(cotangent: Any, which: Any, *cases: Any) -> list[Any]:
    zero = zeros(aval_of(cotangent))
    return [
        None,
        *[
            select_n(which, *[cotangent if j == i else zero for j in range(len(cases))])
            if type(x) is UndefinedPrimal
            else None
            for i, x in enumerate(cases)
        ],
    ]


def _select_batch(mapped: Any, operands: Any, axes: Any) -> tuple[Any, int]:
    which, *cases = operands
    if axes[0] is None and not aval_of(which).shape:
        place = next(i for i in axes if i is not None)
        cases = [with_axis(x, i, mapped.size, place) for x, i in zip(cases, axes[1:], strict=True)]
        return select_n(which, *cases), place
    cases = [with_axis(x, i, mapped.size) for x, i in zip(cases, axes[1:], strict=True)]
    which, own = with_axis(which, axes[0], mapped.size), aval_of(which).ndim - (axes[0] is not None)
    if not own:
        which = broadcast_in_dim(which, aval_of(cases[0]).shape, (0,))
    return select_n(which, *cases), 0


@primitive(
    "select_n", abstract=_select_abstract, emit=_select_emit,
    jvp=LINEAR, transpose=_select_transpose, batch=_select_batch, moves_elements=True,
)
def select_n(which: Any, *cases: Any) -> Any:
    """Select each element from the case that an index names.

    Args:
        which: indices, a scalar or an array of the cases' shape; integers, or booleans for at most two cases. Integers
            below 0 count as 0, and those above the last case's index as that.
        cases: arrays of one shape and one dtype, at least one.

    Returns:
        An array of the cases' shape and dtype.

    Raises:
        TypeError: `which` has another dtype or shape, or the cases differ in shape or dtype.
        ValueError: there are no cases.

    Example:
        >>> lax.select_n(jnp.array([2, 0]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
        Array([5, 2], dtype=int32)
    """
    return select_n.bind_positional((which, *cases))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Select elements of `on_true` where `pred` holds, and of `on_false` elsewhere.

    Args:
        pred: a boolean, or an array of booleans of the shape of the other operands.
        on_true, on_false: arrays of one shape and one dtype.

    Returns:
        An array of the shape and dtype of `on_true`.

    Raises:
        TypeError: `pred` has another dtype or shape, or `on_true` and `on_false` differ in shape or dtype.

    Example:
        >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
        Array([1, 4], dtype=int32)
    """
    return select_n.bind_positional((pred, on_false, on_true))


def _clamp_abstract(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got {name}.shape={bound.shape}, "
                f"operand.shape={x.shape}."
            )
    check_kind("clamp", (x,), (ANY,))
    check_same_dtype("clamp", (low, x, high), "clip")
    return ShapedArray(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)


def _clamp_emit(builder: FunctionBuilder, low: Value, x: Value, high: Value) -> Value:
    types = x.type if low.type == x.type == high.type else f"({low.type}, {x.type}, {high.type}) -> {x.type}"
    return builder.line(f"stablehlo.clamp {low.name}, {x.name}, {high.name} : {types}", builder.results[0])


# Inside the bounds the tangent is that of x, outside that of the bound; where x equals a bound it is 0.
def _clamp_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    low, x, high = primals
    result, total = clamp.bind_positional(primals), None
    conditions = (
        lambda: bitwise_and(gt(low, x), lt(low, high)), lambda: bitwise_and(gt(x, low), lt(x, high)),
        lambda: lt(high, x),
    )
    for condition, tangent in zip(conditions, tangents, strict=True):
        if tangent is not None:
            tangent = broadcast_like(tangent, result)
            term = select(broadcast_like(condition(), result), tangent, constants_like(result, 0))
            total = term if total is None else add_any(total, term)
    return result, total


def _clamp_batch(mapped: Any, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
    low, x, high = operands
    bounds = []
    x, rank = with_axis(x, axes[1], mapped.size), aval_of(x).ndim - (axes[1] is not None)
    for bound, axis in ((low, axes[0]), (high, axes[2])):
        if axis is not None and aval_of(bound).ndim == 1 and rank:
            bound = broadcast_in_dim(bound, aval_of(x).shape, (0,))
        elif axis is not None or aval_of(bound).shape:
            bound = with_axis(bound, axis, mapped.size)
        bounds.append(bound)
    return clamp(bounds[0], x, bounds[1]), 0


@primitive("clamp", abstract=_clamp_abstract, emit=_clamp_emit, jvp=_clamp_jvp, batch=_clamp_batch)
def clamp(min: Any, x: ArrayLike, max: Any) -> Any:
    """Clip each element to an interval.

    Args:
        min: lower bounds, a scalar or an array of the shape of `x`.
        x: an array of numbers or booleans.
        max: upper bounds, a scalar or an array of the shape of `x`.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: a bound has another shape, or the dtypes differ.

    Example:
        >>> lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return clamp.bind_positional((min, x, max))


# Representation


def _reduce_precision(builder: FunctionBuilder, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    return builder.line(
        f"stablehlo.reduce_precision {x.name}, format = e{exponent_bits}m{mantissa_bits} : {x.type}", x.aval
    )


def _reduce_precision_transpose(cotangent: Any, x: Any, **parameters: Any) -> list[Any]:
    return [reduce_precision.bind_positional((cotangent,), tuple(parameters.values()))]


@elementwise(
    "reduce_precision", _reduce_precision, (FLOAT,), parameters=("exponent_bits", "mantissa_bits"), jvp=LINEAR,
    transpose=_reduce_precision_transpose,
)
def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round to a floating format with the given numbers of bits, and convert back.

    Args:
        operand: an array or a scalar of real floating numbers.
        exponent_bits: the number of bits of the format's exponent, at least 1.
        mantissa_bits: the number of bits of the format's mantissa, at least 0.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `operand` is no array of real floating numbers, or a number of bits is no integer.
        ValueError: a number of bits is too small.

    Example:
        >>> lax.reduce_precision(3.14159, exponent_bits=8, mantissa_bits=7)
        Array(3.140625, dtype=float32, weak_type=True)
    """
    exponent_bits = to_integer("reduce_precision", "exponent_bits", exponent_bits)
    mantissa_bits = to_integer("reduce_precision", "mantissa_bits", mantissa_bits)
    for name, bits, least, kind in (
        ("exponent_bits", exponent_bits, 1, "positive"), ("mantissa_bits", mantissa_bits, 0, "non-negative"),
    ):
        if bits < least:
            raise ValueError(f"reduce_precision: {name} must be {kind}; got {bits}")
    return reduce_precision.bind_positional((operand,), (exponent_bits, mantissa_bits))


def _bitcast_abstract(operand: ShapedArray, *, new_dtype: Any) -> ShapedArray:
    old, new = operand.dtype, new_dtype
    if old == new:
        return ShapedArray(operand.shape, new)
    if any(dtypes.is_boolean(d) or dtypes.is_complex(d) for d in (old, new)):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand and destination "
            f"types match; got {old.name} and {new.name}. Consider using x.view(dtype) instead."
        )
    old_bits, new_bits = dtypes.bit_width(old), dtypes.bit_width(new)
    if old_bits >= new_bits:
        return ShapedArray(operand.shape if old_bits == new_bits else (*operand.shape, old_bits // new_bits), new)
    last = operand.shape[-1] if operand.shape else 1
    if not operand.shape or last * old_bits != new_bits:
        raise ValueError(
            f"bitcast_convert_type: elements of {new.name} have {new_bits} bits, and the last axis of an array of "
            f"{old.name} with shape {operand.shape} holds {last} * {old_bits}; they must be equal"
        )
    return ShapedArray(operand.shape[:-1], new)


def _bitcast_emit(builder: FunctionBuilder, x: Value, **_: Any) -> Value:
    return builder.cast("bitcast_convert", x, builder.results[0])


def _bitcast_batch(mapped: Any, operands: Sequence[Any], axes: Sequence[int], *, new_dtype: Any) -> tuple[Any, int]:
    # The last axis may be added or consumed, so the mapped one is not it.
    return bitcast_convert_type.bind_positional((move_axis(operands[0], axes[0], 0),), (new_dtype,)), 0


@primitive(
    "bitcast_convert_type", ("new_dtype",), abstract=_bitcast_abstract, emit=_bitcast_emit, jvp=ZERO_DERIVATIVE,
    batch=_bitcast_batch,
)
def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Any:
    """Convert an array to another dtype by reading its bits as elements of that.

    Args:
        operand: an array of integers or real floating numbers.
        new_dtype: the dtype of the result.

    Returns:
        An array of dtype `new_dtype`. Its shape is that of `operand` for dtypes of the same width; a narrower dtype
        adds a last axis, and a wider one consumes the last axis.

    Raises:
        TypeError: one of two different dtypes is boolean or complex.
        ValueError: `new_dtype` is wider, and the last axis does not hold the bits of one element.

    Example:
        >>> lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32)
        Array(1065353216, dtype=int32)
    """
    return bitcast_convert_type.bind_positional((operand,), (requested_dtype("bitcast_convert_type", new_dtype),))


def _barrier_abstract(*operands: ShapedArray) -> list[ShapedArray]:
    return list(operands)


def _barrier_emit(builder: FunctionBuilder, *values: Value) -> list[Value]:
    names, types = ", ".join(x.name for x in values), ", ".join(x.type for x in values)
    return builder.line_of_many(f"stablehlo.optimization_barrier {names} : {types}", builder.results)


def _barrier_of_some(values: Sequence[Any]) -> list[Any]:
    """Return what is not None behind a barrier."""
    results = iter(optimization_barrier.bind_positional([x for x in values if x is not None]))
    return [x if x is None else next(results) for x in values]


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return optimization_barrier.bind_positional(primals), _barrier_of_some(tangents)


def _barrier_transpose(cotangents: Sequence[Any], *operands: Any) -> list[Any]:
    return _barrier_of_some(cotangents)


def _barrier_batch(mapped: Any, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], Any]:
    return optimization_barrier.bind_positional(operands), axes


@primitive(
    "optimization_barrier", abstract=_barrier_abstract, emit=_barrier_emit, multiple_results=True,
    jvp=_barrier_jvp, transpose=_barrier_transpose, batch=_barrier_batch,
)
def optimization_barrier(operand: Any, /) -> Any:
    """Return a tree of arrays unchanged, as a barrier that the compiler moves no operation across.

    Args:
        operand: a tree of arrays.

    Returns:
        A tree of the same structure with the same arrays.

    Raises:
        TypeError: a leaf is no array and no scalar.

    Example:
        >>> lax.optimization_barrier(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    leaves, tree = pytree.tree_flatten(operand)
    return pytree.tree_unflatten(tree, optimization_barrier.bind_positional(leaves) if leaves else [])
