"""Reductions of segments: elements with one number become one element of the result; public as ``xtrace.ops``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, reduce_sum
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.errors import ConcretizationTypeError
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.gathering import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from xtrace._src.ops.arrays.shape import broadcasted_iota, concatenate, expand_dims
from xtrace._src.ops.reductions import reduce_max, reduce_min, reduce_prod
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.creation import full
from xtrace.numpy.operands import type_of


class _Reduction(NamedTuple):
    """How segments reduce: into what, along the axis of buckets, and what empty ones hold."""

    scatter: Callable[..., Any]
    reduce: Callable[..., Any]
    empty: Callable[[Any], Any]


def _lowest(dtype: Any) -> Any:
    return dtypes.iinfo(dtype).min if dtypes.is_integer(dtype) else False if dtypes.is_boolean(dtype) else -math.inf


def _highest(dtype: Any) -> Any:
    return dtypes.iinfo(dtype).max if dtypes.is_integer(dtype) else True if dtypes.is_boolean(dtype) else math.inf


_REDUCTIONS = {
    "segment_sum": _Reduction(scatter_add, reduce_sum, lambda dtype: 0),
    "segment_prod": _Reduction(scatter_mul, reduce_prod, lambda dtype: 1),
    "segment_max": _Reduction(scatter_max, reduce_max, _lowest),
    "segment_min": _Reduction(scatter_min, reduce_min, _highest),
}


@inline_jit
def _segmented(
    data: Any, ids: Any, *, name: str, count: int, sorted_ids: bool, unique: bool, bucket: int | None, mode: Any
) -> Any:
    data, ids = to_array(data), to_array(ids)
    reduction = _REDUCTIONS[name]
    rows, shape = ids.shape[0], data.shape[1:]
    indices = expand_dims(ids, (1,))
    lead: tuple[int, ...] = (count,)
    if bucket is not None:
        # Each bucket of consecutive rows has a result of its own first.
        lead = (-(-rows // bucket), count)
        position = broadcasted_iota(ids.dtype, (rows, 1), 0) // bucket
        indices = concatenate([position, indices], 1)
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, data.ndim)),
        inserted_window_dims=tuple(range(len(lead))),
        scatter_dims_to_operand_dims=tuple(range(len(lead))),
    )
    empty = full((*lead, *shape), reduction.empty(data.dtype), data.dtype)
    found = reduction.scatter(
        empty, indices, data, numbers, indices_are_sorted=sorted_ids, unique_indices=unique, mode=mode
    )
    return found if bucket is None else reduction.reduce(found, (0,))


def _segment_count(name: str, num_segments: Any, ids: Any, size: int) -> int:
    if num_segments is None:
        if isinstance(ids, Tracer):
            raise ConcretizationTypeError(
                f"{name}: num_segments is not given, and the largest of the traced segment_ids is not known; pass "
                "num_segments=, a Python integer"
            )
        if not size:
            raise ValueError(f"{name}: there are no segment_ids to count the segments by; pass num_segments=")
        return max(int(np.max(np.asarray(ids))) + 1, 0)
    if isinstance(num_segments, Tracer):
        raise ConcretizationTypeError(f"{name}: num_segments must be a Python integer, got {abbreviated(num_segments)}")
    count = operator.index(num_segments)
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {count}")
    return count


def _checked_ids(name: str, data: ShapedArray, ids: ShapedArray) -> None:
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{name}: segment_ids must be integers, got {ids.str_short()}")
    if ids.ndim > 1 or data.shape[: ids.ndim] != ids.shape:
        raise ValueError(
            f"{name}: segment_ids must be 1-D, one for each row of data, but they have shape {ids.shape} and data "
            f"{data.shape}"
        )


def _segments(
    name: str, data: Any, segment_ids: Any, num_segments: Any, sorted_ids: bool, unique: bool, bucket_size: Any,
    mode: Any, out_sharding: Any,
) -> Any:
    aval, ids = type_of(name, data), type_of(name, segment_ids, 1)
    _checked_ids(name, aval, ids)
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported; leave it at None")
    bucket = None if bucket_size is None else operator.index(bucket_size)
    if bucket is not None and bucket <= 0:
        raise ValueError(f"{name}: bucket_size must be positive, got {bucket}")
    if not ids.ndim:
        data = broadcast_in_dim(data, (1, *aval.shape), tuple(range(1, aval.ndim + 1)))
        segment_ids = broadcast_in_dim(segment_ids, (1,), ())
    return _segmented(
        data, segment_ids, name=name, count=_segment_count(name, num_segments, segment_ids, ids.size),
        sorted_ids=bool(sorted_ids), unique=bool(unique), bucket=bucket,
        mode=GatherScatterMode.FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode),
    )


def segment_sum(
    data: Any, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:
    """The sums of the rows of `data` with the same of the integers `segment_ids`; 0 for a number without rows.

    num_segments: how many there are, one more than the largest number if None, which must be known then. Numbers that
    are negative or too large are dropped, unless `mode` says otherwise. bucket_size: rows are first summed in groups of
    so many. Raises ConcretizationTypeError for a traced number of segments, ValueError for shapes that do not agree.
    """
    return _segments(
        "segment_sum", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )


def segment_prod(
    data: Any, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:
    """The products of the rows of `data` with the same number, 1 for one without rows; the rest as `segment_sum`."""
    return _segments(
        "segment_prod", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )


def segment_max(
    data: Any, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:
    """The largest of the rows of `data` with the same number, the dtype's lowest value for one without rows.

    The rest is as for `segment_sum`.
    """
    return _segments(
        "segment_max", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )


def segment_min(
    data: Any, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:
    """The smallest of the rows of `data` with the same number, the dtype's highest value for one without rows.

    The rest is as for `segment_sum`.
    """
    return _segments(
        "segment_min", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )
