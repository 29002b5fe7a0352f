"""The checks of each operation, and the rules that return errors from operations with jaxprs.

Every operation with a floating result is checked for NaN, unless it only moves elements or is in `NEVER_MAKES_NAN`.
`CHECKS` has the rules of the other checks, ``rule(checker, operands, **parameters)``; they call methods of `checker`.
An operation with one jaxpr is evaluated equation by equation, unless it has a rule in `CALLS`, which returns the
results, or is in `OPAQUE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.algebra.resharding import cast_to_auto
from xtrace._src.algebra.vector_space import convert_element_type, reshape
from xtrace._src.checkify.checks import check_p
from xtrace._src.checkify.errors import Site, Slot
from xtrace._src.checkify.leaves import NO_ERROR, NUMBER, any_flag, find_first, select_first_error
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Literal
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.ops.arrays.creation import broadcasted_iota, empty
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_index_in_dim, dynamic_slice, dynamic_update_slice
from xtrace._src.ops.arrays.gather_scatter import (
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from xtrace._src.ops.arrays.index_vectors import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    window_sizes,
)
from xtrace._src.ops.arrays.sorting import sort, top_k
from xtrace._src.ops.calls.call_primitives import call_p, closed_call_p
from xtrace._src.ops.calls.calls import bind_jit, close_jaxpr, constrain_row, evaluate_as_program, jit_call
from xtrace._src.ops.calls.composites import composite_p
from xtrace._src.ops.collectives.collectives import pmax, pmin
from xtrace._src.ops.collectives.exchanges import (
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced_p,
    all_to_all_p,
    ppermute_p,
)
from xtrace._src.ops.collectives.shard_map import (
    add_leading_dimensions,
    bind_shard_map,
    manual_axes_in_scope,
    shard_map_p,
)
from xtrace._src.ops.control_flow.bodies import open_jaxpr
from xtrace._src.ops.control_flow.cond import bind_cond, cond_p
from xtrace._src.ops.control_flow.scan import bind_scan, scan_p
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.control_flow.while_loop import WhileLoop, bind_while, while_p
from xtrace._src.ops.custom_rules.calls import drop_closed_over
from xtrace._src.ops.custom_rules.custom_jvp import custom_jvp_call
from xtrace._src.ops.custom_rules.custom_vjp import custom_lin, custom_vjp_call
from xtrace._src.ops.custom_rules.custom_vmap import custom_vmap_call
from xtrace._src.ops.custom_rules.linear_call import linear_call
from xtrace._src.ops.custom_rules.remat_opt import remat_opt
from xtrace._src.ops.custom_rules.rule import Rule
from xtrace._src.ops.elementwise import complex_numbers, elementwise, selection
from xtrace._src.ops.elementwise.comparisons import eq, ne
from xtrace._src.ops.elementwise.reinterpretation import bitcast_convert_type, optimization_barrier, reduce_precision
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient_of_one
from xtrace._src.ops.reductions.approx_top_k import approx_top_k
from xtrace._src.ops.reductions.reductions import reduce_max, reduce_min
from xtrace._src.ops.reductions.windows import reduce_window_max, reduce_window_min, select_and_gather_add
from xtrace._src.ops.remat.checkpoint_name import checkpoint_name
from xtrace._src.ops.remat.rematerialization import bind_remat, remat_call
from xtrace._src.ops.shardings.custom_partitioning import custom_partitioning_p
from xtrace._src.ops.shardings.device_put import device_put_p
from xtrace._src.ops.solvers import linear_solve
from xtrace._src.ops.values import stage
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs, stage_to_jaxpr

if TYPE_CHECKING:
    from xtrace._src.checkify.trace import CheckTrace


# A NaN in a result of these comes from a NaN in an operand. `custom_lin` is only ever transposed.
NEVER_MAKES_NAN = frozenset((
    elementwise.abs, bitcast_convert_type, elementwise.ceil, selection.clamp, complex_numbers.complex,
    complex_numbers.conj, elementwise.floor, complex_numbers.imag, elementwise.max, elementwise.min, elementwise.neg,
    elementwise.nextafter, optimization_barrier, complex_numbers.real, reduce_precision,
    elementwise.round, elementwise.sign, elementwise.square,
    all_gather_invariant_p, all_gather_p, all_gather_reduced_p, all_to_all_p,
    approx_top_k, broadcasted_iota, checkpoint_name,
    convert_element_type, custom_lin, device_put_p, empty, pmax, pmin, ppermute_p, reduce_max, reduce_min,
    reduce_window_max, reduce_window_min, scatter_max, scatter_min, select_and_gather_add,
    sort, stage, stop_gradient_of_one, top_k,
))


def _check_divisor(checker: CheckTrace, operands: Sequence[Any]) -> None:
    checker.check_division(operands[1])


def _check_integer_divisor(checker: CheckTrace, operands: Sequence[Any]) -> None:
    # The remainder of floats by zero is NaN.
    if dtypes.is_integer(aval_of(operands[1]).dtype):
        checker.check_division(operands[1])


def _check_start_indices(checker: CheckTrace, whole: Array, sizes: Sequence[int], indices: Sequence[Any]) -> None:
    shape = aval_of(whole).shape
    for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
        checker.check_bounds(index, shape[axis] - size, axis, shape)


def _dynamic_slice(checker: CheckTrace, operands: Sequence[Any], *, slice_sizes: tuple[int, ...]) -> None:
    _check_start_indices(checker, operands[0], slice_sizes, operands[1:])


def _dynamic_update_slice(checker: CheckTrace, operands: Sequence[Any]) -> None:
    _check_start_indices(checker, operands[0], aval_of(operands[1]).shape, operands[2:])


def _check_index_vectors(
    checker: CheckTrace, shape: Sequence[int], window: Sequence[int], mapped: Sequence[int], indices: Array
) -> None:
    for place, axis in enumerate(mapped):
        checker.check_bounds(indices, shape[axis] - window[axis], axis, shape, place)


def _gather(
    checker: CheckTrace, operands: Sequence[Any], *, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...], mode: GatherScatterMode, **_: object,
) -> None:
    # With CLIP the user wants clipping. A mapped dynamic_slice also has CLIP, for whole windows, and is checked.
    if mode is not GatherScatterMode.CLIP or not dimension_numbers.collapsed_slice_dims:
        mapped = dimension_numbers.start_index_map
        _check_index_vectors(checker, aval_of(operands[0]).shape, slice_sizes, mapped, operands[1])


def _scatter(
    checker: CheckTrace, operands: Sequence[Any], *, dimension_numbers: ScatterDimensionNumbers, **_: object
) -> None:
    shape = aval_of(operands[0]).shape
    window = window_sizes(shape, aval_of(operands[2]), dimension_numbers)
    _check_index_vectors(checker, shape, window, dimension_numbers.scatter_dims_to_operand_dims, operands[1])


CHECKS: dict[Primitive, Callable[..., None]] = {
    elementwise.div: _check_divisor, elementwise.rem: _check_integer_divisor, dynamic_slice: _dynamic_slice,
    dynamic_update_slice: _dynamic_update_slice, gather: _gather,
    **dict.fromkeys((scatter, scatter_add, scatter_sub, scatter_mul, scatter_min, scatter_max), _scatter),
}


# Operations with jaxprs, and checks


def _check(
    checker: CheckTrace, operands: Sequence[Any], *, sites: tuple[Site, ...], slots: tuple[Slot, ...], debug: bool
) -> list[Any]:
    code, *payload = operands
    wanted = [i + 1 for i, site in enumerate(sites) if site.category in checker.enabled]
    if not wanted:
        return []
    if aval_of(code).shape:
        if not aval_of(code).size:
            return []
        code, *payload = _take_first_mapped_error(operands)
    if len(wanted) < len(sites):
        code = select_n(any_flag([eq(code, Literal(i, NUMBER)) for i in wanted]), NO_ERROR, code)
    checker.add_error([code, *payload], sites, slots)
    return []


def _take_first_mapped_error(leaves: Sequence[Any]) -> list[Any]:
    """Return the leaves of the first error of a mapped function; the first leaf has the mapped axes only."""
    shape = aval_of(leaves[0]).shape
    position = find_first(ne(leaves[0], NO_ERROR))
    return [
        dynamic_index_in_dim(reshape(x, (math.prod(shape), *aval_of(x).shape[len(shape) :])), position, 0, False)
        for x in leaves
    ]


def _jit(
    checker: CheckTrace, operands: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: object,
    in_shardings: tuple[Any, ...], out_shardings: tuple[Any, ...], **_: object,
) -> list[Any]:
    inner = checker.add_checks(jaxpr)
    operands = constrain_row(operands, in_shardings)
    outputs = bind_jit(inner.jaxpr, operands, name, compiler_options)
    return constrain_row(checker.take_error(inner, outputs), out_shardings)


def _remat(
    checker: CheckTrace, operands: Sequence[Any], *, jaxpr: ClosedJaxpr, prevent_cse: Any, differentiated: bool,
    policy: Any,
) -> list[Any]:
    inner = checker.add_checks(jaxpr)
    outputs = bind_remat(inner.jaxpr, operands, prevent_cse, differentiated, policy)
    return checker.take_error(inner, outputs)


def _cond(
    checker: CheckTrace, operands: Sequence[Any], *, branches: tuple[ClosedJaxpr, ...], branches_platforms: object
) -> list[Any]:
    checked = checker.add_checks_to_all(branches)
    outputs = bind_cond([c.jaxpr for c in checked], operands[0], operands[1:], branches_platforms)
    return checker.take_error(checked[0], outputs)


def _shard_map(
    checker: CheckTrace, operands: Sequence[Any], *, jaxpr: ClosedJaxpr, mesh: BaseMesh,
    newly_manual_axes: frozenset[Any], check_vma: bool, in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
) -> list[Any]:
    # Each device has an error; the errors are concatenated along a new first dimension.
    with manual_axes_in_scope(mesh, newly_manual_axes, check_vma):
        inner = checker.add_checks(jaxpr)
        body = add_leading_dimensions(inner.jaxpr, inner.width)
    axes = PartitionSpec(tuple([a for a in mesh.axis_names if a in newly_manual_axes]))
    specs = [*[axes] * inner.width, *out_specs]
    outputs = bind_shard_map(body, operands, in_specs, specs, mesh, newly_manual_axes, check_vma)
    error = _take_first_mapped_error([cast_to_auto(x) for x in outputs[: inner.width]]) if inner.width else []
    return checker.take_error(inner, [*error, *outputs[inner.width :]])


@memoize_by_owner
def _scan_body(closed: ClosedJaxpr, loop: Loop, count: int) -> tuple[ClosedJaxpr, list[Any]]:
    """Return the body of a loop with an error at the front of its carry, and its constants, the first operands.

    closed: a body whose results begin with the `count` leaves of an error.
    """
    consts, carry, xs = loop.split(closed.in_avals)

    def step(*values: object) -> list[Any]:
        error = values[len(consts) : len(consts) + count]
        results = evaluate(closed.jaxpr, closed.consts, [*values[: len(consts)], *values[len(consts) + count :]])
        return [*(select_first_error(error, results[:count]) if count else ()), *results[count:]]

    whole = stage_to_jaxpr(step, [*consts, *closed.out_avals[:count], *carry, *xs], closed.jaxpr.debug_info)
    jaxpr, extra = open_jaxpr(whole)
    return ClosedJaxpr(jaxpr, []), extra


def _scan(checker: CheckTrace, operands: Sequence[Any], *, jaxpr: ClosedJaxpr, **details: Any) -> list[Any]:
    loop, inner = Loop(**details), checker.add_checks(jaxpr)
    body, extra = _scan_body(inner.jaxpr, loop, inner.width)
    consts, carry, xs = loop.split(operands)
    new = loop._replace(num_consts=len(extra) + len(consts), num_carry=inner.width + len(carry))
    outputs = bind_scan(body, new, [*extra, *consts, *inner.make_no_error(), *carry, *xs])
    return checker.take_error(inner, outputs)


@memoize_by_owner
def _while_jaxprs(
    body: ClosedJaxpr, cond: ClosedJaxpr, consts: int, own: int, count: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Return predicate and body of a loop whose carry begins with the predicate's result and the error.

    body, cond: jaxprs with `consts` and `own` constants, whose results begin with the `count` leaves of an error.
    """
    before = own + consts

    def step(*values: object) -> list[Any]:
        error, carry = values[before + 1 : before + 1 + count], values[before + 1 + count :]
        after = evaluate(body.jaxpr, body.consts, [*values[own:before], *carry])
        continues = evaluate(cond.jaxpr, cond.consts, [*values[:own], *after[count:]])
        return [continues[count], *select_first_error(error, after[:count], continues[:count]), *after[count:]]

    carried = [cond.out_avals[count], *body.out_avals[:count], *cond.in_avals[own:]]
    constants = [*cond.in_avals[:own], *body.in_avals[:consts]]
    return (
        stage_to_jaxpr(lambda continues, *_: [continues], carried, cond.jaxpr.debug_info),
        stage_to_jaxpr(step, [*constants, *carried], body.jaxpr.debug_info),
    )


