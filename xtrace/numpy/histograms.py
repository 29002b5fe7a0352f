"""Histograms and counts of integers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.promotion import as_inexact, common_dtype, dtype_of_all
from xtrace._src.core import config, dtypes, explain
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.arrays import Array
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.elementwise import eq
from xtrace.numpy import reductions
from xtrace.numpy.creation import asarray, linspace, ones, to_array_operand, zeros
from xtrace.numpy.manipulation import ravel, reshape, stack
from xtrace.numpy.operands import refuse, scalar_of, type_of
from xtrace.numpy.ordering import searchsorted
from xtrace.numpy.ufuncs import maximum, where


@inline_jit
def _counted(x: Any, weights: Any, *, length: int) -> Any:
    x = to_array_operand("bincount", x)
    x = converted(x, dtypes.int32) if dtypes.is_boolean(x.dtype) else x
    empty = zeros((length,), weights.dtype)
    return empty.at[maximum(x, 0)].add(weights, mode="drop")


def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Any:
    """Return how often each of 0, 1, 2 … occurs in a vector of integers, or the sums of `weights`.

    The result is as long as the largest element says, and `minlength` at least; with `length`, which a traced `x`
    needs, so long, larger elements not counted. Negative elements count as 0.
    """
    refuse("bincount", out_sharding=out_sharding)
    aval = type_of("bincount", x)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_boolean(aval.dtype)):
        raise TypeError(f"bincount: x must have an integer type; got {aval.dtype.name}")
    if aval.ndim != 1:
        raise ValueError(f"bincount: only 1-dimensional input is supported, got shape {aval.shape}")
    minlength = operator.index(minlength)
    if length is None:
        if isinstance(x, Tracer):
            raise explain.concretization(x, "numpy.bincount argument x (without length=)")
        length = max(minlength, int(np.max(np.asarray(x))) + 1 if aval.size else 0)
    else:
        length = operator.index(length)
    if length < 0:
        raise TypeError(f"bincount: length must not be negative, got {length}")
    if weights is None:
        weights = ones((), dtypes.default_int(config.enable_x64.value))
    elif type_of("bincount", weights, 1).shape != aval.shape:
        raise ValueError(
            f"bincount: weights of shape {type_of('bincount', weights, 1).shape} must have the shape of x, {aval.shape}"
        )
    else:
        weights = to_array_operand("bincount", weights, 1)
    return _counted(x, weights, length=length)


@inline_jit
def _edges(a: Any, *limits: Any, bins: int, dtype: Any) -> Any:
    if limits:
        low, high = (converted(to_array_operand("histogram", x), dtype, False) for x in limits)
    else:
        a = ravel(converted(to_array_operand("histogram", a), dtype, False))
        low, high = reductions.min(a), reductions.max(a)
    same = eq(high - low, scalar_of(0, dtype))
    return linspace(where(same, low - 0.5, low), where(same, high + 0.5, high), bins + 1, dtype=dtype)


def _checked_range(function: str, range: Any) -> tuple[Any, ...]:
    if range is None:
        return ()
    listed = isinstance(range, (Sequence, Array, np.ndarray)) and np.ndim(range)  # type: ignore[arg-type]
    found = tuple(range) if listed else ()
    if len(found) != 2 or any(type_of(function, x, 2).ndim for x in found):
        raise ValueError(f"{function}: `range` must be either None or a pair of scalars, got {abbreviated(range)}")
    return found


def _number_of_bins(function: str, bins: Any) -> int:
    try:
        count = operator.index(bins)
    except TypeError:
        raise TypeError(f"{function}: bins must be an integer or an array of edges, got {abbreviated(bins)}") from None
    if count < 0:
        raise ValueError(f"{function}: the number of bins, {count}, must be non-negative")
    return count


def _bin_edges(function: str, a: Any, bins: Any, range: Any) -> Any:
    if isinstance(bins, str):
        raise TypeError(
            f"{function}: bins must be an integer or an array of edges; the rule {abbreviated(bins)} is not there"
        )
    aval, of_bins = type_of(function, a), type_of(function, bins, 1)
    dtype = as_inexact(aval.dtype, False)[0]
    if of_bins.ndim == 1:
        return converted(to_array_operand(function, bins), dtype, False)
    if of_bins.ndim:
        raise TypeError(f"{function}: bins must be an integer or a 1-D array of edges, got shape {of_bins.shape}")
    limits = _checked_range(function, range)
    if not limits and not aval.size:
        raise ValueError(f"{function}: an array without elements has no range; pass range=")
    return _edges(a, *limits, bins=_number_of_bins(function, bins), dtype=dtype)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of `bins` equal bins from the smallest to the largest element, or over `range`.

    An array of edges comes back as floats. `weights` say nothing about them. NotImplementedError for a rule by name.
    """
    if isinstance(bins, str):
        raise NotImplementedError(
            f"histogram_bin_edges: the rule {abbreviated(bins)} is not implemented; give the number of bins, or edges"
        )
    return _bin_edges("histogram_bin_edges", a, bins, range)


def _places(edges: Any, x: Any) -> Any:
    """Return the number of the bin of each element, from 1, the last edge belonging to the last bin."""
    wide = dtype_of_all(edges, x)
    edges, x = converted(edges, wide, False), converted(x, wide, False)
    places = searchsorted(edges, x, "right")
    return where(x == edges[-1], edges.shape[0] - 1, places)


