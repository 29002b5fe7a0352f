"""Elementwise arithmetic, rounding and transcendental functions."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.families import AccuracyMode, Binary, Elementwise, Tolerance, Unary, as_bool
from xtrace._src.algebra.families import mul as mul
from xtrace._src.algebra.families import neg as neg
from xtrace._src.algebra.kinds import ANY, COMPLEX, FLOAT, INEXACT, INTEGER, NUMBER, REAL, SIGNED, UNSIGNED
from xtrace._src.algebra.vector_space import broadcast_like, convert_to, unbroadcast, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import no_rule
from xtrace._src.core.shardings.sum_rules import quotient
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.comparisons import (
    bitwise_and,
    eq,
    ge,
    gt,
    lt,
    shift_right_arithmetic,
    shift_right_logical,
)
from xtrace._src.ops.elementwise.constants import constant, constant_like, constants_like, number_like
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

with late_modules(globals()):
    from xtrace._src.ops.elementwise.complex_numbers import complex, conj, imag, real

# In derivatives t is the tangent, x and y are the operands, r is the result.


# Arithmetic

@Binary.define("stablehlo.add", NUMBER, promoting="add", derivatives=1)
def add(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the sum of corresponding elements.

    Example:
        >>> lax.add(1, 2)
        Array(3, dtype=int32, weak_type=True)
    """
    ...


