"""Rules for the Taylor series of operations whose jvp rule is not enough.

Operands and results are `Series`. ``TERMS``: ``rule(n, operands, results, **parameters)`` returns term n > 0 of the
result, a list for an operation with a list of results; the results have their terms before n. ``WHOLE``:
``rule(trace, order, operands, **parameters)`` returns the values of all results and their terms from 1 to `order`.
``INLINE``: operations that become a call of their function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.algebra.families import add_any, mul
from xtrace._src.algebra.resharding import reshard_p
from xtrace._src.algebra.varying import CASTS, psum_invariant, pvary
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    broadcast_like,
    convert_element_type,
    reduce_sum,
    reshape,
    transpose,
    zeros,
)
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tables import memoize, memoize_by_owner
from xtrace._src.core.tangents import is_differentiable, tangent_aval
from xtrace._src.jet.series import (
    Patterns,
    Series,
    fill_terms,
    find_patterns,
    flatten_terms,
    get_value,
    unflatten_terms,
)
from xtrace._src.ops.arrays.concatenation import concatenate, split, stack, tile, unstack
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from xtrace._src.ops.arrays.gather_scatter import gather, scatter_add, scatter_sub
from xtrace._src.ops.arrays.index_vectors import GatherScatterMode
from xtrace._src.ops.arrays.shape import copy, rev, squeeze
from xtrace._src.ops.arrays.slicing import pad, slice
from xtrace._src.ops.calls.calls import bind_jit, jit_call
from xtrace._src.ops.collectives.collectives import psum, scale
from xtrace._src.ops.collectives.exchanges import (
    all_gather_p,
    all_gather_reduced_p,
    all_to_all_p,
    ppermute_p,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
)
from xtrace._src.ops.collectives.shard_map import bind_shard_map, manual_axes_in_scope, shard_map_p
from xtrace._src.ops.contractions.contraction import dot_general
from xtrace._src.ops.contractions.convolution import conv_general_dilated
from xtrace._src.ops.contractions.ragged import ragged_dot_general
from xtrace._src.ops.control_flow.bodies import open_jaxpr
from xtrace._src.ops.control_flow.cond import bind_cond, cond_p
from xtrace._src.ops.control_flow.scan import bind_scan, scan_p
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.control_flow.while_loop import WhileLoop, bind_while, while_p
from xtrace._src.ops.custom_rules.custom_vjp import custom_vjp_call
from xtrace._src.ops.elementwise import complex_numbers, elementwise
from xtrace._src.ops.elementwise.reinterpretation import reduce_precision
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.fft import fft
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace._src.ops.reductions.windows import reduce_window_sum
from xtrace._src.ops.remat.rematerialization import bind_remat, remat_call
from xtrace._src.ops.shardings.sharding_constraints import sharding_constraint_p
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import find_fixpoint, stage_to_jaxpr

if TYPE_CHECKING:
    from xtrace._src.jet.trace import JetTrace

_Terms = tuple[list[Any], list[list[Any]]]


# Terms one by one


def _linear(
    primitive: Primitive, n: int, operands: Sequence[Series], results: Sequence[Series], **parameters: Any
) -> Any:
    """Apply an operation, linear in all its floating and complex operands jointly, to terms."""
    terms = [s.term(n) for s in operands]
    if all(t is None for t in terms):
        return None
    moved = [
        s.term(0) if not is_differentiable(s.aval) else zeros(tangent_aval(s.aval)) if t is None else t
        for s, t in zip(operands, terms, strict=True)
    ]
    return primitive.bind_positional(moved, tuple(parameters.values()))


def _signed_sum(primitive: Any, n: int, operands: Sequence[Series], results: Sequence[Series]) -> Any:
    """Add or subtract the terms of the operands, each with the sign of its derivative."""
    total = None
    for s, sign in zip(operands, primitive.derivatives, strict=True):
        term = s.term(n)
        if term is not None:
            total = _add(total, term if sign > 0 else elementwise.neg(term))
    return None if total is None else broadcast_like(total, get_value(results[0]))


def _gather(n: int, operands: Sequence[Series], results: Sequence[Series], **parameters: Any) -> Any:
    term = operands[0].term(n)
    if term is None:
        return None
    if parameters["mode"] is GatherScatterMode.FILL_OR_DROP:
        # The fill value does not depend on the operand.
        parameters["fill_value"] = 0
    return gather.bind(term, get_value(operands[1]), **parameters)


def _add(total: Any, term: Any) -> Any:
    return term if total is None else add_any.bind_positional((total, term))


def _convolve(n: int, x: Series, y: Series, product: Callable[[Any, Any], Any], start: int = 0) -> Any:
    """Return term n of a product by Leibniz' rule, without the terms of `x` before `start`."""
    total = None
    for k in range(start, n + 1):
        total = _add_product(total, x.term(k), y.term(n - k), product, math.comb(n, k))
    return total