def _while(checker: CheckTrace, operands: Sequence[Any], **parameters: Any) -> list[Any]:
    loop = WhileLoop(**parameters)
    cond, body = checker.add_checks_to_all([loop.cond_jaxpr, loop.body_jaxpr])
    cond_consts, body_consts, carry = loop.split(operands)
    count = cond.width
    if not count:
        return bind_while(loop._replace(cond_jaxpr=cond.jaxpr, body_jaxpr=body.jaxpr), cond_consts, body_consts, carry)
    if loop.predicate.shape:
        raise ValueError(
            "checkify of a vmap of while_loop: the body also computes on examples that have ended, and would report "
            "errors that the program does not have. Map the checked function instead: write "
            "xtrace.vmap(checkify.checkify(f)) for checkify.checkify(xtrace.vmap(f))"
        )
    continues = evaluate_as_program(cond.jaxpr, [*cond_consts, *carry], "while_cond")
    new_cond, new_body = _while_jaxprs(body.jaxpr, cond.jaxpr, loop.body_nconsts, loop.cond_nconsts, count)
    new = WhileLoop(0, new_cond, loop.cond_nconsts + loop.body_nconsts, new_body)
    outputs = bind_while(new, [], [*cond_consts, *body_consts], [continues[count], *continues[:count], *carry])
    return checker.take_error(cond, outputs[1:])


