"""NumPy's elementwise functions: arithmetic, exponentials, logarithms, trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.kinds import COMPLEX
from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators import operators
from xtrace._src.api.operators.elementwise_functions import (
    REAL_NUMBERS,
    alias,
    as_number,
    elementwise_function,
)
from xtrace._src.api.operators.operators import absolute, power, remainder, scalar_like, select_where
from xtrace._src.api.operators.promotion import as_inexact, common_dtype, promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.function_names import copy_with_name
from xtrace._src.core.settings import jax_version
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise import trigonometry
from xtrace._src.ops.elementwise.comparisons import bitwise_or, eq, ne
from xtrace._src.ops.elementwise.constants import strong_scalar
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufunc_objects import as_ufunc, ufunc_of
from xtrace.numpy.operands import apply_to_parts, refuse_complex

with late_modules(globals()):
    from xtrace._src.ops.elementwise import complex_numbers


# Arithmetic

@ufunc_of(operators.add)
def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the sums of elements; of booleans, logical or.

    Example:
        >>> jnp.add(1, jnp.array([1.0, 2.0]))
        Array([2., 3.], dtype=float32)
    """
    ...


@ufunc_of(operators.subtract)
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the differences of elements.

    Example:
        >>> jnp.subtract(3, jnp.array([1.0, 2.0]))
        Array([2., 1.], dtype=float32)
    """
    ...


@ufunc_of(operators.multiply)
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of elements; of booleans, logical and.

    Example:
        >>> jnp.multiply(3, jnp.array([1.0, 2.0]))
        Array([3., 6.], dtype=float32)
    """
    ...


@ufunc_of(operators.negative, 1)
def negative(x: ArrayLike, /) -> Array:
    """Return the elements with the opposite sign.

    Example:
        >>> jnp.negative(jnp.array([1.0, -2.0]))
        Array([-1.,  2.], dtype=float32)
    """
    ...


@elementwise_function(lax.div, adjust=as_inexact)
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the quotients of elements as floating numbers.

    Example:
        >>> jnp.divide(1, 2)
        Array(0.5, dtype=float32, weak_type=True)
    """
    ...


mod = alias(remainder, "mod")
pow = copy_with_name(power, "pow")
abs = alias(absolute, "abs")


@elementwise_function(lax.pow, adjust=as_inexact)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return `x` to the power `y` as floating numbers.

    Example:
        >>> jnp.float_power(2, -1)
        Array(0.5, dtype=float32, weak_type=True)
    """
    ...


@inline_jit
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
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
    _, dtype, _ = common_dtype((x1, x2))
    x, y = promote(x1, x2, adjust=as_number)
    if dtypes.is_integer(dtype):
        y = select_where(operators.equal(y, 0), 1, y)
    return lax.rem(x, y)


def _reciprocal(x: Array) -> Array:
    return lax.integer_pow.bind_positional((x,), (-1,))


@elementwise_function(_reciprocal, adjust=as_inexact)
def reciprocal(x: ArrayLike, /) -> Array:
    """Return 1 / x as floating numbers.

    Example:
        >>> jnp.reciprocal(4)
        Array(0.25, dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.square, adjust=as_number)
def square(x: ArrayLike, /) -> Array:
    """Return the squares of elements.

    Example:
        >>> jnp.square(3)
        Array(9, dtype=int32, weak_type=True)
    """
    ...


@elementwise_function(lax.sign, domain="numbers")
def sign(x: ArrayLike, /) -> Array:
    """Return the signs of elements: -1, 0 or 1; of complex numbers, x / abs(x).

    Example:
        >>> jnp.sign(-2.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.abs, adjust=as_inexact, cases={COMPLEX: refuse_complex(function="fabs")}, domain=REAL_NUMBERS)