def _add_product(total: Any, x: Any, y: Any, product: Callable[[Any, Any], Any], weight: int) -> Any:
    if x is None or y is None:
        return total
    term = product(x, y)
    return _add(total, term if weight == 1 else scale(term, weight))


def _bilinear(
    primitive: Primitive, n: int, operands: Sequence[Series], results: Sequence[Series], **parameters: Any
) -> Any:
    values = tuple(parameters.values())
    x, y, *others = operands
    rest = [get_value(s) for s in others]
    return _convolve(n, x, y, lambda a, b: primitive.bind_positional((a, b, *rest), values))


def _mul(n: int, operands: Sequence[Series], results: Sequence[Series], **parameters: Any) -> Any:
    x, y = operands
    if x is not y:
        return _bilinear(mul, n, operands, results, **parameters)
    # The products with k and n - k are equal.
    total = None
    for k in range(n // 2 + 1):
        weight = math.comb(n, k) * (1 if 2 * k == n else 2)
        total = _add_product(total, x.term(k), x.term(n - k), lambda a, b: mul.bind(a, b, **parameters), weight)
    return total


def _div(n: int, operands: Sequence[Series], results: Sequence[Series]) -> Any:
    # x = y z, so x_n is y_0 z_n plus the products without y_0.
    (x, y), (z,) = operands, results
    numerator, rest = x.term(n), _convolve(n, y, z, mul, 1)
    if rest is not None:
        rest = elementwise.neg(rest)
        numerator = rest if numerator is None else elementwise.add(numerator, rest)
    return None if numerator is None else broadcast_like(elementwise.div(numerator, get_value(y)), get_value(z))


_LINEAR = (
    all_gather_p, all_gather_reduced_p, all_to_all_p, broadcast_in_dim,
    complex_numbers.complex, complex_numbers.conj, complex_numbers.imag,
    complex_numbers.real, concatenate, convert_element_type, copy, cumsum, dynamic_slice, dynamic_update_slice, fft,
    pad, ppermute_p, psum, psum_invariant, pvary, reduce_precision, reduce_scatter_p, reduce_sum, reduce_window_sum,
    reshape, reshard_p, rev, scatter_add, scatter_sub, select_n, sharding_constraint_p, slice, split, squeeze, stack,
    tile, transpose, unreduced_reduce_scatter_p, unstack, *CASTS.values(),
)

TERMS: dict[Primitive, Callable[..., Any]] = {
    **{p: functools.partial(_linear, p) for p in _LINEAR},
    **{p: functools.partial(_signed_sum, p) for p in (elementwise.add, add_any, elementwise.neg, elementwise.sub)},
    **{p: functools.partial(_bilinear, p) for p in (dot_general, conv_general_dilated, ragged_dot_general)},
    elementwise.div: _div, gather: _gather, mul: _mul,
}


# Operations with jaxprs


def _read_operands(order: int, operands: Sequence[Series]) -> tuple[list[Any], list[list[Any]], Patterns]:
    """Return the values of operands, their terms, and the patterns of the terms."""
    terms = [s.terms(order) if is_differentiable(s.aval) else [None] * order for s in operands]
    return list(map(get_value, operands)), terms, find_patterns(terms)


def _jit(
    trace: JetTrace, order: int, operands: Sequence[Series], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any,
    inline: bool, **_: object,
) -> _Terms:
    values, terms, patterns = _read_operands(order, operands)
    closed, out_patterns = trace.jaxpr(jaxpr, order, patterns)
    return unflatten_terms(bind_jit(closed, flatten_terms(values, terms), name, compiler_options, inline), out_patterns)


def _remat(
    trace: JetTrace, order: int, operands: Sequence[Series], *, jaxpr: ClosedJaxpr, prevent_cse: Any,
    differentiated: bool, policy: Any,
) -> _Terms:
    values, terms, patterns = _read_operands(order, operands)
    closed, out_patterns = trace.jaxpr(jaxpr, order, patterns)
    if not isinstance(prevent_cse, bool):
        prevent_cse = tuple(_repeat(prevent_cse, patterns))
    outputs = bind_remat(closed, flatten_terms(values, terms), prevent_cse, differentiated, policy)
    return unflatten_terms(outputs, out_patterns)


def _repeat(details: Sequence[Any], patterns: Patterns) -> list[Any]:
    """Return a list with the detail of each value for the value and each of its terms."""
    return [d for d, pattern in zip(details, patterns, strict=True) for _ in range(1 + sum(pattern))]


def _shard_map(
    trace: JetTrace, order: int, operands: Sequence[Series], *, check_vma: bool, in_specs: Any, jaxpr: ClosedJaxpr,
    mesh: Any, newly_manual_axes: frozenset[Any], out_specs: Any,
) -> _Terms:
    values, terms, patterns = _read_operands(order, operands)
    details = mesh, newly_manual_axes, check_vma
    with manual_axes_in_scope(*details):
        closed, out_patterns = trace.jaxpr(jaxpr, order, patterns)
    inputs, outputs = _repeat(in_specs, patterns), _repeat(out_specs, out_patterns)
    results = bind_shard_map(closed, flatten_terms(values, terms), inputs, outputs, *details)
    return unflatten_terms(results, out_patterns)


def _merge_patterns(patterns: Sequence[Patterns]) -> Patterns:
    """Return the union of several patterns."""
    return tuple([tuple(map(any, zip(*own, strict=True))) for own in zip(*patterns, strict=True)])


@memoize(1024)
def _expand_branches(
    jaxpr_of: Callable[..., Any], branches: tuple[ClosedJaxpr, ...], order: int, patterns: Patterns
) -> tuple[list[ClosedJaxpr], Patterns]:
    out_patterns = _merge_patterns([jaxpr_of(b, order, patterns)[1] for b in branches])
    return [jaxpr_of(b, order, patterns, out_patterns)[0] for b in branches], out_patterns


def _cond(
    trace: JetTrace, order: int, operands: Sequence[Series], *, branches: tuple[ClosedJaxpr, ...],
    branches_platforms: Any,
) -> _Terms:
    (index, *values), (_, *terms), (_, *patterns) = _read_operands(order, operands)
    closed, out_patterns = _expand_branches(type(trace).jaxpr, branches, order, tuple(patterns))
    return unflatten_terms(bind_cond(closed, index, flatten_terms(values, terms), branches_platforms), out_patterns)


def _find_carry_patterns(
    jaxpr_of: Callable[..., Any], body: ClosedJaxpr, order: int, before: Patterns, carry: Patterns, after: Patterns
) -> tuple[ClosedJaxpr, Patterns, Patterns]:
    """Return a loop's body of series, and the patterns of the carry and of the other results.

    The carry has the nonzero terms of its initial value and those that a step adds.
    """
    count = len(carry)
    others = tuple([(False,) * order] * (len(body.out_avals) - count))

    def expand_step(carry: Patterns) -> tuple[tuple[ClosedJaxpr, Patterns], Patterns]:
        closed, out_patterns = jaxpr_of(body, order, (*before, *carry, *after), (*carry, *others))
        return (closed, out_patterns[count:]), out_patterns[:count]

    (closed, rest), stable = find_fixpoint(expand_step, carry)
    return closed, stable, rest


def _scan(trace: JetTrace, order: int, operands: Sequence[Series], *, jaxpr: ClosedJaxpr, **details: Any) -> _Terms:
    loop = Loop(**details)
    values, terms, patterns = _read_operands(order, operands)
    before, carry, after = map(tuple, loop.split(patterns))
    body, carry, ys = _find_carry_patterns(trace.jaxpr, jaxpr, order, before, carry, after)
    opened, extra = open_jaxpr(body)
    groups = [list(map(list, zip(v, t, strict=True))) for v, t in zip(loop.split(values), loop.split(terms))]
    avals = loop.split(jaxpr.in_avals)[1]
    carry_terms = fill_terms(loop.split(terms)[1], carry, avals)
    groups[1] = list(map(list, zip(loop.split(values)[1], carry_terms, strict=True)))
    consts, started, xs = [flatten_terms([v for v, _ in g], [t for _, t in g]) for g in groups]
    new = loop._replace(num_consts=len(extra) + len(consts), num_carry=len(started))
    outputs = bind_scan(ClosedJaxpr(opened, []), new, [*extra, *consts, *started, *xs])
    return unflatten_terms(outputs, (*carry, *ys))


@memoize_by_owner
def _expand_predicate(cond: ClosedJaxpr, consts: int, patterns: Patterns, order: int, body: ClosedJaxpr) -> ClosedJaxpr:
    """Return a loop's predicate of a carry with its terms; the carry has the types of the body's results."""

    def holds(*values: Any) -> list[Any]:
        carry, _ = unflatten_terms(values[consts:], patterns)
        return evaluate(cond.jaxpr, cond.consts, [*values[:consts], *carry])

    return stage_to_jaxpr(holds, [*cond.in_avals[:consts], *body.out_avals], cond.jaxpr.debug_info)


def _while(trace: JetTrace, order: int, operands: Sequence[Series], **parameters: Any) -> _Terms:
    loop = WhileLoop(**parameters)
    (cond_consts, body_consts, carry), (_, body_terms, terms), (_, before, given) = map(
        loop.split, _read_operands(order, operands)
    )
    body, patterns, _ = _find_carry_patterns(trace.jaxpr, loop.body_jaxpr, order, tuple(before), tuple(given), ())
    predicate = _expand_predicate(loop.cond_jaxpr, len(cond_consts), patterns, order, body)
    consts = flatten_terms(body_consts, body_terms)
    started = flatten_terms(carry, fill_terms(terms, patterns, loop.body_jaxpr.in_avals[loop.body_nconsts :]))
    new = WhileLoop(len(cond_consts), predicate, len(consts), body)
    return unflatten_terms(bind_while(new, cond_consts, consts, started), patterns)


WHOLE: dict[Primitive, Callable[..., _Terms]] = {
    cond_p: _cond, jit_call: _jit, remat_call: _remat, scan_p: _scan, shard_map_p: _shard_map, while_p: _while,
}


# Operations that become a call of their function


def _custom_vjp(operands: Sequence[Any], *, call_jaxpr: Any, **_: Any) -> list[Any]:
    # The rule is for reverse mode only; the function gives the series.
    if isinstance(call_jaxpr, ClosedJaxpr):
        return evaluate(call_jaxpr.jaxpr, call_jaxpr.consts, operands)
    return list(call_jaxpr.function(*operands))


INLINE: dict[Primitive, Callable[..., list[Any]]] = {custom_vjp_call: _custom_vjp}


def has_series(primitive: Primitive) -> bool:
    """Return whether the operation has a rule here or a jvp rule."""
    return any(primitive in table for table in (TERMS, WHOLE, INLINE)) or primitive.jvp is not None
