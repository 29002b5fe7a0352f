"""The work, memory traffic and communication of operations.

The counts are JAX's, where an operation without a rule counts nothing. Collectives run on a torus of links, with a ring
for each mesh axis.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xtrace._src.algebra.families import mul, neg
from xtrace._src.algebra.varying import psum_invariant, unreduced_psum
from xtrace._src.algebra.vector_space import reduce_sum
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops.arrays.gather_scatter import (
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from xtrace._src.ops.arrays.index_vectors import GatherScatterMode
from xtrace._src.ops.collectives.collectives import pmax, pmin, psum
from xtrace._src.ops.collectives.exchanges import (
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced_p,
    all_to_all_p,
    ppermute_p,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
)
from xtrace._src.ops.contractions.contraction import dot_general
from xtrace._src.ops.contractions.convolution import conv_general_dilated
from xtrace._src.ops.elementwise import comparisons, complex_numbers, elementwise, special, trigonometry
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from xtrace._src.roofline.results import RooflineResult, RooflineRuleContext, RooflineShape

Rule = Callable[..., RooflineResult]


def _list_results(context: RooflineRuleContext) -> list[RooflineShape]:
    return [RooflineShape.from_aval(a) for a in context.avals_out]


def _count_unfused(flops: int, moved: int) -> RooflineResult:
    """Return the result of a fused operation."""
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=moved)


def count_nothing(context: RooflineRuleContext, *operands: RooflineShape, **_: Any) -> RooflineResult:
    """Return the result of an operation without a rule."""
    return RooflineResult()


def _elementwise(context: RooflineRuleContext, *operands: RooflineShape, **_: Any) -> RooflineResult:
    (result,) = _list_results(context)
    return _count_unfused(result.size, sum([x.bytes for x in operands]) + result.bytes)


def _select(context: RooflineRuleContext, which: RooflineShape, *cases: RooflineShape) -> RooflineResult:
    (result,) = _list_results(context)
    return _count_unfused(result.size, which.bytes + result.bytes)


def _reduce_sum(context: RooflineRuleContext, x: RooflineShape, **_: Any) -> RooflineResult:
    (result,) = _list_results(context)
    return _count_unfused(x.size - result.size, x.bytes + result.bytes)


def _count_cumulative(
    context: RooflineRuleContext, x: RooflineShape, *, flops: int, axis: int, reverse: bool
) -> RooflineResult:
    return _count_unfused(flops * x.shape[axis], 2 * x.bytes)


def _gather(
    context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, *, mode: Any, **_: Any
) -> RooflineResult:
    (result,) = _list_results(context)
    # Indices are compared with both bounds, and elements outside are replaced.
    flops = result.size + 4 * indices.size if mode is GatherScatterMode.FILL_OR_DROP else 0
    return _count_unfused(flops, 2 * result.bytes + indices.bytes)


def _scatter(
    context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, updates: RooflineShape, **_: Any
) -> RooflineResult:
    # The elements are read, combined with the updates, and written.
    flops = 0 if context.primitive is scatter else updates.size
    return _count_unfused(flops, 3 * updates.bytes + indices.bytes)


# Contractions


def _dot_general(
    context: RooflineRuleContext, x: RooflineShape, y: RooflineShape, *, dimension_numbers: Any, **_: Any
) -> RooflineResult:
    (result,) = _list_results(context)
    flops = 2 * result.size * math.prod([x.shape[axis] for axis in dimension_numbers[0][0]])
    # The result is in the memory of the left operand.
    moved = 0 if context.pin_lhs_in_vmem else x.bytes + result.bytes
    moved += 0 if context.pin_rhs_in_vmem else y.bytes
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _count_taps(
    size: int, window: int, outputs: int, stride: int, padding: tuple[int, int], dilation: int, window_dilation: int
) -> int:
    """Return the number of elements under all windows along one dimension, without padding and dilation gaps."""
    positions = [
        output * stride + tap * window_dilation - padding[0] for output in range(outputs) for tap in range(window)
    ]
    return sum([p % dilation == 0 and 0 <= p // dilation < size for p in positions])


def _convolution(
    context: RooflineRuleContext, x: RooflineShape, kernel: RooflineShape, *, window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]], lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
    dimension_numbers: Any, **_: Any,
) -> RooflineResult:
    (result,) = _list_results(context)
    lhs, rhs, out = dimension_numbers.lhs_spec, dimension_numbers.rhs_spec, dimension_numbers.out_spec
    taps = [
        _count_taps(x.shape[lhs[d]], kernel.shape[rhs[d]], result.shape[out[d]], *details)
        for d, details in enumerate(zip(window_strides, padding, lhs_dilation, rhs_dilation, strict=True), 2)
    ]
    flops = 2 * math.prod(taps) * result.shape[out[0]] * kernel.shape[rhs[0]] * kernel.shape[rhs[1]]
    return _count_unfused(flops, x.bytes + kernel.bytes + result.bytes)


# Collectives


def _find_axis_sizes(context: RooflineRuleContext, axes: Any) -> dict[Any, int]:
    """Return the sizes of a collective's axes by name, without axes that the mesh does not have."""
    sizes = {} if context.mesh is None else dict(context.mesh.shape_tuple)
    return {name: sizes[name] for name in (axes if isinstance(axes, (tuple, list)) else (axes,)) if name in sizes}


