"""NumPy's arithmetic, comparisons and rounding, and Python's operators on arrays and tracers."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.kinds import ANY, BOOL, COMPLEX, INTEGER, UNSIGNED, check_kind
from xtrace._src.algebra.vector_space import broadcast_in_dim, check_broadcast, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators import promotion
from xtrace._src.api.operators.elementwise_functions import (
    INTEGERS,
    REAL_NUMBERS,
    SCALARS,
    as_number,
    elementwise_function,
    identity,
    is_accepted_operand,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.tracebacks import boundary, hide_frames
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.elementwise import comparisons
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import (
    bitwise_not,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from xtrace._src.ops.elementwise.selection import select, select_n
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import to_array

with late_modules(globals()):
    from xtrace._src.ops.elementwise import complex_numbers
    from xtrace._src.ops.elementwise.complex_numbers import imag, real

# Choice


def select_where(condition: Any, x: Any, y: Any) -> Array:
    """Return x where `condition` is not zero and y elsewhere; the operands are promoted and broadcast, of any ranks.

    Raises TypeError for an operand that is no array or scalar, and ValueError for shapes that do not broadcast.
    """
    _, (x, y) = promotion.promote_dtypes((x, y), function="where")
    which = truth(condition)
    shape = check_broadcast([aval_of(v).shape for v in (which, x, y)], function="where")
    return select_n(
        broadcast_to_shape(which, shape) if aval_of(which).shape else which, broadcast_to_shape(y, shape),
        broadcast_to_shape(x, shape),
    )


def broadcast_to_shape(value: Any, shape: tuple[int, ...]) -> Array:
    """Return `value` broadcast to `shape` by NumPy's rule."""
    own = aval_of(value).shape
    if own == shape:
        return value  # type: ignore[no-any-return]
    return broadcast_in_dim.bind_positional((value,), (shape, tuple(range(len(shape) - len(own), len(shape))), None))


def truth(x: Any) -> Array:
    """Return whether elements are not zero; TypeError for random keys."""
    aval = aval_of(x)
    if dtypes.is_boolean(aval.dtype):
        return x  # type: ignore[no-any-return]
    check_kind("bool", (aval,), (ANY,))
    return ne(x, scalar_like(x, 0))


def scalar_like(example: Any, value: Any) -> Literal:
    """Return the scalar `value` in the dtype of `example`, weakly typed if `example` is a weakly typed scalar."""
    aval = aval_of(example)
    number = promotion.scalar_value(value, aval.dtype)
    return Literal(number, ShapedArray((), aval.dtype, aval.weak_type and not aval.shape))


# Arithmetic

@elementwise_function(lax.add, cases={BOOL: comparisons.bitwise_or})
def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the sums of elements; of booleans, logical or."""
    ...


@elementwise_function(lax.sub, domain="numbers")
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the differences of elements."""
    ...


@elementwise_function(lax.mul, cases={BOOL: comparisons.bitwise_and})
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of elements; of booleans, logical and."""
    ...


@elementwise_function(lax.div, adjust=promotion.as_inexact)
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the quotients of elements as floating numbers.

    Example:
        >>> jnp.true_divide(1, 2)
        Array(0.5, dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.neg, domain="numbers")
def negative(x: ArrayLike, /) -> Array:
    """Return the elements with the opposite sign."""
    ...


@elementwise_function(identity)
def positive(x: ArrayLike, /) -> Array:
    """Return the operand itself as an array.

    Example:
        >>> jnp.positive(jnp.array([1.0, -2.0]))
        Array([ 1., -2.], dtype=float32)
    """
    ...


@elementwise_function(
    lax.abs, cases={BOOL: identity, UNSIGNED: identity},
    returns="the promoted dtype; for complex numbers, their parts' dtype",
)
def absolute(x: ArrayLike, /) -> Array:
    """Return the absolute values of elements; of complex numbers, the moduli.

    Example:
        >>> jnp.absolute(jnp.array([1.0, -2.0]))
        Array([1., 2.], dtype=float32)
    """
    ...


def _floor_divide_signed(x: Array, y: Array) -> Array:
    # `div` rounds towards zero: one too high where there is a remainder and the signs differ.
    quotient, rest = lax.div(x, y), lax.rem(x, y)
    lower = comparisons.bitwise_and(ne(lax.sign(x), lax.sign(y)), not_equal(rest, 0))
    return select(lower, subtract(quotient, 1), quotient)


def _compute_float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    rest = lax.rem(x, y)
    # The numerator of x / 0 is x itself: rem(x, 0) is NaN.
    quotient = lax.div(select_where(equal(y, 0), x, lax.sub(x, rest)), y)
    lower = comparisons.bitwise_and(not_equal(rest, 0), ne(lax.sign(y), lax.sign(rest)))
    quotient = select(lower, subtract(quotient, 1), quotient)
    return lax.round(quotient), select(lower, lax.add(rest, y), rest)


def _floor_divide_floats(x: Array, y: Array) -> Array:
    return _compute_float_divmod(x, y)[0]


def _remainder(x: Array, y: Array) -> Array:
    if dtypes.is_integer(aval_of(y).dtype):
        y = select_where(equal(y, 0), 1, y)
    rest = lax.rem(x, y)
    lower = comparisons.bitwise_and(ne(less(rest, 0), less(y, 0)), not_equal(rest, 0))
    return select(lower, lax.add(rest, y), rest)


@elementwise_function(
    _floor_divide_floats, adjust=as_number, cases={UNSIGNED: lax.div, INTEGER: _floor_divide_signed},
    domain=REAL_NUMBERS,
)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the quotients of elements, rounded down.

    Example:
        >>> jnp.floor_divide(-7, 2)
        Array(-4, dtype=int32, weak_type=True)
    """
    ...