def fabs(x: ArrayLike, /) -> Array:
    """Return the absolute values of elements as floating numbers.

    Example:
        >>> jnp.fabs(-2)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


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
    x, y = promote(x1, x2, adjust=as_inexact)
    if dtypes.is_complex(aval_of(x).dtype):
        refuse_complex(ValueError)()
    x, y = lax.abs(x), lax.abs(y)
    infinite = scalar_like(x, math.inf)
    either_infinite = bitwise_or(eq(x, infinite), eq(y, infinite))
    larger, smaller = lax.max(x, y), lax.min(x, y)
    zero = operators.equal(larger, 0)
    ratio = lax.div(smaller, select_where(zero, scalar_like(larger, 1), larger))
    length = lax.mul(larger, lax.sqrt(operators.add(lax.square(ratio), 1)))
    result = select_where(either_infinite, infinite, select_where(zero, larger, length))
    return convert_to(result, result.dtype, aval_of(x).weak_type) if jax_version.is_newer() else result


# Exponentials, logarithms and roots

@elementwise_function(lax.exp, adjust=as_inexact)
def exp(x: ArrayLike, /) -> Array:
    """Return the exponentials of elements.

    Example:
        >>> jnp.exp(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.exp2, adjust=as_inexact)
def exp2(x: ArrayLike, /) -> Array:
    """Return 2 to the power of each element.

    Example:
        >>> jnp.exp2(3.0)
        Array(8., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.expm1, adjust=as_inexact)
def expm1(x: ArrayLike, /) -> Array:
    """Return exp(x) - 1, also exact near zero.

    Example:
        >>> jnp.expm1(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.log, adjust=as_inexact)
def log(x: ArrayLike, /) -> Array:
    """Return the natural logarithms of elements.

    Example:
        >>> jnp.log(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.log1p, adjust=as_inexact)
def log1p(x: ArrayLike, /) -> Array:
    """Return log(1 + x), also exact near zero.

    Example:
        >>> jnp.log1p(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.sqrt, adjust=as_inexact)
def sqrt(x: ArrayLike, /) -> Array:
    """Return the square roots of elements.

    Example:
        >>> jnp.sqrt(9.0)
        Array(3., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.cbrt, adjust=as_inexact, domain=REAL_NUMBERS)
def cbrt(x: ArrayLike, /) -> Array:
    """Return the cube roots of elements.

    Example:
        >>> jnp.cbrt(8.0)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


def _convert_to_base_2(natural: Array) -> Array:
    return lax.div(natural, lax.log(strong_scalar(natural, 2.0)))


def _log2(x: Array) -> Array:
    if jax_version.is_newer():
        return lax.log2(x)
    logarithm = lax.log(x)
    is_complex = dtypes.is_complex(aval_of(x).dtype)
    return (apply_to_parts(_convert_to_base_2) if is_complex else _convert_to_base_2)(logarithm)


def _convert_to_base_10(natural: Array) -> Array:
    return lax.mul(natural, strong_scalar(natural, math.log10(math.e)))


@elementwise_function(_log2, adjust=as_inexact)
def log2(x: ArrayLike, /) -> Array:
    """Return the logarithms of elements to base 2.

    Example:
        >>> jnp.log2(8.0).item()
        3.0
    """
    ...


@elementwise_function(
    lambda x: _convert_to_base_10(lax.log(x)), adjust=as_inexact,
    cases={COMPLEX: lambda x: apply_to_parts(_convert_to_base_10)(lax.log(x))},
)
def log10(x: ArrayLike, /) -> Array:
    """Return the logarithms of elements to base 10.

    Example:
        >>> jnp.log10(100.0)
        Array(2., dtype=float32)
    """
    ...


# Trigonometric and hyperbolic functions

@elementwise_function(trigonometry.sin, adjust=as_inexact)
def sin(x: ArrayLike, /) -> Array:
    """Return the sines of elements, which are angles in radians.

    Example:
        >>> jnp.sin(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.cos, adjust=as_inexact)
def cos(x: ArrayLike, /) -> Array:
    """Return the cosines of elements, which are angles in radians.

    Example:
        >>> jnp.cos(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.tan, adjust=as_inexact)
def tan(x: ArrayLike, /) -> Array:
    """Return the tangents of elements, which are angles in radians.

    Example:
        >>> jnp.tan(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.sinh, adjust=as_inexact)
def sinh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic sines of elements.

    Example:
        >>> jnp.sinh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.cosh, adjust=as_inexact)
def cosh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic cosines of elements.

    Example:
        >>> jnp.cosh(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.tanh, adjust=as_inexact)
def tanh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic tangents of elements.

    Example:
        >>> jnp.tanh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.asin, adjust=as_inexact)
def arcsin(x: ArrayLike, /) -> Array:
    """Return the inverse sines of elements, in radians; NaN for real numbers outside of [-1, 1].

    Example:
        >>> jnp.arcsin(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.acos, adjust=as_inexact)
