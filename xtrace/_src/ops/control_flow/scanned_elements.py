"""Writers of a scan's reads of elements and stores of results, as StableHLO."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.ops.arrays.slicing import write_pad
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


def _start_indices(builder: FunctionBuilder, start: Value, rank: int) -> list[Value]:
    return [start] if rank == 1 else [start, *[builder.constant(0, start.aval)] * (rank - 1)]


def lengthen(builder: FunctionBuilder, x: Value, missing: Any) -> Value:
    """Write `x` with `missing` unused elements appended along its leading axis."""
    zero = builder.literal(0, ShapedArray((), x.aval.dtype))
    return write_pad(builder, x, zero, [(0, missing if axis == 0 else 0, 0) for axis in range(x.aval.ndim)])


def read_group(builder: FunctionBuilder, x: Value, start: Value, count: int) -> Value:
    """Write the slice of `count` elements of the leading axis from `start` on."""
    group = builder.dynamic_slice(x, _start_indices(builder, start, x.aval.ndim), (count, *x.aval.shape[1:]))
    return builder.keep_terms(group, x.aval)


def read_element(builder: FunctionBuilder, group: Value, model: ShapedArray, i: int) -> Value:
    """Write element `i` of a group of elements; `model` is the type of the value that was read."""
    shape = group.aval.shape
    if shape[0] > 1:
        group = builder.keep_terms(builder.slice(group, [(i, i + 1), *[(0, n) for n in shape[1:]]]), model)
    return builder.cast("reshape", group, group.aval.update(shape=shape[1:]))


def store_results(builder: FunctionBuilder, y: Value, start: Value, parts: list[Value]) -> Value:
    """Write `y` with the results of a group of steps stored from `start` on."""
    stored, model = [p.to_physical() for p in parts], y.aval
    rows = [
        builder.keep_terms(builder.broadcast(p, (1, *p.aval.shape), range(1, p.aval.ndim + 1)), model) for p in stored
    ]
    row = builder.convert(builder.concatenate(rows, 0), rows[0].aval.dtype) if len(rows) > 1 else rows[0]
    row = builder.keep_terms(row, model)
    if row.aval.shape == model.shape:
        return row
    y = builder.keep_terms(y)
    written = builder.dynamic_update_slice(y, row, _start_indices(builder, start, model.ndim))
    return builder.keep_terms(written.bitcast(model))
