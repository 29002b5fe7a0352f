"""Histograms and counts of integers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype, find_common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import ones, zeros
from xtrace.numpy.arrays.ranges import linspace
from xtrace.numpy.elementwise.ufuncs import maximum
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.joins_and_splits import stack
from xtrace.numpy.manipulation.shapes import ravel, reshape
from xtrace.numpy.operands import scalar_of
from xtrace.numpy.reductions import reductions
from xtrace.numpy.sorting.ordering import searchsorted


@inline_jit
def _add_at_integers(x: ArrayLike, weights: Array, *, length: int) -> Array:
    x = to_array_operand(x)
    x = convert_to(x, dtypes.int32) if dtypes.is_boolean(x.dtype) else x
    empty = zeros((length,), weights.dtype)
    return empty.at[maximum(x, 0)].add(weights, mode="drop")


def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None,
    out_sharding: object = None
) -> Array:
    """Count how often each of 0, 1, 2 … occurs in a vector of integers, or add weights.

    Args:
        x: a vector of integers; negative ones count as 0.
        weights: a vector of the weights of the elements; None for 1 each.
        minlength: the least length of the result.
        length: the length of the result, which a traced `x` needs; larger elements do not count.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        A vector, of the default integer or the dtype of `weights`.

    Raises:
        ConcretizationTypeError: `x` is traced and `length` is not given.
        TypeError: `x` has no integers.
        ValueError: `x` is not a vector, or `weights` have another shape.

    Example:
        >>> jnp.bincount(jnp.array([0, 2, 2]))
        Array([1, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(bincount, out_sharding, x, weights, minlength, length=length)
    aval = operand_aval(x, 0)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_boolean(aval.dtype)):
        raise TypeError(f"bincount: x must have an integer type; got {aval.dtype.name}")
    if aval.ndim != 1:
        raise ValueError(f"bincount: only 1-dimensional input is supported, got shape {aval.shape}")
    minlength = to_integer("minlength", minlength)
    if length is None:
        if isinstance(x, Tracer):
            raise explain.concretization(x, "bincount argument x (without length=)")
        length = max(minlength, int(np.max(np.asarray(x))) + 1 if aval.size else 0)
    else:
        length = to_integer("length", length)
    if length < 0:
        raise TypeError(f"bincount: length must not be negative, got {length}")
    if weights is None:
        weights = ones((), dtypes.default_int(config.enable_x64.value))
    elif operand_aval(weights, 1).shape != aval.shape:
        raise ValueError(
            f"bincount: weights of shape {operand_aval(weights, 1).shape} must have the shape of x, {aval.shape}"
        )
    else:
        weights = to_array_operand(weights, 1)
    return _add_at_integers(x, weights, length=length)


@inline_jit
def _divide_range(a: Array, *limits: ArrayLike, bins: int, dtype: np.dtype[Any]) -> Array:
    if limits:
        low, high = (convert_to(to_array_operand(x), dtype, False) for x in limits)
    else:
        a = ravel(convert_to(to_array_operand(a), dtype, False))
        low, high = reductions.min(a), reductions.max(a)
    same = eq(high - low, scalar_of(0, dtype))
    return linspace(where(same, low - 0.5, low), where(same, high + 0.5, high), bins + 1, dtype=dtype)


def _to_limits(range: Any) -> tuple[Any, ...]:
    if range is None:
        return ()
    listed = isinstance(range, (Sequence, Array, np.ndarray)) and np.ndim(range)
    ends = tuple(range) if listed else ()
    if len(ends) != 2 or any(operand_aval(x, 2).ndim for x in ends):
        raise ValueError(
            f"{called_function()}: `range` must be either None or a pair of scalars, got {abbreviate(range)}"
        )
    return ends


def _count_bins(bins: Any) -> int:
    try:
        count = operator.index(bins)
    except TypeError:
        raise TypeError(
            f"{called_function()}: bins must be an integer or an array of edges, got {abbreviate(bins)}"
        ) from None
    if count < 0:
        raise ValueError(f"{called_function()}: the number of bins, {count}, must be non-negative")
    return count


def _make_edges(a: Any, bins: Any, range: object) -> Array:
    if isinstance(bins, str):
        raise TypeError(
            f"{called_function()}: bins must be an integer or an array of edges; the rule {abbreviate(bins)} is not "
            "supported"
        )
    aval, bins_aval = operand_aval(a, 0), operand_aval(bins, 1)
    dtype = as_inexact(aval.dtype, False)[0]
    if bins_aval.ndim == 1:
        return convert_to(to_array_operand(bins), dtype, False)
    if bins_aval.ndim:
        raise TypeError(
            f"{called_function()}: bins must be an integer or a 1-D array of edges, got shape {bins_aval.shape}"
        )
    limits = _to_limits(range)
    if not limits and not aval.size:
        raise ValueError(f"{called_function()}: an array without elements has no range; pass range=")
    return _divide_range(a, *limits, bins=_count_bins(bins), dtype=dtype)


def histogram_bin_edges(
    a: ArrayLike, bins: object = 10, range: object = None, weights: ArrayLike | None = None
) -> Array:
    """Return the edges of the bins of a histogram.

    Args:
        a: an array of real numbers.
        bins: the number of bins of equal width, or a vector of edges.
        range: the lower and the upper end of the bins; None for the smallest and the largest element.
        weights: ignored.

    Returns:
        A vector of a floating dtype with one element more than there are bins.

    Raises:
        NotImplementedError: `bins` is the name of a rule.
        TypeError: `a` is not an array.

    Example:
        >>> jnp.histogram_bin_edges(jnp.array([0.0, 1.0]), 2)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError(
            f"histogram_bin_edges: the rule {abbreviate(bins)} is not implemented; give the number of bins, or edges"
        )
    return _make_edges(a, bins, range)


def _find_bins(edges: Array, x: Array) -> Array:
    """Return the number of each element's bin, from 1; the last bin includes its upper edge."""
    wide = find_common_dtype(edges, x)
    edges, x = convert_to(edges, wide, False), convert_to(x, wide, False)
    places = searchsorted(edges, x, "right")
    return where(x == edges[-1], edges.shape[0] - 1, places)


@inline_jit
def _count_in_bins(a: ArrayLike, edges: Array, weights: Array, *, density: bool, dtype: DType) -> tuple[Any, Any]:
    a, edges = convert_to(to_array_operand(a), dtype, False), convert_to(edges, dtype, False)
    places = _find_bins(edges, ravel(a))
    counts = zeros(edges.shape, weights.dtype).at[places].add(ravel(weights), mode="drop")[1:]
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / reductions.sum(counts)
    return counts, edges


def histogram(
    a: ArrayLike, bins: object = 10, range: object = None, weights: ArrayLike | None = None, density: bool | None = None
) -> tuple[Any, Any]:
    """Count the elements in each bin.

    Args:
        a: an array of real numbers.
        bins: the number of bins of equal width, or a vector of edges.
        range: the lower and the upper end of the bins; None for the smallest and the largest element.
        weights: the weights of the elements, an array of the shape of `a`; None for 1 each.
        density: whether the counts are divided so that the integral is 1.

    Returns:
        A pair of vectors of a floating dtype: the counts, and the edges of the bins.

    Raises:
        TypeError: `a` is not an array, or `bins` is the name of a rule.
        ValueError: `weights` have another shape.

    Example:
        >>> jnp.histogram(jnp.array([0.0, 0.5, 2.0]), 2)
        (Array([2., 1.], dtype=float32), Array([0., 1., 2.], dtype=float32))
    """
    if weights is not None and operand_aval(weights, 3).shape != operand_aval(a, 0).shape:
        raise ValueError(
            f"histogram: weights of shape {operand_aval(weights, 3).shape} must have the shape of a, "
            f"{operand_aval(a, 0).shape}"
        )
    operands = (a,) if weights is None else (a, weights)
    _, dtype, _ = common_dtype(operands, as_inexact)
    a = convert_to(to_array_operand(a), dtype, False)
    edges = convert_to(_make_edges(a, bins, range), dtype, False)
    weights = ones(operand_aval(a, 0).shape, dtype) if weights is None else to_array_operand(weights)
    weights = convert_to(weights, dtype, False)
    return _count_in_bins(a, edges, weights, density=bool(density), dtype=dtype)


@inline_jit
def _count_points(sample: Array, weights: Array | None, *edges: Array, density: bool) -> Array:
    sample = to_array_operand(sample)
    places = [_find_bins(e, sample[:, i]) for i, e in enumerate(edges)]
    shape = tuple(e.shape[0] + 1 for e in edges)
    dtype = dtypes.default_int(config.enable_x64.value) if weights is None else as_inexact(weights.dtype, False)[0]
    added = ones((), dtype) if weights is None else convert_to(to_array_operand(weights), dtype, False)
    counts = zeros(shape, dtype).at[tuple(places)].add(added, mode="drop")
    counts = counts[tuple(slice(1, -1) for _ in edges)]
    if density:
        wide = find_common_dtype(counts, *edges)
        counts, edges = convert_to(counts, wide, False), tuple([convert_to(e, wide, False) for e in edges])
        total = reductions.sum(counts)
        for i, e in enumerate(edges):
            sizes = [1] * len(edges)
            sizes[i] = -1
            counts = counts / reshape(e[1:] - e[:-1], sizes)
        counts = counts / total
    return counts


def histogramdd(
    sample: ArrayLike, bins: object = 10, range: object = None, weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Any, list[Any]]:
    """Count the points in each box.

    Args:
        sample: a matrix with a point in each row.
        bins: the number of bins or a vector of edges, for all axes, or a sequence with one for each axis.
        range: None, or a sequence with None or a pair of ends for each axis.
        weights: a vector of the weights of the points; None for 1 each.
        density: whether the counts are divided so that the integral is 1.

    Returns:
        A pair of the counts, an array with an axis for each column, and a list of vectors of edges.

    Raises:
        TypeError: `sample` is not an array.
        ValueError: the number of bins or ranges differs from the number of columns, or of weights from the number of
            rows.

    Example:
        >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), 2)[0]
        Array([[1, 0],
               [0, 1]], dtype=int32)
    """
    return _count_rows(sample, bins, range, weights, density)


def _count_rows(
    sample: ArrayLike, bins: Any, range: Any, weights: object, density: Any
) -> tuple[Any, list[Any]]:
    aval = operand_aval(sample, 0)
    if aval.ndim != 2:
        raise ValueError(f"{called_function()}: sample must have rows of coordinates, rank 2; got shape {aval.shape}")
    count, columns = aval.shape
    if weights is not None and operand_aval(weights, 3).shape != (count,):
        raise ValueError(
            f"{called_function()}: there should be one weight for each sample: weights of shape "
            f"{operand_aval(weights, 3).shape} for {count} samples"
        )
    listed = isinstance(range, (Sequence, Array, np.ndarray))
    if range is not None and (not listed or len(range) != columns):
        raise ValueError(
            f"{called_function()}: range must be a sequence of {columns} pairs or Nones; got {abbreviate(range)}"
        )
    if isinstance(bins, (tuple, list)) or np.ndim(bins):
        if len(bins) != columns:
            raise ValueError(
                f"{called_function()}: there should be a bin for each dimension: {len(bins)} for {columns}"
            )
        each = list(bins)
    else:
        each = [bins] * columns
    sample = to_array_operand(sample)
    edges = [_make_edges(sample[:, i], b, None if range is None else range[i]) for i, b in enumerate(each)]
    weights = None if weights is None else to_array_operand(weights)
    return _count_points(sample, weights, *edges, density=bool(density)), edges


def histogram2d(
    x: ArrayLike, y: ArrayLike, bins: Any = 10, range: object = None, weights: ArrayLike | None = None,
    density: bool | None = None
) -> tuple[Any, Any, Any]:
    """Count the points (x[i], y[i]) in each box.

    Args:
        x, y: vectors of one length.
        bins: the number of bins or a vector of edges, for both axes, or a pair with one for each.
        range: None, or a pair with None or a pair of ends for each axis.
        weights: a vector of the weights of the points; None for 1 each.
        density: whether the counts are divided so that the integral is 1.

    Returns:
        A triple of the counts, a matrix, and the edges along both axes.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the lengths differ.

    Example:
        >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), 2)[0]
        Array([[1, 0],
               [0, 1]], dtype=int32)
    """
    avals = [operand_aval(value, i) for i, value in enumerate((x, y))]
    if avals[0].ndim != 1 or avals[0].shape != avals[1].shape:
        raise ValueError(f"histogram2d: x and y must be vectors of one length; got {avals[0].shape}, {avals[1].shape}")
    vector = isinstance(bins, (list, tuple)) or (isinstance(bins, (Array, np.ndarray)) and bins.ndim == 1)
    if vector and len(bins) not in (1, 2):
        bins = [asarray(bins)] * 2
    sample = stack([to_array_operand(x), to_array_operand(y)], axis=1)
    counts, (first, second) = _count_rows(sample, bins, range, weights, density)
    return counts, first, second
