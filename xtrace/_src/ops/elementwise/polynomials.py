"""Polynomials as single operations, whose derivatives are polynomials again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import Unary, align_mapped_axes, mul
from xtrace._src.algebra.kinds import COMPLEX, FLOAT, INTEGER, NUMBER, broadcast_shapes, check_kind, check_same_dtype
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    broadcast_like,
    convert_to,
    operand_aval,
    unbroadcast,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import join
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.elementwise.constants import constant_like, constants_like
from xtrace._src.ops.elementwise.elementwise import add, sub
from xtrace._src.transforms.batch import MappedAxis

# Horner's rule with more steps than this is a loop.
_MOST_STEPS = 8


# 1 - x² in two factors, which keep their precision near -1 and 1.
@lower_fun
def _one_minus_square(x: Array) -> Array:
    one = constant_like(x, 1)
    return mul(add(one, x), sub(one, x))


@Unary.define(
    _one_minus_square, (INTEGER, COMPLEX, FLOAT), derivatives=lambda t, x, r: mul(t, mul(constant_like(x, -2), x)),
)
def one_minus_square(x: ArrayLike | Literal) -> Array:
    """Return 1 - x**2, exact to rounding also near -1 and 1.

    Example:
        >>> lax.one_minus_square(0.5)
        Array(0.75, dtype=float32, weak_type=True)
    """
    ...


def _polynomial_abstract(x: ShapedArray, *coefficients: ShapedArray, unroll: int | None) -> ShapedArray:
    avals = (x, *coefficients)
    check_kind("polynomial", avals, [NUMBER] * len(avals))
    check_same_dtype("polynomial", avals)
    weak = x.weak_type and all(c.weak_type or not c.shape for c in coefficients)
    return ShapedArray(broadcast_shapes("polynomial", [a.shape for a in avals]), x.dtype, weak)


# Horner's rule, from the highest coefficient.
@lower_fun
def _horner(x: Array, *coefficients: Array, unroll: int | None) -> Array:
    *lower, total = coefficients
    if len(lower) <= (_MOST_STEPS if unroll is None else unroll):
        for coefficient in reversed(lower):
            total = add(mul(total, x), coefficient)
        return total
    shape = broadcast_shapes("polynomial", [c.shape for c in (x, *coefficients)])
    example = constants_like(x, 0) if x.shape == shape else broadcast_in_dim(constant_like(x, 0), shape, ())
    rows = [broadcast_in_dim(broadcast_like(c, example), (1, *shape), range(1, len(shape) + 1)) for c in lower]
    return scan(
        lambda total, row: (add(mul(total, x), row), None), broadcast_like(total, example), concatenate(rows, 0),
        reverse=True,
    )[0]


def _evaluate(x: Any, coefficients: Sequence[Any], unroll: int | None) -> Any:
    """Return the polynomial at `x`; with one coefficient, that coefficient in its own shape."""
    return coefficients[0] if len(coefficients) == 1 else polynomial.bind_positional((x, *coefficients), (unroll,))


# With respect to x the derivative has the coefficients k a_k; the tangents of the coefficients are coefficients.
def _polynomial_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, unroll: int | None) -> tuple[Any, Any]:
    x, *coefficients = primals
    result, total = polynomial.bind_positional(primals, (unroll,)), None
    if tangents[0] is not None:
        slopes = [mul(constant_like(c, k), c) for k, c in enumerate(coefficients[1:], 1)]
        total = mul(tangents[0], _evaluate(x, slopes, unroll))
    moving = [k for k, t in enumerate(tangents[1:]) if t is not None]
    if moving:
        moved = [constant_like(x, 0) if t is None else t for t in tangents[1 : moving[-1] + 2]]
        term = broadcast_like(_evaluate(x, moved, unroll), result)
        total = term if total is None else add(broadcast_like(total, result), term)
    return result, None if total is None else broadcast_like(total, result)


# It is linear in the coefficients.
def _polynomial_transpose(cotangent: Array, x: Any, *coefficients: Any, unroll: int | None) -> list[Any]:
    terms: list[Any] = [None]
    last = max(k for k, c in enumerate(coefficients) if type(c) is UndefinedPrimal)
    for k, coefficient in enumerate(coefficients):
        wanted = type(coefficient) is UndefinedPrimal
        terms.append(unbroadcast(cotangent, coefficient.aval) if wanted else None)
        if k < last:
            cotangent = mul(cotangent, x)
    return terms


def _polynomial_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, unroll: int | None
) -> tuple[Any, int]:
    operands, axis = align_mapped_axes(operands, axes)
    return polynomial.bind_positional(operands, (unroll,)), axis


@primitive(
    ("unroll",), sharding=join, abstract=_polynomial_abstract, emit=_horner, jvp=_polynomial_jvp,
    transpose=_polynomial_transpose, batch=_polynomial_batch,
)
def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """Return the polynomial ``coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + …`` of each element, by Horner's rule.

    It is one operation. Its derivative with respect to `x` is the polynomial with the coefficients ``k * coeffs[k]``.

    Args:
        x: an array or a scalar of numbers.
        coeffs: the coefficients, the constant term first: scalars, or arrays of the rank of `x`, converted to its
            dtype. Without any the result is 0.
        unroll: the largest number of steps to write out; more steps become a loop. None means 8.

    Returns:
        An array of the broadcast shape and the dtype of `x`.

    Raises:
        TypeError: an operand is no array of numbers, shapes do not agree, a coefficient of a real `x` is complex, or
            `unroll` is no integer.
        ValueError: `unroll` is negative.

    Example:
        >>> lax.polynomial(3.0, [1.0, 5.0, 2.0])
        Array(34., dtype=float32, weak_type=True)

    Reference:
        Horner's rule; D. E. Knuth, The Art of Computer Programming, volume 2, section 4.6.4.
    """
    aval = operand_aval(x, "x")
    if unroll is not None:
        unroll = to_integer("unroll", unroll)
        if unroll < 0:
            raise ValueError(f"polynomial: unroll must not be negative, got {unroll}")
    try:
        given = list(coeffs)
    except TypeError:
        raise TypeError(
            f"polynomial: coeffs must be a sequence of coefficients, got {abbreviate(coeffs)}; write it in brackets"
        ) from None
    values = [_coefficient(x, aval, k, value) for k, value in enumerate(given)] or [constant_like(x, 0)]
    if len(values) > 1:
        return polynomial.bind_positional((x, *values), (unroll,))
    check_kind("polynomial", (aval,), (NUMBER,))
    shape = broadcast_shapes("polynomial", [aval.shape, aval_of(values[0]).shape])
    (only,) = values
    if not shape:
        return convert_to(only, aval.dtype, aval.weak_type)
    return broadcast_in_dim(only, shape, range(len(aval_of(only).shape)))


def _coefficient(x: ArrayLike, aval: ShapedArray, position: int, value: Any) -> Any:
    """Return a coefficient in the dtype of `x`."""
    own = operand_aval(value, f"coeffs[{position}]")
    if dtypes.is_complex(own.dtype) and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"polynomial: coeffs[{position}] is complex and x is {aval}; convert x to {own.dtype.name} first"
        )
    if type(value) in (int, float, complex):
        return constant_like(x, value)
    return convert_to(value, aval.dtype, False)
