"""Monoids (an operation and its neutral element) and their reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import check_kind, kind_names
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import convert_array_objects
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.function_names import with_function_name
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.shardings.sharding_rules import batch, drop
from xtrace._src.core.trace import current_trace
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


def lowest(dtype: np.dtype[Any]) -> Any:
    """The neutral element of `max`: minus infinity, or the smallest value of a dtype without it."""
    return _extreme(dtype, "min", -np.inf)


def highest(dtype: np.dtype[Any]) -> Any:
    """The neutral element of `min`: infinity, or the largest value of a dtype without it."""
    return _extreme(dtype, "max", np.inf)


def _extreme(dtype: np.dtype[Any], side: str, infinity: float) -> Any:
    if dtypes.is_boolean(dtype):
        return side == "max"
    if dtypes.is_integer(dtype):
        return int(getattr(dtypes.iinfo(dtype), side))
    if dtypes.is_complex(dtype):
        return complex(infinity, 0)
    with np.errstate(all="ignore"):
        extreme = np.asarray(infinity).astype(dtype)
    # Some eight-bit and narrower floats have no infinity: it converts to NaN or to their largest value.
    return extreme if np.isinf(extreme.astype(np.float64)) else getattr(dtypes.finfo(dtype), side)


def all_bits(dtype: np.dtype[Any]) -> Any:
    """The neutral element of `and`: true, or the integer with every bit set."""
    if dtypes.is_boolean(dtype):
        return True
    return -1 if dtypes.is_signed(dtype) else int(dtypes.iinfo(dtype).max)


class Monoid:
    """An associative operation with a neutral element.

    op: the StableHLO operation. neutral: a function from a dtype to the neutral element. direction: for max and min,
    the comparison in which the result precedes; complex numbers are ordered by real part, then by imaginary part.
    """

    def __init__(self, op: str, neutral: Callable[[Any], Any], direction: str | None = None) -> None:
        self.op, self.neutral, self.direction = op, neutral, direction

    def neutral_value(self, builder: FunctionBuilder, dtype: np.dtype[Any]) -> Value:
        """Write the neutral element as a scalar."""
        return builder.constant(self.neutral(dtype), ShapedArray((), dtype))

    def is_plain(self, dtype: np.dtype[Any]) -> bool:
        """Whether the operation is a single StableHLO operation on elements of `dtype`."""
        return self.direction is None or not dtypes.is_complex(dtype)

    def is_collective(self, dtype: np.dtype[Any]) -> bool:
        """Whether XLA can reduce with this operation across devices."""
        if self.op in ("stablehlo.and", "stablehlo.or"):
            return dtypes.is_boolean(dtype)
        return self.op != "stablehlo.xor" and self.is_plain(dtype)

    def combine(self, builder: FunctionBuilder, x: Value, y: Value) -> Value:
        """Write the operation on two values of one type."""
        if self.is_plain(x.aval.dtype):
            return builder.elementwise(self.op.removeprefix("stablehlo."), x, y)
        direction = str(self.direction)
        part = x.aval.update(dtype=dtypes.real_part_dtype(x.aval.dtype))
        (a, c), (b, d) = [[builder.cast(name, v, part) for v in (x, y)] for name in ("real", "imag")]
        equal, above = builder.compare("EQ", a, c), builder.compare(direction, a, c)
        above = builder.select(equal, builder.compare(direction, b, d), above)
        return builder.select(above, x, y)

    def region(self, builder: FunctionBuilder, aval: ShapedArray) -> tuple[FunctionBuilder, list[Value]]:
        """Return a region that combines two scalars, and its result."""
        scalar = aval.update(shape=())
        inner = builder.region([scalar, scalar])
        return inner, [self.combine(inner, *inner.arguments)]


SUM = Monoid("stablehlo.add", lambda dtype: 0)
PRODUCT = Monoid("stablehlo.multiply", lambda dtype: 1)
MAXIMUM = Monoid("stablehlo.maximum", lowest, "GT")
MINIMUM = Monoid("stablehlo.minimum", highest, "LT")
AND = Monoid("stablehlo.and", all_bits)
OR = Monoid("stablehlo.or", lambda dtype: 0)
XOR = Monoid("stablehlo.xor", lambda dtype: 0)


def canonical_axes(name: str, axes: object, aval: ShapedArray, parameter: str = "axes") -> tuple[int, ...]:
    """Return `axes` as a tuple of ints; ValueError if one repeats or is out of bounds, TypeError for no integer."""
    canonical = integer_tuple(parameter, axes, function=name)
    if len(set(canonical)) != len(canonical):
        raise ValueError(f"{name}: duplicate value in {parameter} {canonical}; name each axis once")
    if any(not 0 <= a < aval.ndim for a in canonical):
        raise ValueError(
            f"{name}: {parameter} {canonical} contains out-of-bounds indices for {aval.str_short(True)}; "
            f"the axes are 0 to {aval.ndim - 1}, counted from the front"
        )
    return canonical


def write_reduction(
    builder: FunctionBuilder, monoid: Monoid, x: Value, axes: Sequence[int], result: ShapedArray
) -> Value:
    """Write the reduction of `x` over `axes`."""
    if not monoid.is_collective(x.aval.dtype):
        x = builder.gather_along(x, axes)
    neutral = monoid.neutral_value(builder, x.aval.dtype)
    types = f"({x.aval.mlir_type}, {neutral.aval.mlir_type}) -> {result.mlir_type}"
    if monoid.is_plain(x.aval.dtype):
        return builder.line(
            f"stablehlo.reduce({x.name} init: {neutral.name}) applies {monoid.op} "
            f"across dimensions = {attributes.list_text(axes)} : {types}",
            result,
        )
    region = monoid.region(builder, x.aval)
    dimensions = attributes.integers(axes)
    return builder.op_with_regions("stablehlo.reduce", [x, neutral], [region], [result], dimensions=dimensions)[0]


class Reduction(ArrayPrimitive):
    """A monoid applied over axes: the result has the operand's dtype and its other axes, in order.

    A reduction over no elements gives the neutral element. kinds: accepted kinds of dtype. sharded: whether the
    operation takes out_sharding. keeps_weak: whether a weakly typed operand gives a weakly typed result. rules: jvp,
    transpose and others of `Primitive`.
    """

    def __init__(
        self, function: Callable[..., Any], monoid: Monoid, kinds: Sequence[str], *, sharded: bool = False,
        keeps_weak: bool = True, **rules: Any,
    ) -> None:
        parameters = ("axes", "out_sharding") if sharded else ("axes",)
        super().__init__(
            function.__name__, parameters, abstract=self._abstract, emit=self._emit, batch=self._batch,
            sharding=drop("axes"), sharding_parameter="out_sharding" if sharded else None, **rules,
        )
        self.monoid, self.kinds, self.keeps_weak = monoid, tuple(kinds), keeps_weak
        arguments = {
            "operand": f"an array of {kind_names(kinds)}.",
            "axes": "a sequence of distinct axes, counted from the front.",
        }
        errors = {
            "TypeError": "`operand` has another dtype, or `axes` is no sequence of integers.",
            "ValueError": "an axis is given twice, or does not exist.",
        }
        if sharded:
            arguments["out_sharding"] = (
                "the sharding of the result over explicit mesh axes; None to infer it."
            )
        returns = "An array of the dtype of `operand` without the axes; over no elements, the neutral element."
        self.declare(function, arguments, returns, errors)
        if sharded:
            self.operation = self._reduce_sharded

    def _abstract(self, operand: ShapedArray, *, axes: tuple[int, ...], **_: Any) -> ShapedArray:
        check_kind(self.name, (operand,), (self.kinds,))
        axes = canonical_axes(self.name, axes, operand)
        shape = tuple([n for i, n in enumerate(operand.shape) if i not in axes])
        return ShapedArray(shape, operand.dtype, operand.weak_type and self.keeps_weak)

    def _emit(self, builder: FunctionBuilder, x: Value, *, axes: tuple[int, ...], **_: Any) -> Value:
        return write_reduction(builder, self.monoid, x, axes, builder.results[0])

    def _batch(
        self, mapped: Any, operands: Sequence[Any], where: Sequence[int], *, axes: tuple[int, ...], **requested: Any
    ) -> tuple[Any, int]:
        axis, (x,) = where[0], operands
        shifted = tuple([a + (a >= axis) for a in axes])
        place = axis - sum(a < axis for a in shifted)
        shardings = [batch(mapped, x, axis, place, s, aval_of(x).ndim - 1 - len(axes)) for s in requested.values()]
        return self.bind_positional(operands, (shifted, *shardings)), place

    def _reduce_sharded(self, operand: Array, axes: Sequence[int], *, out_sharding: object = None) -> Array:
        sharding = requested_out_sharding(out_sharding, function=self.name)
        if not config.allow_f16_reductions.value:
            aval = aval_of(operand)
            sizes = [aval.shape[i] for i in canonical_axes(self.name, axes, aval)]
            if aval.dtype in (dtypes.float16, dtypes.bfloat16) and any(size != 1 for size in sizes):
                raise ValueError(
                    f"{self.name} of {aval.str_short(short_dtypes=False)} would add up 16-bit floats, and the setting "
                    "jax_allow_f16_reductions forbids that; convert the operand to float32"
                )
        axes = integer_tuple("axes", axes, function=self.name)
        return current_trace.get().process(self, (operand,), (axes, sharding))

    @with_function_name("reduction")
    def __call__(self, operand: ArrayLike, axes: Sequence[int], **keywords: Any) -> Array:
        try:
            if self.operation is not None:
                return self.operation(operand, axes, **keywords)
            if keywords:
                raise TypeError(f"{self.name}() takes operand and axes, got {', '.join(keywords)}")
            return current_trace.get().process(self, (operand,), (integer_tuple("axes", axes, function=self.name),))
        except BaseException as error:
            hide_frames(error)
            ready = convert_array_objects(error, (operand, axes), keywords)
            if ready is None:
                raise
        return self(*ready[0], **ready[1])
