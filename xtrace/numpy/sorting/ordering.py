"""Partitions, the largest elements, and searches in sorted vectors."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.families import neg
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.sizes import bit_length, is_known_to_exceed
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays import slicing, sorting
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import broadcasted_iota, iota
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.elementwise import complex_numbers
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_not, bitwise_or, eq, ge, lt, ne
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions import cumulative, reductions
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.indexing.indexing import DEFAULT, gather_elements, take
from xtrace.numpy.manipulation.rearrangement import flip
from xtrace.numpy.operands import scalar_of

_METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


def _partition_along(a: ArrayLike, kth: object, axis: int, positions: bool) -> Array:
    a = to_array_operand(a)
    if dtypes.is_complex(a.dtype):
        raise NotImplementedError(
            f"{called_function()}: complex numbers have no order here; got {a.aval}. Use sort_complex"
        )
    along = canonical_axis(axis, a.ndim)
    place = to_integer("kth", kth)
    length = a.shape[along]
    if not -length <= place < length:
        raise ValueError(f"{called_function()}: kth={place} is out of bounds for axis {along} of length {length}")
    middle = place % length + 1
    places = [broadcasted_iota(dtypes.int32, a.shape, along)] if positions else []
    order = sorting.sort((convert_to(a, a.dtype, False), *places), along)[-1]
    small = slicing.slice_in_dim(order, 0, middle, axis=along)
    rest = slicing.slice_in_dim(order, middle, length, axis=along)
    # As in JAX, the values of the larger elements are in descending order, their positions in ascending order.
    rest = sorting.sort(rest, along) if positions else shapes.rev(rest, (along,))
    order = concatenate([small, rest], along)
    return convert_to(order, order.dtype, a.weak_type)


@inline_jit(static=("kth", "axis"), public=True)
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Move the element at `kth` to its place in sorted order, smaller elements before it and larger ones after it.

    Args:
        a: an array of real numbers.
        kth: the place along the axis, a Python integer; negative ones count from the end.
        axis: the axis.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `a` is complex.
        TypeError: `a` is not an array.
        ValueError: the place is out of bounds, or `a` has no such axis.

    Example:
        >>> jnp.partition(jnp.array([3, 1, 2]), 1)
        Array([1, 2, 3], dtype=int32)
    """
    return _partition_along(a, kth, axis, False)


@inline_jit(static=("kth", "axis"), public=True)
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the positions that `partition` moves the elements from.

    Args:
        a: an array of real numbers.
        kth: the place along the axis, a Python integer; negative ones count from the end.
        axis: the axis.

    Returns:
        An array of the shape of `a` and dtype int32.

    Raises:
        NotImplementedError: `a` is complex.
        TypeError: `a` is not an array.
        ValueError: the place is out of bounds, or `a` has no such axis.

    Example:
        >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)
        Array([1, 2, 0], dtype=int32)
    """
    return _partition_along(a, kth, axis, True)


@inline_jit
def _take_top(a: Array, *, k: int, axis: int, smallest: bool) -> tuple[Any, Any]:
    # The complement reverses the order of all integers and booleans; negation would overflow.
    reverse = neg if dtypes.is_floating(a.dtype) else bitwise_not
    values, places = sorting.top_k(reverse(a) if smallest else a, k, axis=axis)
    return reverse(values) if smallest else values, places


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Any, Any]:
    """Return the `k` largest or smallest elements along an axis, and their positions.

    Args:
        a: an array of real numbers or booleans.
        k: the number of elements, a Python integer up to the size of the axis.
        axis: the axis.
        mode: ``"largest"``, with NaN above all numbers, or ``"smallest"``, with NaN after all numbers.
        sorted: ignored: the elements always come in order.

    Returns:
        A tuple of two arrays of size `k` along the axis: the elements from the largest or the smallest on, of the dtype
        of `a`, and their positions, of dtype int32. Of equal elements the first one comes first.

    Raises:
        TypeError: `a` is not an array, or `k` is not an integer.
        ValueError: `k` is negative or too large, there is no such axis, `mode` has another value, or `a` is complex.

    Example:
        >>> jnp.top_k(jnp.array([3, 1, 2]), 2, mode="smallest")
        (Array([1, 2], dtype=int32), Array([1, 2], dtype=int32))
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {abbreviate(mode)}")
    a = to_array_operand(a)
    if dtypes.is_complex(a.dtype):
        raise ValueError(f"top_k: complex numbers are not ordered, got {a.aval}; take the real part or abs first")
    values, places = _take_top(
        a, k=to_integer("k", k), axis=canonical_axis(axis, a.ndim), smallest=mode == "smallest"
    )
    return values, places


def _is_less(x: Array, y: Array) -> Array:
    """Return whether `x` comes before `y` in sorted order: NaN last, complex numbers by real, then imaginary part."""
    if dtypes.is_complex(x.dtype):
        first, second = complex_numbers.real(x), complex_numbers.real(y)
        tied = bitwise_not(bitwise_or(_is_less(first, second), _is_less(second, first)))
        later = bitwise_and(tied, _is_less(complex_numbers.imag(x), complex_numbers.imag(y)))
        return bitwise_or(_is_less(first, second), later)
    smaller = lt(x, y)
    if not dtypes.is_floating(x.dtype):
        return smaller
    return bitwise_or(smaller, bitwise_and(ne(y, y), eq(x, x)))


