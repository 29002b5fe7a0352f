"""Writers of operations on arrays with symbolic dimensions, whose sizes are values of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, scalar_aval
from xtrace._src.core.sizes import has_symbolic, is_symbolic, range_length
from xtrace._src.stablehlo import attributes

if TYPE_CHECKING:
    from xtrace._src.stablehlo.builder import FunctionBuilder, Value


_INDEX = ShapedArray((), dtypes.int32)


def size_type() -> ShapedArray:
    """Return the type of sizes as values: the default integer type."""
    return scalar_aval(int).strip_weak_type()


def write_size(builder: FunctionBuilder, size: Any) -> Value:
    """Write an integer or a symbolic dimension as a scalar of the type `size_type`."""
    kind = size_type()
    if not is_symbolic(size):
        return builder.constant(size, kind)
    known = builder.sizes_known()
    value = known.get(size)
    if value is None:
        value = known[size] = _write_sum(builder, size)
    return value


def _write_sum(builder: FunctionBuilder, size: Any) -> Value:
    total: Value | None = None
    for term, coefficient in size.terms:
        product: Value | None = None
        for factor, power in term:
            value = _write_factor(builder, factor)
            for _ in range(power):
                product = value if product is None else builder.elementwise("multiply", product, value)
        if product is None or coefficient != 1:
            number = builder.constant(coefficient, size_type())
            product = number if product is None else builder.elementwise("multiply", product, number)
        total = product if total is None else builder.elementwise("add", total, product)
    assert total is not None
    return total


def _write_factor(builder: FunctionBuilder, factor: Any) -> Value:
    known = builder.sizes_known()
    value = known.get(factor)
    if value is None and not factor.operands:
        value = known.get(factor.name)
        if value is None:
            raise ValueError(
                f"Encountered dimension variable '{factor.name}', which is not appearing in the shapes of the "
                "function's arguments. A program finds sizes in the shapes of its arguments: use x.shape, or give an "
                "argument that dimension"
            )
        return value
    if value is None:
        x, y = [write_size(builder, operand) for operand in factor.operands]
        if factor.name in ("max", "min"):
            value = builder.elementwise("maximum" if factor.name == "max" else "minimum", x, y)
        else:
            value = _write_division(builder, factor, x, y)
        known[factor] = value
    return value


def _write_division(builder: FunctionBuilder, factor: Any, x: Value, y: Value) -> Value:
    """Write the quotient or the remainder, rounded as Python does."""
    rest = builder.elementwise("remainder", x, y)
    zero = builder.constant(0, size_type())
    differs = builder.compare("NE", builder.compare("LT", rest, zero), builder.compare("LT", y, zero))
    lower = builder.elementwise("and", builder.compare("NE", rest, zero), differs)
    if factor.name == "mod":
        return builder.select(lower, builder.elementwise("add", rest, y), rest)
    quotient = builder.elementwise("divide", x, y)
    return builder.select(lower, builder.elementwise("subtract", quotient, builder.constant(1, size_type())), quotient)


def write_scalar(builder: FunctionBuilder, size: Any, aval: ShapedArray) -> Value:
    """Write a symbolic dimension as a value of type `aval`, the same in all elements."""
    value = builder.convert(write_size(builder, size), aval.dtype)
    return builder.broadcast(value, aval.shape).bitcast(aval) if aval.shape else value.bitcast(aval)


def write_vector(builder: FunctionBuilder, sizes: Sequence[Any]) -> Value:
    """Write sizes as the vector of 32-bit integers that operations take."""
    kind = _INDEX
    if not has_symbolic(sizes):
        return builder.constant(np.array(sizes, kind.dtype), kind.update(shape=(len(sizes),)))
    one = kind.update(shape=(1,))
    parts = [
        builder.cast("reshape", builder.convert(write_size(builder, n), kind.dtype), one) if is_symbolic(n)
        else builder.constant(np.array([n], kind.dtype), one) for n in sizes
    ]
    return parts[0] if len(parts) == 1 else builder.concatenate(parts, 0)


def is_dynamic(aval: ShapedArray) -> bool:
    """Whether the text of a type has a ``?`` for a size."""
    return "?" in aval.mlir_type


def write_broadcast(builder: FunctionBuilder, x: Value, aval: ShapedArray, dimensions: Sequence[int]) -> Value:
    """Write `x` broadcast to the shape of `aval`."""
    shape = write_vector(builder, aval.shape)
    return builder.line(
        f"stablehlo.dynamic_broadcast_in_dim {x.name}, {shape.name}, dims = {attributes.list_text(dimensions)} : "
        f"({x.type}, {shape.type}) -> {aval.mlir_type}", aval,
    )


def write_reshape(builder: FunctionBuilder, x: Value, aval: ShapedArray) -> Value:
    """Write `x` reshaped to the shape of `aval`."""
    shape = write_vector(builder, aval.shape)
    types = f"({x.type}, {shape.type}) -> {aval.mlir_type}"
    return builder.line(f"stablehlo.dynamic_reshape {x.name}, {shape.name} : {types}", aval)


def write_iota(builder: FunctionBuilder, aval: ShapedArray, dimension: int) -> Value:
    """Write the index along an axis at every position of an array."""
    shape = write_vector(builder, aval.shape)
    types = f"({shape.type}) -> {aval.mlir_type}"
    return builder.line(f"stablehlo.dynamic_iota {shape.name}, dim = {dimension} : {types}", aval)


def write_slice(builder: FunctionBuilder, x: Value, ranges: Sequence[Sequence[Any]]) -> Value:
    """Write the slice of `x` in a range of each axis."""
    bounds = [(b[0], b[1], b[2] if len(b) == 3 else 1) for b in ranges]
    aval = x.aval.update(shape=tuple([range_length(*b) for b in bounds]))
    columns = [write_vector(builder, column) for column in zip(*bounds, strict=True)]
    return _write_real_slice(builder, x, columns, aval)


def _write_real_slice(builder: FunctionBuilder, x: Value, columns: Sequence[Value], aval: ShapedArray) -> Value:
    values = [x, *columns]
    names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
    return builder.line(f"stablehlo.real_dynamic_slice {names} : ({types}) -> {aval.mlir_type}", aval)


def write_dynamic_slice(builder: FunctionBuilder, x: Value, starts: Sequence[Value], sizes: Sequence[Any]) -> Value:
    """Write the slice of `x` of the given sizes; the start indices are values, clamped so that it lies inside."""
    one, zero = _INDEX.update(shape=(1,)), builder.constant(0, _INDEX)
    firsts = []
    for start, size, whole in zip(starts, sizes, x.aval.shape, strict=True):
        last = builder.convert(write_size(builder, whole - size), _INDEX.dtype)
        position = _clamp_start(builder, start, last, zero)
        firsts.append(builder.cast("reshape", position, one))
    first = firsts[0] if len(firsts) == 1 else builder.concatenate(firsts, 0)
    end = builder.elementwise("add", first, write_vector(builder, sizes))
    steps = write_vector(builder, (1,) * len(sizes))
    return _write_real_slice(builder, x, (first, end, steps), x.aval.update(shape=tuple(sizes)))


def _clamp_start(builder: FunctionBuilder, start: Value, last: Value, zero: Value) -> Value:
    kind = start.aval.update(weak_type=False)
    if dtypes.iinfo(kind.dtype).max > dtypes.iinfo(_INDEX.dtype).max:
        # Wide indices are clamped before the conversion, which would wrap.
        most = builder.constant(dtypes.iinfo(_INDEX.dtype).max, kind)
        start = builder.elementwise("minimum", start.bitcast(kind), most)
        if dtypes.is_signed(kind.dtype):
            start = builder.elementwise("maximum", start, builder.constant(0, kind))
    start = builder.convert(start, _INDEX.dtype).bitcast(_INDEX)
    return builder.elementwise("maximum", builder.elementwise("minimum", start, last), zero)


def write_reduce_window(
    builder: FunctionBuilder, operands: Sequence[Value], region: tuple[FunctionBuilder, Sequence[Value]],
    results: Sequence[ShapedArray], *, dimensions: Sequence[Any], strides: Sequence[int], base_dilations: Sequence[int],
    window_dilations: Sequence[int], padding: Sequence[Sequence[Any]],
) -> list[Value]:
    """Write a reduction over windows of symbolic sizes or padding; `operands` are arrays and initial values."""
    rows = [builder.cast("reshape", write_vector(builder, pair), _INDEX.update(shape=(1, 2))) for pair in padding]
    vectors = [write_vector(builder, v) for v in (dimensions, strides, base_dilations, window_dilations)]
    values = [*operands, *vectors, rows[0] if len(rows) == 1 else builder.concatenate(rows, 0)]
    names = ", ".join([v.name for v in values])
    # XLA's shape refinement turns this into a reduce_window when the sizes are known.
    return builder.line_of_many(
        f"stablehlo.custom_call @stablehlo.dynamic_reduce_window({names}) {{api_version = 2 : i32, called_computations "
        f"= [@{builder.outline(*region, 'window_reducer')}]}} : {builder.function_type(values, results)}", results,
    )


def write_top_k(builder: FunctionBuilder, x: Value, k: Any, results: Sequence[ShapedArray]) -> list[Value]:
    """Write the `k` largest elements along the last axis, and their positions."""
    values = [x, builder.convert(write_size(builder, k), _INDEX.dtype)]
    # XLA's refinement makes a top_k of it when the sizes are known.
    return builder.line_of_many(
        f"stablehlo.custom_call @stablehlo.dynamic_top_k({', '.join([v.name for v in values])}) "
        f"{{api_version = 2 : i32}} : {builder.function_type(values, results)}", results,
    )


def write_convolution(
    builder: FunctionBuilder, x: Value, y: Value, aval: ShapedArray, padding: Sequence[Sequence[Any]], tail: str
) -> Value:
    """Write a convolution with symbolic padding; `tail` is the text of its other attributes."""
    rows = [builder.cast("reshape", write_vector(builder, pair), _INDEX.update(shape=(1, 2))) for pair in padding]
    pads = rows[0] if len(rows) == 1 else builder.concatenate(rows, 0)
    values = (x, y, pads)
    names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
    return builder.line(f'"stablehlo.dynamic_conv"({names}) <{{{tail}}}> : ({types}) -> {aval.mlir_type}', aval)


def write_gather(builder: FunctionBuilder, x: Value, indices: Value, sizes: Sequence[Any], **texts: Any) -> Value:
    """Write a gather of windows, whose sizes may be symbolic; `texts` are its attributes."""
    if not has_symbolic(sizes):
        return builder.op("stablehlo.gather", x, indices, slice_sizes=attributes.integers(sizes), **texts)
    return builder.op("stablehlo.dynamic_gather", x, indices, write_vector(builder, sizes), **texts)


def write_pad(
    builder: FunctionBuilder, x: Value, padding: Value, configuration: Sequence[Sequence[Any]], aval: ShapedArray
) -> Value:
    """Write `x` with (low, high, interior) elements added along each axis."""
    values = [x, padding, *[write_vector(builder, column) for column in zip(*configuration, strict=True)]]
    names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
    return builder.line(f"stablehlo.dynamic_pad {names} : ({types}) -> {aval.mlir_type}", aval)
