"""Elementwise arithmetic, rounding and transcendental functions."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.families import Elementwise, Unary, add_any, as_bool, binary, elementwise, unary
from xtrace._src.algebra.families import mul as mul
from xtrace._src.algebra.families import neg as neg
from xtrace._src.algebra.kinds import (
    ANY,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    REAL,
    SIGNED,
    UNSIGNED,
    check_kind,
    check_same_dtype,
)
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    broadcast_like,
    convert_to,
    unbroadcast,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.sharding_rules import join
from xtrace._src.core.sum_rules import quotient
from xtrace._src.ops.comparisons import bitwise_and, eq, ge, gt, lt, shift_right_arithmetic, shift_right_logical
from xtrace._src.ops.complex_numbers import complex, conj, imag, real
from xtrace._src.ops.constants import constant, constant_like, constants_like
from xtrace._src.ops.lower_fun import lower_fun
from xtrace._src.ops.selection import select
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

# In derivatives t is the tangent, x and y are the operands, r is the result.


# Signs and rounding

def _sign_of_unsigned(builder: FunctionBuilder, x: Value) -> Value:
    return builder.elementwise("minimum", x, constant(builder, 1, x))


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


# d|x| = t sign(x); for complex x Re(t conj(x) / |x|). At 0 it is t, at complex 0 it is 0.
def _abs_derivative(t: Array, x: Array, r: Array) -> Array:
    if not dtypes.is_complex(aval_of(x).dtype):
        return select(ge(x, constant_like(x, 0)), t, neg(t))
    modulus = convert_to(r, aval_of(x).dtype)
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
def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
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
def _exp2(x: ArrayLike, *, accuracy: Any) -> Array:
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


@lower_fun
def _log2(x: Array, *, accuracy: Any) -> Array:
    natural, factor = log(x, accuracy=accuracy), 1 / math.log(2)
    if dtypes.is_complex(x.dtype):  # a complex factor would make NaNs of infinite parts
        return complex(real(natural) * factor, imag(natural) * factor)
    return natural * factor


log2 = unary(
    "log2", _log2, INEXACT, "Return the logarithm of each element to base 2; NaN for negative real numbers.",
    accuracy=True, derivatives=lambda t, x, r, **_: div(t, mul(x, constant_like(x, math.log(2)))),
    example=("lax.log2(8.0)", "Array(3., dtype=float32, weak_type=True)"),
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


def _cbrt_derivative(t: Array, x: Array, r: Array, **_: object) -> Array:
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
    # Repeated squaring: the set bits of the exponent select the factors among x, x², x⁴ ….
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


def _integer_pow_result(dtype: DType, *, y: int) -> Any:
    if y < 0 and dtypes.is_integer(dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({dtype.name}, {y}). "
            "Convert the base to a floating dtype first"
        )
    return dtype


def _integer_pow_derivative(t: Array, x: Array, r: Array, *, y: int) -> Array:
    if y == 0:
        return zeros(aval_of(x))
    if y == 1:
        return t
    return mul(t, mul(constant_like(x, y), x if y == 2 else integer_pow.bind_positional((x,), (y - 1,))))


@elementwise(
    "integer_pow", _integer_pow, NUMBER, result=_integer_pow_result, parameters=("y",),
    derivatives=_integer_pow_derivative,
)
def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return `x` to a power that is known while tracing, by repeated multiplication.

    Args:
        x: an array or a scalar of numbers.
        y: a Python integer; a negative one requires floating or complex `x`.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is no array of numbers, or `y` is no Python integer, or is negative for an integer `x`.

    Example:
        >>> lax.integer_pow(2.0, -2)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow.bind_positional((x,), (to_integer("y", y),))


def reciprocal(x: ArrayLike) -> Array:
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


# The derivative y x**(y - 1) is 0 for the integer exponent 0, even if x**-1 is infinite. As in JAX it is strongly
# typed, unless the derivative by y is added to it.
def _pow_by_base(t: Array, x: Array, y: Array, r: Array) -> Array:
    x = convert_to(x, aval_of(x).dtype)
    if dtypes.is_inexact(aval_of(y).dtype):
        return mul(t, mul(y, pow(x, sub(y, constants_like(y, 1)))))
    exponent = convert_to(y, aval_of(x).dtype)
    is_zero = eq(exponent, constant_like(x, 0))
    one = constants_like(exponent, 1)
    power = pow(x, sub(select(is_zero, one, exponent), one))
    factor = mul(exponent, power)
    return mul(t, select(broadcast_like(is_zero, factor), constants_like(factor, 0), factor))


# The derivative r log x is 0 for x = 0, where r is 0.
def _pow_by_exponent(t: Array, x: Array, y: Array, r: Array) -> Array:
    base = select(eq(x, constant_like(x, 0)), constants_like(x, 1), x)
    return mul(t, mul(log(base), r))


pow = binary(
    "pow", _pow, (INEXACT, NUMBER), "Return `x` to the power `y`, in the dtype of `x`; `y` may have an integer dtype.",
    result=_pow_result, same_dtype=False, derivatives=(_pow_by_base, _pow_by_exponent),
    example=("lax.pow(2.0, 3)", "Array(8., dtype=float32, weak_type=True)"), returns="the dtype of `x`",
)


# Trigonometric and hyperbolic functions

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
    """Return the emission rule of the integer division `op`; ``of_zero(builder, x)`` writes the result for divisor 0.

    XLA on CPU folds constants with the processor's division, which kills the process for divisor 0: a divisor that may
    be 0 is replaced by 1.
    """

    def emit(builder: FunctionBuilder, x: Value, y: Value) -> Value:
        text = builder.text_of_constant(y)
        if builder.platform != "cpu" or (text is not None and not _zero_element.search(text)):
            return builder.elementwise(op, x, y)
        is_zero = builder.compare("EQ", y, constant(builder, 0, y))
        divisor = builder.select(is_zero, constant(builder, 1, y), y)
        quotient = builder.elementwise(op, x, divisor)
        return builder.select(is_zero, of_zero(builder, x), quotient)

    return emit


def _all_ones(builder: FunctionBuilder, x: Value) -> Value:
    return constant(builder, -1 if dtypes.is_signed(x.aval.dtype) else int(dtypes.iinfo(x.aval.dtype).max), x)


# Matches a zero element, or a constant in hexadecimal form, which may hold one.
_zero_element = re.compile(r"[<\[ ]0[>\],]|0x")


def _div_transpose(cotangent: Array, x: Array, y: Array) -> list[Any]:
    return [unbroadcast(div(cotangent, y), x.aval), None]


div: Elementwise = binary(
    "div", "stablehlo.divide", NUMBER,
    "Return the quotient x / y of corresponding elements; of integers, rounded towards zero.", promoting="divide",
    derivatives=(lambda t, x, y, z: div(t, y), lambda t, x, y, z: mul(mul(neg(t), x), integer_pow(y, -2))),
    transpose=_div_transpose, sums=quotient, cases={INTEGER: _integer_division("divide", _all_ones)},
    example=("lax.div(-7, 2)", "Array(-3, dtype=int32, weak_type=True)"),
)


# x - y trunc(x / y)
def _rem_by_divisor(t: Array, x: Array, y: Array, r: Array) -> Array:
    quotient = div(x, y)
    return mul(neg(t), mul(sign(quotient), floor(abs(quotient))))


rem = binary(
    "rem", "stablehlo.remainder", REAL, "Return the remainder of the division of `x` by `y`, with the sign of `x`.",
    promoting="remainder", derivatives=(lambda t, x, y, r: t, _rem_by_divisor),
    cases={INTEGER: _integer_division("remainder", lambda _, x: x)},
    example=("lax.rem(-7, 2)", "Array(-1, dtype=int32, weak_type=True)"),
)


@lower_fun
def _upper_half_of_product(x: Array, y: Array) -> Array:
    """Return the upper half of products, computed from products of halves of the bits, which do not overflow."""
    dtype = aval_of(x).dtype
    shift = shift_right_arithmetic if dtypes.iinfo(dtype).min else shift_right_logical
    half = dtypes.bit_width(dtype) // 2
    count, mask = constant_like(x, half), constant_like(x, 2**half - 1)
    low_x, low_y, high_x, high_y = bitwise_and(x, mask), bitwise_and(y, mask), shift(x, count), shift(y, count)
    middle = high_x * low_y + shift_right_logical(low_x * low_y, count)
    other = low_x * high_y + bitwise_and(middle, mask)
    return high_x * high_y + shift(middle, count) + shift(other, count)


def _mulhi(builder: FunctionBuilder, x: Value, y: Value) -> Value:
    if builder.module.num_partitions > 1:
        # XLA's partitioner cannot read the operation back.
        return _upper_half_of_product(builder, x, y)
    kind = x.aval.mlir_type
    return builder.line(f"chlo.mulhi {x.name}, {y.name} : {kind}, {kind} -> {kind}", builder.results[0])


@elementwise("mulhi", _mulhi, (INTEGER,), operands=2, derivatives=0)
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
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


# Complex numbers are ordered lexicographically: by real part, then by imaginary part.
def _select_by_order(greater: bool) -> Any:
    def formula(x: Array, y: Array) -> Array:
        before = gt if greater else lt
        parts = before(real(x), real(y)), before(imag(x), imag(y))
        return select(select(real(x) == real(y), parts[1], parts[0]), x, y)

    return lower_fun(formula)


# The tangent is that of the selected operand, or the mean for equal operands.
def _selection_derivatives() -> Any:
    def share(t: Array, own: object, other: Array, r: Array) -> Array:
        chosen = select(eq(own, r), constants_like(r, 1), constants_like(r, 0))
        return mul(t, div(chosen, select(eq(other, r), constants_like(r, 2), constants_like(r, 1))))

    return lambda t, x, y, r: share(t, x, y, r), lambda t, x, y, r: share(t, y, x, r)


max = binary(
    "max", "stablehlo.maximum", ANY,
    "Return the larger of corresponding elements, NaN if one is; complex numbers are in lexicographic order.",
    promoting="maximum", cases={COMPLEX: _select_by_order(greater=True)}, derivatives=_selection_derivatives(),
    example=("lax.max(1, 2)", "Array(2, dtype=int32, weak_type=True)"),
)

min = binary(
    "min", "stablehlo.minimum", ANY,
    "Return the smaller of corresponding elements, NaN if one is; complex numbers are in lexicographic order.",
    promoting="minimum", cases={COMPLEX: _select_by_order(greater=False)}, derivatives=_selection_derivatives(),
    example=("lax.min(1, 2)", "Array(1, dtype=int32, weak_type=True)"),
)


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


# The tangent is that of x inside the bounds, that of the bound outside, and 0 where x equals a bound.
def _clamp_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    low, x, high = primals
    result, total = clamp.bind_positional(primals), None
    conditions: tuple[Callable[[], Array], ...] = (
        lambda: bitwise_and(gt(low, x), lt(low, high)), lambda: bitwise_and(gt(x, low), lt(x, high)),
        lambda: lt(high, x),
    )
    for condition, tangent in zip(conditions, tangents, strict=True):
        if tangent is not None:
            tangent = broadcast_like(tangent, result)
            term = select(broadcast_like(condition(), result), tangent, constants_like(result, 0))
            total = term if total is None else add_any(total, term)
    return result, total


def _clamp_batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
    low, x, high = operands
    bounds = []
    x, rank = mapped.place(x, axes[1]), aval_of(x).ndim - (axes[1] is not None)
    for bound, axis in ((low, axes[0]), (high, axes[2])):
        if axis is not None and aval_of(bound).ndim == 1 and rank:
            bound = broadcast_in_dim(bound, aval_of(x).shape, (0,))
        elif axis is not None or aval_of(bound).shape:
            bound = mapped.place(bound, axis)
        bounds.append(bound)
    return clamp(bounds[0], x, bounds[1]), 0


@primitive("clamp", sharding=join, abstract=_clamp_abstract, emit=_clamp_emit, jvp=_clamp_jvp, batch=_clamp_batch)
def clamp(min: object, x: ArrayLike, max: object) -> Array:
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