def _is_before(values: Array, elements: Array, side: str) -> Array:
    """Return whether values are inserted before elements of the sorted vector."""
    return bitwise_not(_is_less(elements, values)) if side == "left" else _is_less(values, elements)


def _search_by_halving(a: Array, v: Array, side: str, unroll: bool) -> Array:
    """Return positions by binary search, each step for all values together."""
    length = a.shape[0]

    def step(bounds: tuple[Array, ...], _: None) -> tuple[tuple[Array, Array], None]:
        low, high = bounds
        middle = low + (high - low) // 2
        before = _is_before(v, gather_elements(a, [middle], (0,), 0, DEFAULT), side)
        return (select_n(before, middle, low), select_n(before, high, middle)), None

    bounds = [broadcast_in_dim(scalar_of(n, dtypes.uint32), v.shape, ()) for n in (0, length)]
    return scan(step, tuple(bounds), None, bit_length(length), unroll=bool(unroll) or 1)[0][1]


def _search_by_comparing(a: Array, v: Array, side: str) -> Array:
    """Return positions by comparing every value with every element."""
    shape = (*v.shape, a.shape[0])
    elements = broadcast_in_dim(a, shape, (v.ndim,))
    after = bitwise_not(_is_before(broadcast_in_dim(v, shape, range(v.ndim)), elements, side))
    return reductions.reduce_sum(convert_to(after, dtypes.int32), (v.ndim,))


def _search_by_sorting(a: Array, v: Array, side: str) -> Array:
    """Return positions by sorting values and elements together, equal ones in the order of `side`."""
    flat, count = reshape(v, (v.size,)), v.size
    parts, first = ([flat, a], 0) if side == "left" else ([a, flat], a.shape[0])
    places = iota(dtypes.int32, count + a.shape[0])
    order = sorting.sort((concatenate(parts, 0), places), 0)[1]
    start, stop = scalar_of(first, dtypes.int32), scalar_of(first + count, dtypes.int32)
    is_value = bitwise_and(ge(order, start), lt(order, stop))
    passed = cumulative.cumsum(convert_to(bitwise_not(is_value), dtypes.int32), 0)
    # Sorting by the original positions restores the order of the values.
    ranks = sorting.sort((order, passed), 0)[1]
    return reshape(slicing.slice_in_dim(ranks, first, first + count), v.shape)


@inline_jit(static=("side", "method"), public=True)
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Return the positions at which elements keep a sorted vector sorted.

    Args:
        a: a vector that rises; NaN is larger than all numbers.
        v: an array or a scalar of the elements.
        side: ``"left"`` for the first such position, ``"right"`` for the last one.
        sorter: the positions that sort `a`; None if `a` is sorted.
        method: ``"scan"`` halves intervals, ``"scan_unrolled"`` does so without a loop, ``"sort"`` sorts both
            together, ``"compare_all"`` compares every pair; the results are equal.

    Returns:
        An array of integers of the shape of `v`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `a` is not a vector, or `side` or `method` has another value.

    Example:
        >>> jnp.searchsorted(jnp.array([1, 2, 4]), jnp.array([2, 3]))
        Array([1, 2], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {abbreviate(side)}")
    if method not in _METHODS:
        raise ValueError(f"searchsorted: method must be one of {list(_METHODS)}, got {abbreviate(method)}")
    avals, dtype, _ = common_dtype((a, v))
    if avals[0].ndim != 1:
        raise ValueError(f"searchsorted: a should be 1-dimensional, got shape {avals[0].shape}")
    if sorter is not None:
        given = operand_aval(sorter, 3)
        if not dtypes.is_integer(given.dtype):
            raise TypeError(f"searchsorted: sorter must have an integer type, got {given.dtype.name}")
        a = take(a, sorter, mode="clip")
    a, v = [convert_to(to_array_operand(x), dtype, False) for x in (a, v)]
    wide = dtypes.int64 if is_known_to_exceed(a.shape[0], dtypes.iinfo(dtypes.int32).max) else dtypes.int32
    if not a.shape[0] or not v.size:
        return zeros(v.shape, wide)
    if method == "sort":
        return convert_to(_search_by_sorting(a, v, side), wide)
    if method == "compare_all":
        return convert_to(_search_by_comparing(a, v, side), wide)
    return convert_to(_search_by_halving(a, v, side, method == "scan_unrolled"), wide)


@inline_jit(static=("right", "method"), public=True)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """Return the number of the bin of each element; 0 before the first edge.

    Args:
        x: an array or a scalar of real numbers.
        bins: the edges, a vector that rises or falls.
        right: whether a bin includes its upper edge instead of its lower one.
        method: a method of `searchsorted`; None for its default.

    Returns:
        An array of integers of the shape of `x`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `bins` is not a vector.

    Example:
        >>> jnp.digitize(jnp.array([0.5, 2.0]), jnp.array([1.0, 2.0, 3.0]))
        Array([0, 2], dtype=int32)
    """
    aval, edges = operand_aval(x, 0), operand_aval(bins, 1)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got shape {edges.shape}")
    if not edges.size:
        return zeros(aval.shape, dtypes.int32)
    bins = to_array_operand(bins)
    side, method = "left" if right else "right", "scan" if method is None else method
    rising = searchsorted(bins, x, side, method=method)
    falling = bins.shape[0] - searchsorted(flip(bins), x, side, method=method)
    is_rising = broadcast_in_dim(bins[-1] >= bins[0], rising.shape, ())
    return select_n(is_rising, falling, rising)