def arccos(x: ArrayLike, /) -> Array:
    """Return the inverse cosines of elements, in radians; NaN for real numbers outside of [-1, 1].

    Example:
        >>> jnp.arccos(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.atan, adjust=as_inexact)
def arctan(x: ArrayLike, /) -> Array:
    """Return the inverse tangents of elements, in radians.

    Example:
        >>> jnp.arctan(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.asinh, adjust=as_inexact)
def arcsinh(x: ArrayLike, /) -> Array:
    """Return the inverse hyperbolic sines of elements.

    Example:
        >>> jnp.arcsinh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


# XLA's branch of the complex acosh may have a negative real part; NumPy's has not.
def _arccosh_of_complex(x: Array) -> Array:
    root = trigonometry.acosh(x)
    return select(operators.less(complex_numbers.real(root), 0), lax.neg(root), root)


@elementwise_function(trigonometry.acosh, adjust=as_inexact, cases={COMPLEX: _arccosh_of_complex})
def arccosh(x: ArrayLike, /) -> Array:
    """Return the inverse hyperbolic cosines of elements; NaN for real numbers below 1.

    Example:
        >>> jnp.arccosh(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.atanh, adjust=as_inexact)
def arctanh(x: ArrayLike, /) -> Array:
    """Return the inverse hyperbolic tangents of elements; NaN for real numbers outside of [-1, 1].

    Example:
        >>> jnp.arctanh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(trigonometry.atan2, adjust=as_inexact)
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the angles of the points (x2, x1) in radians, in [-π, π].

    Example:
        >>> jnp.arctan2(0.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


asin, acos, atan = alias(arcsin, "asin"), alias(arccos, "acos"), alias(arctan, "atan")
asinh, acosh, atanh = alias(arcsinh, "asinh"), alias(arccosh, "acosh"), alias(arctanh, "atanh")
atan2 = alias(arctan2, "atan2")


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda x: lax.mul(x, scalar_like(x, factor))


@elementwise_function(_times(math.pi / 180), adjust=as_inexact)
def deg2rad(x: ArrayLike, /) -> Array:
    """Return angles in radians, given degrees.

    Example:
        >>> jnp.deg2rad(180.0)
        Array(3.1415927, dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(_times(180 / math.pi), adjust=as_inexact)
def rad2deg(x: ArrayLike, /) -> Array:
    """Return angles in degrees, given radians.

    Example:
        >>> jnp.rad2deg(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    ...


radians, degrees = alias(deg2rad, "radians"), alias(rad2deg, "degrees")


# Larger and smaller

@as_ufunc
@elementwise_function(lax.max)
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the larger of two elements, NaN if either is NaN; complex numbers by real part first.

    Example:
        >>> jnp.maximum(2, jnp.array([1, 3]))
        Array([2, 3], dtype=int32)
    """
    ...

@as_ufunc
@elementwise_function(lax.min)
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the smaller of two elements, NaN if either is NaN; complex numbers by real part first.

    Example:
        >>> jnp.minimum(2, jnp.array([1, 3]))
        Array([1, 2], dtype=int32)
    """
    ...


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
    x, y = promote(x1, x2)
    return select_where(bitwise_or(operators.greater(x, y), ne(y, y)), x, y)


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
    x, y = promote(x1, x2)
    return select_where(bitwise_or(operators.less(x, y), ne(y, y)), x, y)


@inline_jit
def _clip(*operands: ArrayLike, bounds: str) -> Array:
    if any(dtypes.is_complex(operand_aval(x, i).dtype) for i, x in enumerate(operands)):
        raise ValueError(
            "clip: complex numbers have no order to clip by, and the array or a bound is complex; clip the real and "
            "imaginary parts"
        )
    (clipped,) = promote(operands[0])
    # Each bound is promoted with the result so far, not with the other bound.
    for bound, limit in zip(bounds, operands[1:], strict=True):
        limit, clipped = promote(limit, clipped)
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
        operand_aval(operand, position)
    return _clip(arr, *[x for _, x in given], bounds="".join([name for name, _ in given]))