@inline_jit
def _histogram(a: Any, edges: Any, weights: Any, *, density: bool, dtype: Any) -> Any:
    a, edges = converted(to_array_operand("histogram", a), dtype, False), converted(edges, dtype, False)
    places = _places(edges, ravel(a))
    counts = zeros(edges.shape, weights.dtype).at[places].add(ravel(weights), mode="drop")[1:]
    if density:
        counts = counts / (edges[1:] - edges[:-1])
        counts = counts / reductions.sum(counts * (edges[1:] - edges[:-1]))
    return counts, edges


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """Return how many elements fall into each bin, and the edges as in `histogram_bin_edges`; both floats.

    weights: what each element counts, in the shape of `a`. density: divide so that the integral is 1.
    """
    if weights is not None and type_of("histogram", weights, 3).shape != type_of("histogram", a).shape:
        raise ValueError(
            f"histogram: weights of shape {type_of('histogram', weights, 3).shape} must have the shape of a, "
            f"{type_of('histogram', a).shape}"
        )
    operands = (a,) if weights is None else (a, weights)
    _, dtype, _ = common_dtype("histogram", operands, as_inexact)
    a = converted(to_array_operand("histogram", a), dtype, False)
    edges = converted(_bin_edges("histogram", a, bins, range), dtype, False)
    weights = ones(type_of("histogram", a).shape, dtype) if weights is None else to_array_operand("histogram", weights)
    found: tuple[Any, Any] = _histogram(a, edges, converted(weights, dtype, False), density=bool(density), dtype=dtype)
    return found


@inline_jit
def _joint(sample: Any, *operands: Any, weighted: bool, density: bool) -> Any:
    edges, weights = (operands[:-1], operands[-1]) if weighted else (operands, None)
    sample = to_array_operand("histogramdd", sample)
    places = [_places(e, sample[:, i]) for i, e in enumerate(edges)]
    shape = tuple(e.shape[0] + 1 for e in edges)
    dtype = dtypes.default_int(config.enable_x64.value) if weights is None else as_inexact(weights.dtype, False)[0]
    what = ones((), dtype) if weights is None else converted(to_array_operand("histogramdd", weights), dtype, False)
    counts = zeros(shape, dtype).at[tuple(places)].add(what, mode="drop")
    counts = counts[tuple(slice(1, -1) for _ in edges)]
    if density:
        wide = dtype_of_all(counts, *edges)
        counts, edges = converted(counts, wide, False), tuple([converted(e, wide, False) for e in edges])
        total = reductions.sum(counts)
        for i, e in enumerate(edges):
            sizes = [1] * len(edges)
            sizes[i] = -1
            counts = counts / reshape(e[1:] - e[:-1], sizes)
        counts = counts / total
    return counts


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """Return how many rows of `sample` fall into each box, and a list of the edges along each axis.

    bins: a number or edges for all columns, or a list of one for each; range: None, or for each column None or a pair.
    weights: what each row counts; density: divide so that the integral is 1. ValueError for lengths that do not fit.
    """
    return _histogram_of_rows("histogramdd", sample, bins, range, weights, density)


def _histogram_of_rows(function: str, sample: Any, bins: Any, range: Any, weights: Any, density: Any) -> Any:
    aval = type_of(function, sample)
    if aval.ndim != 2:
        raise ValueError(f"{function}: sample must have rows of coordinates, rank 2; got shape {aval.shape}")
    count, columns = aval.shape
    if weights is not None and type_of(function, weights, 3).shape != (count,):
        raise ValueError(
            f"{function}: there should be one weight for each sample: weights of shape "
            f"{type_of(function, weights, 3).shape} for {count} samples"
        )
    listed = isinstance(range, (Sequence, Array, np.ndarray))
    if range is not None and (not listed or len(range) != columns):
        raise ValueError(f"{function}: range must be a sequence of {columns} pairs or Nones; got {abbreviated(range)}")
    if isinstance(bins, (tuple, list)) or np.ndim(bins):
        if len(bins) != columns:
            raise ValueError(f"{function}: there should be a bin for each dimension: {len(bins)} for {columns}")
        each = list(bins)
    else:
        each = [bins] * columns
    sample = to_array_operand(function, sample)
    edges = [_bin_edges(function, sample[:, i], b, None if range is None else range[i]) for i, b in enumerate(each)]
    operands = edges if weights is None else [*edges, to_array_operand(function, weights)]
    return _joint(sample, *operands, weighted=weights is not None, density=bool(density)), edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any, Any]:
    """Return how many points ``(x[i], y[i])`` fall into each box, and the edges along both axes.

    bins: a number or edges for both, or a list of two; the rest is as for `histogramdd`.
    """
    avals = [type_of("histogram2d", value, i) for i, value in enumerate((x, y))]
    if avals[0].ndim != 1 or avals[0].shape != avals[1].shape:
        raise ValueError(f"histogram2d: x and y must be vectors of one length; got {avals[0].shape}, {avals[1].shape}")
    vector = isinstance(bins, (list, tuple)) or (isinstance(bins, (Array, np.ndarray)) and bins.ndim == 1)
    if vector and len(bins) not in (1, 2):
        bins = [asarray(bins)] * 2
    sample = stack([to_array_operand("histogram2d", x), to_array_operand("histogram2d", y)], axis=1)
    counts, (first, second) = _histogram_of_rows("histogram2d", sample, bins, range, weights, density)
    return counts, first, second
