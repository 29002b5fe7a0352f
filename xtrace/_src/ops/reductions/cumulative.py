"""Cumulative operations along an axis: scans of monoids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra import vector_space
from xtrace._src.algebra.families import Binary, mul
from xtrace._src.algebra.kinds import COMPLEX, FLOAT, INEXACT, NUMBER, check_kind, kind_names
from xtrace._src.algebra.monoids import MAXIMUM, MINIMUM, PRODUCT, SUM, Monoid, lowest
from xtrace._src.algebra.vector_space import LINEAR, shift_axes, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.core.shardings.sharding_rules import whole_along
from xtrace._src.core.trace import current_trace
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.shape import rev
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.elementwise import complex_numbers, elementwise
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.constants import strong_scalar
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.reductions.reductions import check_axis, known_size, pad_axis, to_axis
from xtrace._src.ops.reductions.windows import Window, write_windows
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.jvp import jvp


def _associative_scan(combine: Callable[[Any, Any], Any], x: Array, axis: int) -> Array:
    """Return the inclusive scan of `x` along `axis`, in logarithmic depth.

    The scan of combined pairs of neighbours gives the odd positions; combining each with the next element gives the
    even positions.
    """
    size = known_size(aval_of(x).shape[axis])
    if size < 2:
        return x
    pairs = combine(slice_in_dim(x, 0, size - 1, 2, axis), slice_in_dim(x, 1, size, 2, axis))
    odd = _associative_scan(combine, pairs, axis)
    before = slice_in_dim(odd, 0, size // 2 - 1, axis=axis) if size % 2 == 0 else odd
    even = concatenate([slice_in_dim(x, 0, 1, axis=axis), combine(before, slice_in_dim(x, 2, size, 2, axis))], axis)
    zero, parity = strong_scalar(x, 0), size % 2
    return elementwise.add(pad_axis(even, zero, axis, (0, 1 - parity, 1)), pad_axis(odd, zero, axis, (1, parity, 1)))


class Cumulative(ArrayPrimitive):
    """The inclusive scan of a monoid along `axis`, from the end if `reverse`.

    combine: the monoid as an operation on arrays, from which the jvp follows; None if `rules` has a jvp.
    """

    def __init__(
        self, function: Callable[..., Any], monoid: Monoid, kinds: Sequence[str],
        combine: Callable[[Any, Any], Any] | None = None, **rules: Any,
    ) -> None:
        rules.setdefault("jvp", self._jvp)
        super().__init__(
            function.__name__, ("axis", "reverse"), abstract=self._abstract, emit=self._emit, batch=shift_axes("axis"),
            operation=self._operation, sharding=whole_along("axis"), **rules,
        )
        self.monoid, self.kinds, self.combine = monoid, tuple(kinds), combine
        arguments = {
            "operand": f"an array of {kind_names(kinds)}.", "axis": "an axis, counted from the front.",
            "reverse": "whether to scan from the end of the axis.",
        }
        errors = {
            "TypeError": "`operand` has another dtype, or `axis` is no integer.",
            "ValueError": "`axis` does not exist.",
        }
        self.declare(function, arguments, "An array of the shape and dtype of `operand`.", errors)

    def _operation(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        return current_trace.get().process(self, (operand,), (to_axis(axis, self.name), bool(reverse)))

    def _abstract(self, operand: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(self.name, (operand,), (self.kinds,))
        check_axis(self.name, axis, operand)
        return operand

    def _emit(self, builder: FunctionBuilder, x: Value, *, axis: int, reverse: bool) -> Value:
        rank, size = x.aval.ndim, x.aval.shape[axis]
        if x.aval.size == 0 or size == 1:
            return x
        ones = (1,) * rank
        window = tuple([size if i == axis else 1 for i in range(rank)])
        edge = (0, size - 1) if reverse else (size - 1, 0)
        padding = tuple([edge if i == axis else (0, 0) for i in range(rank)])
        neutral = self.monoid.neutral_value(builder, x.aval.dtype)
        # XLA rewrites a window of the size of the axis into a scan of logarithmic depth.
        return write_windows(
            builder, [x], [neutral], lambda: self.monoid.region(builder, x.aval),
            Window(window, ones, padding, ones, ones), builder.results,
        )[0]

    def _jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool) -> tuple[Any, Any]:
        combine, axis = self.combine, vector_space.canonical_axis(axis, aval_of(primals[0]).ndim, function=self.name)
        assert combine is not None

        def scan(x: Array) -> list[Any]:
            scanned = _associative_scan(combine, rev(x, (axis,)) if reverse else x, axis)
            return [rev(scanned, (axis,)) if reverse else scanned]

        results, moved = jvp(scan, primals, tangents)
        return results[0], moved[0]


class LogSumExp(Monoid):
    """``log(exp(x) + exp(y))``, without overflow: ``max(x, y) + log1p(exp(-abs(x - y)))``."""

    def __init__(self) -> None:
        super().__init__("", lowest)

    def combine(self, builder: FunctionBuilder, x: Value, y: Value) -> Value:
        op, aval = builder.elementwise, x.aval
        largest = MAXIMUM.combine(builder, x, y)
        total = op("add", x, y)
        if dtypes.is_complex(aval.dtype):
            # The smaller minus the larger is the sum minus twice the larger. Imaginary parts wrap into [-pi, pi).
            twice = op("multiply", largest, builder.constant(2, aval))
            power = op("exponential", op("subtract", total, twice))
            return self._wrap_angle(builder, op("add", largest, op("log_plus_one", power)))
        difference = op("subtract", x, y)
        power = op("exponential", op("negate", op("abs", difference)))
        logarithm = op("add", largest, op("log_plus_one", power))
        # The difference of equal infinities is NaN; the result is their sum.
        return builder.select(builder.compare("NE", difference, difference), total, logarithm)

    @staticmethod
    def _wrap_angle(builder: FunctionBuilder, z: Value) -> Value:
        """Write the complex number with the imaginary part reduced to [-pi, pi) modulo 2 pi."""
        op = builder.elementwise
        real, imaginary = builder.real_and_imaginary(z)
        part = real.aval
        half, turn = builder.constant(np.pi, part), builder.constant(2 * np.pi, part)
        angle = op("remainder", op("add", imaginary, half), turn)
        negative = builder.compare("LT", angle, builder.constant(0, part))
        angle = op("subtract", builder.select(negative, op("add", angle, turn), angle), half)
        return builder.complex(real, angle, z.aval)


def _replace_infinity(x: Array) -> Array:
    """Return `x` with zero in place of infinity."""
    part = complex_numbers.real(x) if dtypes.is_complex(aval_of(x).dtype) else x
    return select(eq(part, strong_scalar(part, np.inf)), zeros(aval_of(x)), x)


def _softmax_derivative(operand: int) -> Callable[..., Any]:
    """Return the derivative of log(exp(x) + exp(y)) by an operand: its share of the sum of exponentials."""

    def derivative(tangent: ArrayLike, x: Array, y: Array, result: Array) -> Array:
        difference = elementwise.sub(_replace_infinity((x, y)[operand]), _replace_infinity(result))
        return mul(tangent, elementwise.exp(difference))

    return derivative


_LOG_SUM_EXP = LogSumExp()


@Binary.define(_LOG_SUM_EXP.combine, INEXACT, derivatives=(_softmax_derivative(0), _softmax_derivative(1)))
def logaddexp(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return log(exp(x) + exp(y)), without overflow."""
    ...