@elementwise_function(_remainder, adjust=as_number, domain=REAL_NUMBERS)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the remainders of `floor_divide`, which have the sign of x2; 0 for an integer divided by 0.

    Example:
        >>> jnp.remainder(-7, 2)
        Array(1, dtype=int32, weak_type=True)
    """
    ...


@inline_jit
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Any, Any]:
    """Return the quotients rounded down, and the remainders, which have the sign of `x2`.

    Args:
        x1, x2: arrays or scalars of real numbers or booleans whose shapes broadcast.

    Returns:
        Two arrays of the broadcast shape and the promoted dtype, int32 for booleans.

    Raises:
        TypeError: an operand is complex, or no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.divmod(-7, 2)
        (Array(-4, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    if dtypes.is_integer(promotion.common_dtype((x1, x2), as_number)[1]):
        return floor_divide(x1, x2), remainder(x1, x2)
    left, right = promotion.promote(x1, x2, adjust=as_number)
    return _compute_float_divmod(left, right)


def _compute_integer_power(x: Array, y: Array) -> Array:
    # By squaring. As in JAX only the six lowest bits of an exponent count; but 0 ** y is 0 for every other y than 0.
    zero, one = [scalar_literal(n, aval_of(x).dtype) for n in (0, 1)]
    result = select_where(comparisons.bitwise_and(equal(x, 0), not_equal(y, 0)), zero, one)
    for last in (False,) * 5 + (True,):
        result = select_where(bitwise_and(y, 1), lax.mul(result, x), result)
        if not last:
            x, y = lax.mul(x, x), shift_right_logical(y, cast_as(y, 1))
    return result


def cast_as(example: ArrayLike, value: ArrayLike) -> Any:
    """Return `value`, an array or a Python scalar, with the element type of `example`."""
    dtype = aval_of(example).dtype
    return promotion.cast(value, aval_of(value), dtype, False)


@inline_jit
def _power_to_integers(x: Any, y: Any, *, own_type: bool) -> Array:
    """Return floats or complex numbers to integers; own_type: the result is weak if `x` is, whatever `y` is."""
    avals, dtype, weak = promotion.common_dtype((x,) if own_type else (x, y))
    base = promotion.cast(x, avals[0], dtype, weak)
    base, exponent = promotion.align_ranks([base, y], [avals[0].shape, aval_of(y).shape])
    result = lax.pow(base, exponent)
    return convert_to(result, dtype, weak) if own_type else result


@elementwise_function(lax.pow, adjust=as_number, cases={INTEGER: _compute_integer_power})
def _power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return `x1` to the power `x2`."""
    ...


def _is_scalar_of_integers(x: Any) -> bool:
    """Whether `x` is an integer of Python or NumPy, or an array of one without axes whose value is known."""
    if isinstance(x, (np.ndarray, ConcreteArray)):
        return x.ndim == 0 and dtypes.is_integer(x.dtype) and getattr(x, "is_fully_addressable", True)
    return isinstance(x, (int, np.integer))


def power(x1: Any, x2: Any, /) -> Array:
    """Return `x1` to the power `x2`.

    Args:
        x1, x2: arrays or scalars of numbers or booleans whose shapes broadcast. An exponent that is an integer scalar,
            not traced, is multiplied out, which is exact and also differentiable at 0; the result has the dtype of
            `x1`.

    Returns:
        An array of the broadcast shape and the promoted dtype, int32 for booleans. Integers to negative powers in an
        array, or to traced ones, have no meaningful result.

    Raises:
        TypeError: an operand is no array or scalar, or `x1` has integers and `x2` is a negative integer scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.power(jnp.array([1.0, 2.0]), -1)
        Array([1. , 0.5], dtype=float32)
    """
    is_scalar = _is_scalar_of_integers(x2)
    base = type(x1) if type(x1) in SCALARS else operand_aval(x1, 0, function="power").dtype
    is_inexact = base in (float, complex) or dtypes.is_inexact(base)
    # Outside of tracing, floats to an array's power are not multiplied out: each value would be another program.
    if is_scalar and not (is_inexact and isinstance(x2, ConcreteArray) and current_trace.get() is base_trace):
        aval = getattr(x1, "aval", None)
        if aval is None or dtypes.is_boolean(aval.dtype):
            (x1,) = promotion.promote(x1, adjust=as_number)
        return lax.integer_pow.bind_positional((x1,), (int(x2),))
    if is_inexact and isinstance(x2, (np.ndarray, Array)) and dtypes.is_integer(x2.dtype):
        return _power_to_integers(x1, x2, own_type=is_scalar)
    return _power(x1, x2)


# Bits

@elementwise_function(comparisons.bitwise_and, domain=INTEGERS)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits that are set in both operands."""
    ...


@elementwise_function(comparisons.bitwise_or, domain=INTEGERS)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits that are set in either operand."""
    ...


@elementwise_function(comparisons.bitwise_xor, domain=INTEGERS)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits that are set in exactly one of the two operands."""
    ...


@elementwise_function(bitwise_not, domain=INTEGERS)
def invert(x: ArrayLike, /) -> Array:
    """Return the elements with every bit inverted; of booleans, logical not.

    Example:
        >>> jnp.invert(12)
        Array(-13, dtype=int32, weak_type=True)
    """
    ...


@elementwise_function(shift_left, adjust=as_number, domain=INTEGERS)
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the bits of `x`, moved up by `y` places.

    Example:
        >>> jnp.left_shift(3, 2)
        Array(12, dtype=int32, weak_type=True)
    """
    ...


@elementwise_function(shift_right_arithmetic, adjust=as_number, cases={UNSIGNED: shift_right_logical}, domain=INTEGERS)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the bits of `x1`, moved down by `x2` places; a signed integer's sign fills the top.

    Example:
        >>> jnp.right_shift(-8, 2)
        Array(-2, dtype=int32, weak_type=True)
    """
    ...


# Comparisons


# Complex numbers are ordered by their real parts, and by their imaginary parts if these are equal.
def _compare_parts(comparison: Callable[[Any, Any], Array]) -> Callable[[Array, Array], Array]:
    def by_parts(x: Array, y: Array) -> Array:
        left, right = real(x), real(y)
        return select(eq(left, right), comparison(imag(x), imag(y)), comparison(left, right))

    return by_parts


@elementwise_function(eq, returns="dtype bool")
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return whether elements are equal.

    Example:
        >>> jnp.equal(jnp.array([1, 2]), 2)
        Array([False,  True], dtype=bool)
    """
    ...


@elementwise_function(ne, returns="dtype bool")
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return whether elements differ.

    Example:
        >>> jnp.not_equal(jnp.array([1, 2]), 2)
        Array([ True, False], dtype=bool)
    """
    ...


@elementwise_function(lt, cases={COMPLEX: _compare_parts(lt)}, returns="dtype bool")
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return whether elements of `x` are smaller than those of `y`; of complex numbers, by real part first.

    Example:
        >>> jnp.less(jnp.array([1, 2]), 2)
        Array([ True, False], dtype=bool)
    """
    ...


@elementwise_function(le, cases={COMPLEX: _compare_parts(le)}, returns="dtype bool")
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return whether elements of `x` are smaller than or equal to those of `y`; of complex numbers, by real part first.

    Example:
        >>> jnp.less_equal(jnp.array([1, 2]), 2)
        Array([ True,  True], dtype=bool)
    """
    ...


@elementwise_function(gt, cases={COMPLEX: _compare_parts(gt)}, returns="dtype bool")
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return whether elements of `x` are larger than those of `y`; of complex numbers, by real part first.

    Example:
        >>> jnp.greater(jnp.array([1, 2]), 2)
        Array([False, False], dtype=bool)
    """
    ...


@elementwise_function(ge, cases={COMPLEX: _compare_parts(ge)}, returns="dtype bool")
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return whether elements of `x` are larger than or equal to those of `y`; of complex numbers, by real part first.

    Example:
        >>> jnp.greater_equal(jnp.array([1, 2]), 2)
        Array([False,  True], dtype=bool)
    """
    ...


# Rounding


@inline_jit
def round_decimals(x: ArrayLike, *, decimals: int) -> Array:
    """Return `x` rounded to `decimals` places, halves to even."""
    (x,) = promotion.promote(x, function="round")
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        parts = round_decimals(real(x), decimals=decimals), round_decimals(imag(x), decimals=decimals)
        return complex_numbers.complex(*parts)
    if dtypes.is_boolean(dtype):
        raise ValueError("round does not accept dtype bool. Convert with x.astype(...) first.")
    if dtypes.is_integer(dtype):
        if decimals < 0:
            raise NotImplementedError("round of integers to a negative number of decimals is not implemented")
        return to_array(x)
    if decimals == 0:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    # In float16, 10 ** decimals and the products with it leave the range too soon.
    wide = convert_to(x, dtypes.float32) if dtype == dtypes.float16 else x
    factor = scalar_like(wide, 10.0**decimals)
    rounded = lax.div(lax.round(lax.mul(wide, factor), lax.RoundingMethod.TO_NEAREST_EVEN), factor)
    return convert_to(rounded, dtype) if wide is not x else rounded


# Python's operators

# For each operator Python's name, its symbol and its function; the reflected operators are derived from these.
_BINARY = {
    "add": ("+", add), "sub": ("-", subtract), "mul": ("*", multiply), "truediv": ("/", true_divide),
    "floordiv": ("//", floor_divide), "mod": ("%", remainder), "and": ("&", bitwise_and), "or": ("|", bitwise_or),
    "xor": ("^", bitwise_xor), "lshift": ("<<", left_shift), "rshift": (">>", right_shift),
}
# Operators without a fast path.
_PLAIN = {"pow": ("**", power), "divmod": ("divmod", divmod)}
_COMPARISONS = {
    "eq": ("==", equal), "ne": ("!=", not_equal), "lt": ("<", less), "le": ("<=", less_equal),
    "gt": (">", greater), "ge": (">=", greater_equal),
}
_UNARY = {"neg": negative, "pos": positive, "abs": absolute, "invert": invert}

# Methods of the array classes that raise errors for many values.
_CONVERSIONS = frozenset(
    (
        "__array__", "__complex__", "__delitem__", "__dlpack__", "__float__", "__format__", "__hash__", "__index__",
        "__int__", "__len__", "block_until_ready", "item", "tolist",
    )
)


def install_operators(abstract: type, *classes: type) -> None:
    """Install Python's elementwise operators on the abstract array class, and boundaries on conversions of `classes`.

    ``_src/__init__.py`` calls it once.
    """
    methods: dict[str, Callable[..., Any]] = {}
    for name, (symbol, function) in _BINARY.items():
        methods[f"__{name}__"], methods[f"__r{name}__"] = function.methods(symbol)  # type: ignore[attr-defined]
    for name, (symbol, plain) in _PLAIN.items():
        methods[f"__{name}__"], methods[f"__r{name}__"] = _plain_methods(symbol, plain)
    for name, (symbol, function) in _COMPARISONS.items():
        methods[f"__{name}__"] = function.methods(symbol)[0]  # type: ignore[attr-defined]
    methods |= {f"__{name}__": _unary_method(function) for name, function in _UNARY.items()}
    for name, method in methods.items():
        setattr(abstract, name, array_boundary(method))
    for cls in classes:
        for name, method in list(vars(cls).items()):
            if name in _CONVERSIONS and isinstance(method, FunctionType):
                setattr(cls, name, boundary(method))


def _plain_methods(symbol: str, function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Array, other: object) -> Array:
        return function(self, other) if is_accepted_operand(symbol, other) else NotImplemented

    def reflected(self: Array, other: object) -> Array:
        return function(other, self) if is_accepted_operand(symbol, other) else NotImplemented

    return forward, reflected


def _unary_method(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    # A boundary of its own: a general one, for any arguments, takes several times as long.
    def method(self: Array) -> Array:
        try:
            return function(self)
        except BaseException as error:
            hide_frames(error)
            raise

    return method