@Binary.define("stablehlo.subtract", NUMBER, promoting="subtract", derivatives=(1, -1))
def sub(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the difference x - y of corresponding elements.

    Example:
        >>> lax.sub(1, 2)
        Array(-1, dtype=int32, weak_type=True)
    """
    ...


def _integer_division(op: str, of_zero: Callable[[FunctionBuilder, Value], Value]) -> Any:
    """Return the emission rule of the integer division `op`; ``of_zero(builder, x)`` writes the result for divisor 0.

    XLA on CPU folds constants with the processor's division, which kills the process for divisor 0: a divisor that may
    be 0 is replaced by 1.
    """

    def emit(builder: FunctionBuilder, x: Value, y: Value) -> Value:
        text = builder.find_constant_text(y)
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


def _div_by_dividend(t: Array, x: Array, y: Array, r: Array) -> Array:
    return div(t, y)


def _div_by_divisor(t: Array, x: Array, y: Array, r: Array) -> Array:
    return mul(mul(neg(t), x), integer_pow(y, -2))


def _div_transpose(cotangent: Array, x: Array, y: Array) -> list[Any]:
    return [unbroadcast(div(cotangent, y), x.aval), None]


@Binary.define(
    "stablehlo.divide", NUMBER, promoting="divide", derivatives=(_div_by_dividend, _div_by_divisor),
    transpose=_div_transpose, sums=quotient, cases={INTEGER: _integer_division("divide", _all_ones)},
)
def div(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the quotient x / y of corresponding elements; of integers, rounded towards zero.

    Example:
        >>> lax.div(-7, 2)
        Array(-3, dtype=int32, weak_type=True)
    """
    ...


# x - y trunc(x / y)
def _rem_by_divisor(t: Array, x: Array, y: Array, r: Array) -> Array:
    quotient = div(x, y)
    return mul(neg(t), mul(sign(quotient), floor(abs(quotient))))


@Binary.define(
    "stablehlo.remainder", REAL, promoting="remainder", derivatives=(lambda t, x, y, r: t, _rem_by_divisor),
    cases={INTEGER: _integer_division("remainder", lambda _, x: x)},
)
def rem(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the remainder of the division of `x` by `y`, with the sign of `x`.

    Example:
        >>> lax.rem(-7, 2)
        Array(-1, dtype=int32, weak_type=True)
    """
    ...


@lower_fun
def _compute_upper_half(x: Array, y: Array) -> Array:
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
        return _compute_upper_half(builder, x, y)
    kind = x.aval.mlir_type
    return builder.line(f"chlo.mulhi {x.name}, {y.name} : {kind}, {kind} -> {kind}", builder.results[0])


@Elementwise.define(_mulhi, (INTEGER,), operands=2, has_body=True, derivatives=0)
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


# Signs and rounding

def _emit_unsigned_sign(builder: FunctionBuilder, x: Value) -> Value:
    return builder.elementwise("minimum", x, constant(builder, 1, x))


@Unary.define("stablehlo.sign", NUMBER, cases={UNSIGNED: _emit_unsigned_sign}, derivatives=0)
def sign(x: ArrayLike | Literal) -> Array:
    """Return the sign of each element: -1, 0 or 1, zeros and NaN unchanged, and x / abs(x) for complex numbers.

    Example:
        >>> lax.sign(-2.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.floor", (FLOAT,), derivatives=0)
def floor(x: ArrayLike | Literal) -> Array:
    """Return the largest integer that is not above each element, as a floating number.

    Example:
        >>> lax.floor(1.7)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.ceil", (FLOAT,), derivatives=0)
def ceil(x: ArrayLike | Literal) -> Array:
    """Return the smallest integer that is not below each element, as a floating number.

    Example:
        >>> lax.ceil(1.2)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.is_finite", (FLOAT,), result=as_bool, derivatives=0)
def is_finite(x: ArrayLike | Literal) -> Array:
    """Return whether each element is neither infinite nor NaN.

    Example:
        >>> lax.is_finite(jnp.inf)
        Array(False, dtype=bool, weak_type=True)
    """
    ...


# d|x| = t sign(x); for complex x Re(t conj(x) / |x|). At 0 it is t, at complex 0 it is 0.
def _abs_derivative(t: Array, x: Array, r: Array) -> Array:
    if not dtypes.is_complex(aval_of(x).dtype):
        return select(ge(x, constant_like(x, 0)), t, neg(t))
    modulus = convert_to(r, aval_of(x).dtype)
    divisor = select(eq(modulus, constant_like(x, 0)), constants_like(x, 1), modulus)
    return real(mul(t, div(conj(x), divisor)))


@Unary.define(
    "stablehlo.abs", (FLOAT, COMPLEX, SIGNED), result=dtypes.real_part_dtype, derivatives=_abs_derivative,
    returns="the dtype of real parts",
)
def abs(x: ArrayLike | Literal) -> Array:
    """Return the absolute value of each element; of complex numbers, the modulus.

    Example:
        >>> lax.abs(3 + 4j)
        Array(5., dtype=float32, weak_type=True)
    """
    ...


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


@Elementwise.define(_round, (FLOAT,), has_body=True, parameters=("rounding_method",), derivatives=0)
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


@Elementwise.define(
    "chlo.next_after", (FLOAT,), operands=2, promoting="nextafter",
    jvp=no_rule("nextafter has no derivative: it steps from one floating-point number to the next"),
)
def nextafter(x1: ArrayLike | Literal, x2: ArrayLike | Literal) -> Array:
    """Return the floating-point number next to `x1` in the direction of `x2`.

    Example:
        >>> lax.nextafter(0.0, 1.0)
        Array(1.e-45, dtype=float32, weak_type=True)
    """
    ...


# Exponentials, logarithms, powers and roots

@lower_fun
def _exp2(x: ArrayLike, *, accuracy: Any) -> Array:
    return exp(x * math.log(2), accuracy=accuracy)


@Unary.define("stablehlo.exponential", INEXACT, derivatives=lambda t, x, r, **_: mul(t, r))
def exp(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the exponential of each element.

    Example:
        >>> lax.exp(1.0)
        Array(2.7182817, dtype=float32, weak_type=True)
    """
    ...


@Unary.define(_exp2, INEXACT, derivatives=lambda t, x, r, **_: mul(number_like(x, math.log(2)), mul(t, r)))
def exp2(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return 2 to the power of each element.

    Example:
        >>> lax.exp2(3.0)
        Array(8., dtype=float32, weak_type=True)
    """
    ...


@Unary.define(
    "stablehlo.exponential_minus_one", INEXACT, derivatives=lambda t, x, r, **_: mul(t, add(r, constant_like(r, 1))),
)
def expm1(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return exp(x) - 1, exact near zero.

    Example:
        >>> lax.expm1(1e-6)
        Array(1.0000005e-06, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.log", INEXACT, derivatives=lambda t, x, r, **_: div(t, x))
def log(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the natural logarithm of each element; NaN for negative real numbers.

    Example:
        >>> lax.log(2.0)
        Array(0.6931472, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.log_plus_one", INEXACT, derivatives=lambda t, x, r, **_: div(t, add(x, constant_like(x, 1))))
def log1p(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return log(1 + x), exact near zero.

    Example:
        >>> lax.log1p(1e-6)
        Array(9.999995e-07, dtype=float32, weak_type=True)
    """
    ...


@lower_fun
def _log2(x: Array, *, accuracy: Any) -> Array:
    natural, factor = log(x, accuracy=accuracy), 1 / math.log(2)
    if dtypes.is_complex(x.dtype):  # a complex factor would make NaNs of infinite parts
        return complex(real(natural) * factor, imag(natural) * factor)
    return natural * factor


@Unary.define(_log2, INEXACT, derivatives=lambda t, x, r, **_: div(t, mul(x, constant_like(x, math.log(2)))))
def log2(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the logarithm of each element to base 2; NaN for negative real numbers.

    Example:
        >>> lax.log2(8.0)
        Array(3., dtype=float32, weak_type=True)
    """
    ...


@Unary.define(
    "stablehlo.logistic", INEXACT, derivatives=lambda t, x, r, **_: mul(t, mul(r, sub(constant_like(r, 1), r))),
)
def logistic(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the logistic function 1 / (1 + exp(-x)) of each element.

    Example:
        >>> lax.logistic(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    ...


@Unary.define("stablehlo.sqrt", INEXACT, derivatives=lambda t, x, r, **_: mul(t, div(number_like(r, 0.5), r)))
def sqrt(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the square root of each element; NaN for negative real numbers.

    Example:
        >>> lax.sqrt(4.0)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


@Unary.define(
    "stablehlo.rsqrt", INEXACT, derivatives=lambda t, x, r, **_: mul(t, mul(number_like(x, -0.5), div(r, x))),
)
def rsqrt(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the reciprocal of the square root of each element.

    Example:
        >>> lax.rsqrt(4.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    ...


def _cbrt_derivative(t: Array, x: Array, r: Array, **_: object) -> Array:
    return mul(t, mul(number_like(r, 1 / 3), integer_pow(r, -2)))


@Unary.define("stablehlo.cbrt", (FLOAT,), derivatives=_cbrt_derivative)
def cbrt(x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """Return the real cube root of each element.

    Example:
        >>> lax.cbrt(-8.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    ...


def _emit_integer_square(builder: FunctionBuilder, x: Value) -> Value:
    return builder.elementwise("multiply", x, x)


@Unary.define(
    "chlo.square", NUMBER, cases={INTEGER: _emit_integer_square},
    derivatives=lambda t, x, r: mul(t, mul(number_like(x, 2), x)),
)
def square(x: ArrayLike | Literal) -> Array:
    """Return the square of each element.

    Example:
        >>> lax.square(3)
        Array(9, dtype=int32, weak_type=True)
    """
    ...


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
    return mul(t, mul(number_like(x, y), x if y == 2 else integer_pow.bind_positional((x,), (y - 1,))))


@Elementwise.define(
    _integer_pow, NUMBER, has_body=True, result=_integer_pow_result, parameters=("y",),
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


# The derivative r log x is 0 for x = 0, where r is 0. Its tangent is strongly typed, too.
def _pow_by_exponent(t: Array, x: Array, y: Array, r: Array) -> Array:
    base = select(eq(x, constant_like(x, 0)), constants_like(x, 1), x)
    return convert_to(mul(t, mul(log(base), r)), aval_of(r).dtype)


@Binary.define(
    _pow, (INEXACT, NUMBER), result=_pow_result, same_dtype=False, derivatives=(_pow_by_base, _pow_by_exponent),
    returns="the dtype of `x`",
)
def pow(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return `x` to the power `y`, in the dtype of `x`; `y` may have an integer dtype.

    Example:
        >>> lax.pow(2.0, 3)
        Array(8., dtype=float32, weak_type=True)
    """
    ...


# Extrema

# Complex numbers are ordered lexicographically: by real part, then by imaginary part.
def _select_by_order(greater: bool) -> Any:
    def formula(x: Array, y: Array) -> Array:
        before = gt if greater else lt
        parts = before(real(x), real(y)), before(imag(x), imag(y))
        return select(select(real(x) == real(y), parts[1], parts[0]), x, y)

    return lower_fun(formula)


# The tangent is that of the selected operand, or the mean for equal operands.
def _selection_derivatives() -> Any:
    def share(t: Array, own: Array, other: Array, r: Array) -> Array:
        chosen = select(eq(own, r), constants_like(r, 1), constants_like(r, 0))
        return mul(t, div(chosen, select(eq(other, r), constants_like(r, 2), constants_like(r, 1))))

    return lambda t, x, y, r: share(t, x, y, r), lambda t, x, y, r: share(t, y, x, r)


@Binary.define(
    "stablehlo.maximum", ANY, promoting="maximum", cases={COMPLEX: _select_by_order(greater=True)},
    derivatives=_selection_derivatives(),
)
def max(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the larger of corresponding elements, NaN if one is; complex numbers are in lexicographic order.

    Example:
        >>> lax.max(1, 2)
        Array(2, dtype=int32, weak_type=True)
    """
    ...


@Binary.define(
    "stablehlo.minimum", ANY, promoting="minimum", cases={COMPLEX: _select_by_order(greater=False)},
    derivatives=_selection_derivatives(),
)
def min(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the smaller of corresponding elements, NaN if one is; complex numbers are in lexicographic order.

    Example:
        >>> lax.min(1, 2)
        Array(1, dtype=int32, weak_type=True)
    """
    ...
