"""Reductions of segments, the rows of equal ids; public as ``xtrace.ops``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import check_broadcast, operand_aval, reduce_sum
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.errors import BroadcastError, ConcretizationTypeError
from xtrace._src.core.integers import to_integer
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.gather_scatter import scatter_add, scatter_max, scatter_min, scatter_mul
from xtrace._src.ops.arrays.index_vectors import GatherScatterMode, ScatterDimensionNumbers
from xtrace._src.ops.reductions.reductions import reduce_max, reduce_min, reduce_prod
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.arrays.creation import full
from xtrace.numpy.operands import to_known_integer
from xtrace.numpy.reductions.reductions import highest_value, lowest_value


class _Reduction(NamedTuple):
    """The scatter of a reduction, its reduction over buckets, and the value of empty segments."""

    scatter: Callable[..., Array]
    reduce: Callable[..., Array]
    empty: Callable[[Any], Any]


_REDUCTIONS = {
    "sum": _Reduction(scatter_add, reduce_sum, lambda dtype: 0),
    "prod": _Reduction(scatter_mul, reduce_prod, lambda dtype: 1),
    "max": _Reduction(scatter_max, reduce_max, lowest_value),
    "min": _Reduction(scatter_min, reduce_min, highest_value),
}


@inline_jit
def _reduce_segments(
    data: Array, ids: ArrayLike, *, name: str, count: int, sorted_ids: bool, unique: bool, bucket: int | None,
    mode: GatherScatterMode,
) -> Array:
    data, ids = to_array(data), to_array(ids)
    reduction = _REDUCTIONS[name]
    rows, shape = math.prod(ids.shape), data.shape[1:]
    if not math.prod(shape):
        return full((count, *shape), 0, data.dtype)
    data = broadcast_to_shape(data, ids.shape + shape).reshape((rows, *shape))
    indices = ids.reshape((rows, 1))
    lead: tuple[int, ...] = (count,)
    if bucket is not None:
        # Each bucket of consecutive rows is reduced separately first.
        bucket *= math.prod(ids.shape[1:])
        lead = (-(-rows // bucket), count)
        position = broadcasted_iota(ids.dtype, (rows, 1), 0) // bucket
        indices = concatenate([position, indices], 1)
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, data.ndim)), inserted_window_dims=tuple(range(len(lead))),
        scatter_dims_to_operand_dims=tuple(range(len(lead))),
    )
    empty = full((*lead, *shape), reduction.empty(data.dtype), data.dtype)
    segments = reduction.scatter(
        empty, indices, data, numbers, indices_are_sorted=sorted_ids, unique_indices=unique, mode=mode
    )
    return segments if bucket is None else reduction.reduce(segments, (0,))


def _count_segments(num_segments: object, ids: ArrayLike, size: int) -> int:
    if num_segments is None:
        if isinstance(ids, Tracer):
            raise ConcretizationTypeError(
                f"{called_function()}: num_segments is not given, and the largest of the traced segment_ids is "
                "unknown; pass num_segments=, a Python integer"
            )
        if not size:
            raise ValueError(
                f"{called_function()}: there are no segment_ids to count the segments by; pass num_segments="
            )
        return max(int(np.max(np.asarray(ids))) + 1, 0)
    count = to_known_integer("num_segments", num_segments)
    if count < 0:
        raise ValueError(f"{called_function()}: num_segments must be non-negative, got {count}")
    return count


def _check_ids(data: ShapedArray, ids: ShapedArray) -> None:
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{called_function()}: segment_ids must be integers, got {ids.str_short(True)}")
    rows = ids.shape + data.shape[1:]
    try:
        fits = check_broadcast((data.shape, rows)) == rows
    except BroadcastError:
        fits = False
    if not fits:
        raise ValueError(
            f"{called_function()}: data must have a row for each of segment_ids, or one for all: they have the shape "
            f"{ids.shape}, and data {data.shape} does not broadcast to {rows}"
        )


def _reduce_by_ids(
    name: str, data: Any, segment_ids: ArrayLike, num_segments: ArrayLike | None, sorted_ids: bool, unique: bool,
    bucket_size: object, mode: object, out_sharding: object,
) -> Array:
    aval, ids = operand_aval(data, 0), operand_aval(segment_ids, 1)
    _check_ids(aval, ids)
    if out_sharding is not None:
        raise NotImplementedError(f"{called_function()}: out_sharding is not supported; leave it at None")
    bucket = None if bucket_size is None else to_integer("bucket_size", bucket_size)
    if bucket is not None and bucket <= 0:
        raise ValueError(f"{called_function()}: bucket_size must be positive, got {bucket}")
    return _reduce_segments(
        data, segment_ids, name=name, count=_count_segments(num_segments, segment_ids, ids.size),
        sorted_ids=bool(sorted_ids), unique=bool(unique), bucket=bucket,
        mode=GatherScatterMode.FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode),
    )


def segment_sum(
    data: object, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: object = None,
) -> Array:
    """Sum the rows of each segment.

    Args:
        data: an array with a row for each element of `segment_ids`, or with one for all of them; or a scalar.
        segment_ids: an array of integers, the segment of each row.
        num_segments: the number of segments, which must be concrete; None for one more than the largest of
            `segment_ids`. Rows of negative or larger segments are dropped.
        indices_are_sorted: a promise that `segment_ids` rise.
        unique_indices: a promise that no segment has two rows.
        bucket_size: the number of rows in a group; groups are reduced first, then their results. None for one group.
        mode: the treatment of segments out of bounds, as in ``x.at[...]``; None to drop them.
        out_sharding: not supported; leave it at None.

    Returns:
        An array with a row for each segment, of the dtype of `data`; 0 for segments without rows.

    Raises:
        ConcretizationTypeError: `num_segments` is traced, or not given for traced `segment_ids`.
        NotImplementedError: `out_sharding` is given.
        TypeError: `segment_ids` are not integers.
        ValueError: the shapes do not fit.

    Example:
        >>> xtrace.ops.segment_sum(jnp.array([1, 2, 3]), jnp.array([0, 0, 1]))
        Array([3, 3], dtype=int32)
    """
    return _reduce_by_ids(
        "sum", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    )


def segment_prod(
    data: object, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: object = None,
) -> Array:
    """Return the products of the rows of each segment.

    Args:
        data: an array with a row for each element of `segment_ids`, or with one for all of them; or a scalar.
        segment_ids: an array of integers, the segment of each row.
        num_segments: the number of segments, which must be concrete; None for one more than the largest of
            `segment_ids`. Rows of negative or larger segments are dropped.
        indices_are_sorted: a promise that `segment_ids` rise.
        unique_indices: a promise that no segment has two rows.
        bucket_size: the number of rows in a group; groups are reduced first, then their results. None for one group.
        mode: the treatment of segments out of bounds, as in ``x.at[...]``; None to drop them.
        out_sharding: not supported; leave it at None.

    Returns:
        An array with a row for each segment, of the dtype of `data`; 1 for segments without rows.

    Raises:
        ConcretizationTypeError: `num_segments` is traced, or not given for traced `segment_ids`.
        NotImplementedError: `out_sharding` is given.
        TypeError: `segment_ids` are not integers.
        ValueError: the shapes do not fit.

    Example:
        >>> xtrace.ops.segment_prod(jnp.array([1, 2, 3]), jnp.array([0, 0, 1]))
        Array([2, 3], dtype=int32)
    """
    return _reduce_by_ids(
        "prod", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    )


def segment_max(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: ArrayLike | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: object = None, out_sharding: object = None,
) -> Array:
    """Return the largest elements of the rows of each segment.

    Args:
        data: an array with a row for each element of `segment_ids`, or with one for all of them; or a scalar.
        segment_ids: an array of integers, the segment of each row.
        num_segments: the number of segments, which must be concrete; None for one more than the largest of
            `segment_ids`. Rows of negative or larger segments are dropped.
        indices_are_sorted: a promise that `segment_ids` rise.
        unique_indices: a promise that no segment has two rows.
        bucket_size: the number of rows in a group; groups are reduced first, then their results. None for one group.
        mode: the treatment of segments out of bounds, as in ``x.at[...]``; None to drop them.
        out_sharding: not supported; leave it at None.

    Returns:
        An array with a row for each segment, of the dtype of `data`; the lowest value of the dtype for segments
        without rows.

    Raises:
        ConcretizationTypeError: `num_segments` is traced, or not given for traced `segment_ids`.
        NotImplementedError: `out_sharding` is given.
        TypeError: `segment_ids` are not integers.
        ValueError: the shapes do not fit.

    Example:
        >>> xtrace.ops.segment_max(jnp.array([1, 2, 3]), jnp.array([0, 0, 1]))
        Array([2, 3], dtype=int32)
    """
    return _reduce_by_ids(
        "max", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    )


def segment_min(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: ArrayLike | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: object = None, out_sharding: object = None,
) -> Array:
    """Return the smallest elements of the rows of each segment.

    Args:
        data: an array with a row for each element of `segment_ids`, or with one for all of them; or a scalar.
        segment_ids: an array of integers, the segment of each row.
        num_segments: the number of segments, which must be concrete; None for one more than the largest of
            `segment_ids`. Rows of negative or larger segments are dropped.
        indices_are_sorted: a promise that `segment_ids` rise.
        unique_indices: a promise that no segment has two rows.
        bucket_size: the number of rows in a group; groups are reduced first, then their results. None for one group.
        mode: the treatment of segments out of bounds, as in ``x.at[...]``; None to drop them.
        out_sharding: not supported; leave it at None.

    Returns:
        An array with a row for each segment, of the dtype of `data`; the highest value of the dtype for segments
        without rows.

    Raises:
        ConcretizationTypeError: `num_segments` is traced, or not given for traced `segment_ids`.
        NotImplementedError: `out_sharding` is given.
        TypeError: `segment_ids` are not integers.
        ValueError: the shapes do not fit.

    Example:
        >>> xtrace.ops.segment_min(jnp.array([1, 2, 3]), jnp.array([0, 0, 1]))
        Array([1, 3], dtype=int32)
    """
    return _reduce_by_ids(
        "min", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    )