def _count_on_links(sizes: Mapping[Any, int], sent: int, hops: int) -> RooflineResult:
    """Return the result of a collective that sends `sent` bytes over the links of each axis, in `hops` hops."""
    return RooflineResult(ici_bytes=dict.fromkeys(sizes, sent), ici_latency=dict.fromkeys(sizes, hops))


def _count_along_rings(sizes: Mapping[Any, int], blocks: int, rounds: int = 1) -> RooflineResult:
    """Return the result of sending blocks of `blocks` bytes around the rings, `rounds` times.

    Each block is divided among the axes.
    """
    if not sizes:
        return RooflineResult()
    others = math.prod(sizes.values()) - 1
    return _count_on_links(sizes, rounds * (blocks // len(sizes)) * others, rounds * max(sizes.values()) * len(sizes))


def _psum(context: RooflineRuleContext, *operands: RooflineShape, axes: Any, **_: Any) -> RooflineResult:
    # The first round sums the parts, the second distributes the sums.
    sizes = _find_axis_sizes(context, axes)
    return _count_along_rings(sizes, sum([x.bytes for x in operands]) // math.prod(sizes.values()), 2)


def _pmax(context: RooflineRuleContext, *operands: RooflineShape, axes: Any, **_: Any) -> RooflineResult:
    # As in JAX, one element of each operand counts.
    return _count_along_rings(_find_axis_sizes(context, axes), sum([x.dtype.itemsize for x in operands]))


def _all_gather(context: RooflineRuleContext, *operands: RooflineShape, axis_name: Any, **_: Any) -> RooflineResult:
    return _count_along_rings(_find_axis_sizes(context, axis_name), sum([x.bytes for x in operands]))


def _reduce_scatter(context: RooflineRuleContext, *operands: RooflineShape, axis_name: Any, **_: Any) -> RooflineResult:
    sizes = _find_axis_sizes(context, axis_name)
    return _count_along_rings(sizes, sum([x.bytes for x in operands]) // math.prod(sizes.values()))


def _all_to_all(context: RooflineRuleContext, *operands: RooflineShape, axis_name: Any, **_: Any) -> RooflineResult:
    sizes = _find_axis_sizes(context, axis_name)
    if math.prod(sizes.values()) == 1:
        return _count_on_links(sizes, 0, 0)
    # On average a block travels a quarter of the longest ring. Two devices have one link for both directions.
    quarters = max(sizes.values()) * (2 if 2 in sizes.values() else 1)
    sent = sum([x.bytes for x in operands]) * quarters // 4
    return _count_on_links(sizes, sent, sum([n // 2 for n in sizes.values()]))


def _ppermute(
    context: RooflineRuleContext, *operands: RooflineShape, axis_name: Any, perm: Any, **_: Any
) -> RooflineResult:
    sizes = _find_axis_sizes(context, axis_name)
    if not sizes:
        return RooflineResult()
    routes = [list(_find_route(tuple(sizes.values()), source, target)) for source, target in perm]
    load = Counter([link for route in routes for link in route])
    busiest = max(load.values(), default=0)
    return _count_on_links(sizes, busiest * sum([x.bytes for x in operands]), max(map(len, routes), default=0))


def _find_route(sizes: Sequence[int], source: int, target: int) -> Iterator[Any]:
    """Yield the links between two devices of a torus, the shorter way around each axis.

    As in JAX, the links of each axis are at the source's position along the other axes.
    """
    start, end = _find_coordinates(sizes, source), _find_coordinates(sizes, target)
    for axis, size in enumerate(sizes):
        ahead = (end[axis] - start[axis]) % size
        step = 1 if 2 * ahead <= size else -1
        others = tuple(start[:axis] + start[axis + 1 :])
        here = start[axis]
        while here != end[axis]:
            after = (here + step) % size
            # Both directions are the same link.
            yield axis, others, frozenset((here, after))
            here = after


def _find_coordinates(sizes: Sequence[int], index: int) -> list[int]:
    coordinates = []
    for size in reversed(sizes):
        index, coordinate = divmod(index, size)
        coordinates.append(coordinate)
    return coordinates[::-1]


_ELEMENTWISE = (
    elementwise.abs, trigonometry.acos, elementwise.add, comparisons.bitwise_and, trigonometry.asin,
    trigonometry.atan, special.bessel_i0e, special.bessel_i1e, elementwise.cbrt, elementwise.ceil, complex_numbers.conj,
    trigonometry.cos, trigonometry.cosh, special.digamma, elementwise.div, comparisons.eq, special.erf, special.erf_inv,
    special.erfc, elementwise.exp, elementwise.expm1, elementwise.floor, comparisons.ge, comparisons.gt,
    complex_numbers.imag, elementwise.integer_pow, elementwise.is_finite, comparisons.le, special.lgamma,
    elementwise.log, elementwise.log1p, elementwise.logistic, comparisons.lt, elementwise.max, elementwise.min, mul,
    comparisons.ne, neg, comparisons.bitwise_not, comparisons.bitwise_or, complex_numbers.real, elementwise.rem,
    elementwise.round, elementwise.rsqrt, elementwise.sign, trigonometry.sin, trigonometry.sinh, elementwise.sqrt,
    elementwise.square, elementwise.sub, trigonometry.tan, comparisons.bitwise_xor,
)

RULES: dict[Primitive, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **{p: functools.partial(_count_cumulative, flops=1) for p in (cummax, cummin, cumprod, cumsum)},
    cumlogsumexp: functools.partial(_count_cumulative, flops=2),
    **dict.fromkeys((scatter, scatter_add, scatter_max, scatter_min, scatter_mul, scatter_sub), _scatter),
    **dict.fromkeys((psum, psum_invariant, unreduced_psum), _psum),
    **dict.fromkeys((pmax, pmin), _pmax),
    **dict.fromkeys((all_gather_p, all_gather_invariant_p, all_gather_reduced_p), _all_gather),
    all_to_all_p: _all_to_all, conv_general_dilated: _convolution, dot_general: _dot_general, gather: _gather,
    ppermute_p: _ppermute, reduce_scatter_p: _reduce_scatter, unreduced_reduce_scatter_p: _reduce_scatter,
    reduce_sum: _reduce_sum, select_n: _select,
}