def _cumsum_transpose(cotangent: Array, operand: Array, *, axis: int, reverse: bool) -> list[Any]:
    return [cumsum.bind_positional((cotangent,), (axis, not reverse))]


@Cumulative.define(SUM, NUMBER, jvp=LINEAR, transpose=_cumsum_transpose)
def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the sums of the elements up to each one along an axis.

    Example:
        >>> lax.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
    """
    ...


@Cumulative.define(PRODUCT, NUMBER, mul)
def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the products of the elements up to each one along an axis.

    Example:
        >>> lax.cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    ...


@Cumulative.define(MAXIMUM, NUMBER, elementwise.max)
def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the largest of the elements up to each one along an axis.

    Example:
        >>> lax.cummax(jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
    """
    ...


@Cumulative.define(MINIMUM, NUMBER, elementwise.min)
def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the smallest of the elements up to each one along an axis.

    Example:
        >>> lax.cummin(jnp.array([2, 3, 1]))
        Array([2, 2, 1], dtype=int32)
    """
    ...


@Cumulative.define(_LOG_SUM_EXP, (FLOAT, COMPLEX), logaddexp)
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the logarithms of the sums of exponentials of the elements up to each one along an axis.

    Example:
        >>> lax.cumlogsumexp(jnp.array([0.0, -jnp.inf]))
        Array([0., 0.], dtype=float32)
    """
    ...