class _CheckedCall:
    """A function with custom rules that returns the leaves of an error before its results.

    call: the function as the parameter of an operation. checked: the slots of the error, known after a call. consts:
    constants at the front of the operands. skipped: the number of operands that the user's rules do not take.
    """

    def __init__(self, checker: CheckTrace, name: str, call_jaxpr: ClosedJaxpr, num_consts: int) -> None:
        self.name, self.consts = name, []
        if isinstance(call_jaxpr, ClosedJaxpr):
            self.checked = checker.add_checks(call_jaxpr)
            self.call, self.consts = move_constants_to_inputs(self.checked.jaxpr), self.checked.jaxpr.consts
        else:
            self.call = call_jaxpr.batched(lambda *values: self._run(checker, call_jaxpr, values))
        self.skipped = len(self.consts) + num_consts

    def _run(self, checker: CheckTrace, call: Any, values: Sequence[Any]) -> list[Any]:
        self.checked, results = checker.call_checked(call.function, values)
        return results

    def error(self, values: Sequence[Any]) -> list[Any]:
        """Return the leaves of the function's error."""
        if isinstance(self.call, ClosedJaxpr):
            results = evaluate(self.call.jaxpr, (), values)
        else:
            results = self.call.function(*values)
        return results[: self.checked.width]

    def jvp(self, rule: Rule) -> Rule:
        """Return the jvp rule of the function; `rule` is the jvp rule without errors."""

        def jvp_with_error(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            results, moved = rule.function(*drop_closed_over(self.name, primals, tangents, self.skipped))
            error = self.error(primals)
            return [*error, *results], [*[None] * len(error), *moved]

        return rule.batched(jvp_with_error)

    def fwd(self, rule: Rule) -> Rule:
        """Return the forward rule of the function; `rule` is the forward rule without errors."""

        def fwd_with_error(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
            values, _ = drop_closed_over(self.name, primals, [n or None for n in nonzero], self.skipped)
            results, residuals, backward = rule.function(values, nonzero[self.skipped :])
            error = self.error(primals)

            def backward_without_error(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
                return [None] * self.skipped + list(backward.function(residuals, cotangents[len(error) :]))

            return [*error, *results], residuals, backward.batched(backward_without_error)

        return rule.batched(fwd_with_error)


def _custom_jvp(
    checker: CheckTrace, operands: Sequence[Any], *, name: str, call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int,
    symbolic_zeros: bool,
) -> list[Any]:
    checked_call = _CheckedCall(checker, name, call_jaxpr, num_consts)
    parameters = (name, checked_call.call, checked_call.jvp(jvp), 0, symbolic_zeros)
    outputs = custom_jvp_call.bind_positional([*checked_call.consts, *operands], parameters)
    return checker.take_error(checked_call.checked, outputs)


def _custom_vjp(
    checker: CheckTrace, operands: Sequence[Any], *, name: str, call_jaxpr: ClosedJaxpr, fwd: Rule, bwd: str,
    num_consts: int, symbolic_zeros: bool,
) -> list[Any]:
    checked_call = _CheckedCall(checker, name, call_jaxpr, num_consts)
    parameters = (name, checked_call.call, checked_call.fwd(fwd), bwd, 0, symbolic_zeros)
    outputs = custom_vjp_call.bind_positional([*checked_call.consts, *operands], parameters)
    return checker.take_error(checked_call.checked, outputs)


def _custom_vmap(
    checker: CheckTrace, operands: Sequence[Any], *, name: str, call: ClosedJaxpr, rule: Rule
) -> list[Any]:
    # The rule has no place for errors: the function is one operation, or loses its rule if it has checks.
    if call.effects:
        return checker.evaluate_inline(call, operands)
    results = custom_vmap_call.bind_positional(operands, (name, call, rule))
    checker.check_nan(name, results)
    return results


def _call(checker: CheckTrace, operands: Sequence[Any], *, call_jaxpr: Any) -> list[Any]:
    return checker.evaluate_inline(close_jaxpr(call_jaxpr), operands)


def _remat_opt(checker: CheckTrace, operands: Sequence[Any], *, fwd_jaxpr: ClosedJaxpr, **_: object) -> list[Any]:
    return checker.evaluate_inline(fwd_jaxpr, operands)


CALLS: dict[Primitive, Callable[..., list[Any]]] = {
    call_p: _call, check_p: _check, closed_call_p: _call, cond_p: _cond, custom_jvp_call: _custom_jvp,
    custom_vjp_call: _custom_vjp, custom_vmap_call: _custom_vmap, jit_call: _jit, remat_call: _remat,
    remat_opt: _remat_opt, scan_p: _scan, shard_map_p: _shard_map, while_p: _while,
}

# The jaxprs of these are not checked, only their results.
OPAQUE = frozenset((composite_p, custom_partitioning_p, linear_call, linear_solve))
