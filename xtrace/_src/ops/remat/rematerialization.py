"""Rematerialization: calls of functions with intermediate values that are recomputed for the derivative."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.positions import Position, resolve
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, find_jaxprs
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.settings import config
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.calls.calls import evaluate_as_program, jit_call, make_call_rules
from xtrace._src.ops.custom_rules.custom_jvp import custom_jvp_call
from xtrace._src.ops.custom_rules.custom_vjp import custom_vjp_call
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.ops.remat.checkpoint_name import checkpoint_name
from xtrace._src.ops.remat.policy_splits import inline_call_equations, split_by_policy
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.dead_code import eliminate_dead_code
from xtrace._src.transforms.discharge import discharge_call
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import (
    PartitionedJaxpr,
    analyze_unknowns,
    batch_jaxpr,
    filter_by_mask,
    jvp_jaxpr,
    linearize_jaxpr,
    merge_by_mask,
    move_constants_to_inputs,
    partial_evaluate_jaxpr,
    scatter_by_mask,
    stage_to_jaxpr,
    transpose_jaxpr,
)
from xtrace._src.transforms.lower import emit_jaxpr
from xtrace._src.transforms.scopes import program_scopes
from xtrace._src.xla.source_locations import name_file

_logger = logging.getLogger("xtrace")

# Whether operands are hidden from common subexpression elimination: one flag for all operands, or one for each.
_Barrier = bool | tuple[bool, ...]


def _emit(
    builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, prevent_cse: _Barrier, differentiated: bool, **_: Any
) -> list[Value]:
    operands = list(values)
    hidden = [i for i, flag in enumerate(_flags(prevent_cse, len(operands))) if flag] if differentiated else []
    if hidden:
        names, types = ", ".join(operands[i].name for i in hidden), ", ".join(operands[i].type for i in hidden)
        text = f"stablehlo.optimization_barrier {names} : {types}"
        for i, value in zip(hidden, builder.line_of_many(text, [operands[i].aval for i in hidden]), strict=True):
            operands[i] = value
    scope = builder.scope
    builder.scope = builder.path("checkpoint")
    outputs = emit_jaxpr(builder, jaxpr.jaxpr, operands)
    builder.scope = scope
    return outputs


def _flags(prevent_cse: _Barrier, count: int) -> tuple[bool, ...]:
    return (prevent_cse,) * count if isinstance(prevent_cse, bool) else prevent_cse


def _select_flags(prevent_cse: _Barrier, count: int, kept: Sequence[int], added: int) -> _Barrier:
    """Return the flags of the operands at the positions `kept`, followed by flags for `added` new operands."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    return (*[prevent_cse[i] for i in kept], *(True,) * added)


def bind_remat(
    closed: ClosedJaxpr, operands: Sequence[Any], prevent_cse: _Barrier, differentiated: bool, policy: object
) -> list[Any]:
    """Bind a call of `closed`; its constants become operands."""
    if closed.consts:
        if not isinstance(prevent_cse, bool):
            prevent_cse = (*(True,) * len(closed.consts), *prevent_cse)
        closed, operands = move_constants_to_inputs(closed), [*closed.consts, *operands]
    return bind_with_references(remat_call, operands, (closed, prevent_cse, differentiated, policy), closed.effects)


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, jaxpr: ClosedJaxpr, prevent_cse: _Barrier,
    differentiated: bool, policy: object,
) -> tuple[list[Any], list[Any]]:
    return discharge_call(
        lambda closed, values: bind_remat(closed, values, prevent_cse, differentiated, policy), keys, operands, jaxpr
    )


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, prevent_cse: _Barrier,
    differentiated: bool, policy: Any,
) -> tuple[list[Any], list[Any]]:
    given = tuple([t is not None for t in tangents])
    both, nonzero = jvp_jaxpr(jaxpr, given)
    flags = _select_flags(prevent_cse, len(primals), range(len(primals)), sum(given))
    results = bind_remat(both, [*primals, *filter_by_mask(tangents, given)], flags, differentiated, policy)
    count = len(nonzero)
    return results[:count], scatter_by_mask(results[count:], nonzero)


class _Split(NamedTuple):
    """A function split into a known part and a linear (or unknown) part that recomputes its residuals.

    known: maps the inputs to `results_known` results and the saved values. linear: maps the inputs at the positions
    `inputs`, the saved values and the nonzero tangents (or unknown inputs) to the results in the mask `nonzero`.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    nonzero: tuple[bool, ...]
    inputs: tuple[int, ...]
    results_known: int

    def apply(
        self, operands: Sequence[Any], moved: Sequence[Any], prevent_cse: _Barrier, policy: object
    ) -> tuple[list[Any], list[Any]]:
        """Evaluate the known part, bind the linear part, and return the results of both."""
        results = evaluate_as_program(self.known, operands, "checkpoint")
        if not any(self.nonzero):
            return results[: self.results_known], []
        rest = [*results[self.results_known :], *moved]
        flags = _select_flags(prevent_cse, len(operands), self.inputs, len(rest))
        with program_scopes(below=True):
            again = bind_remat(self.linear, [*[operands[i] for i in self.inputs], *rest], flags, True, policy)
        return results[: self.results_known], again


@memoize_by_owner
def _linearize_function(closed: ClosedJaxpr, given: tuple[bool, ...], policy: object) -> _Split:
    parts, saves = _recompute_residuals(linearize_jaxpr(closed, given), policy)
    return parts if saves or _has_custom_rule(closed.jaxpr) else parts._replace(known=closed)


def _has_custom_rule(jaxpr: Jaxpr) -> bool:
    """Whether there is a call whose rule takes its place in a gradient, and is what is differentiated again."""
    return any(
        e.primitive in (custom_jvp_call, custom_vjp_call) or any(map(_has_custom_rule, find_jaxprs(e.parameters)))
        for e in jaxpr.eqns
    )


@memoize_by_owner
def _partially_evaluate_function(closed: ClosedJaxpr, unknown: tuple[bool, ...], policy: object) -> _Split:
    return _recompute_residuals(partial_evaluate_jaxpr(closed, unknown), policy)[0]


def _recompute_residuals(parts: PartitionedJaxpr, policy: Any) -> tuple[_Split, bool]:
    """Return the split, with a linear part that recomputes unsaved residuals, and whether any value is saved."""
    known = parts.known if policy is None else inline_call_equations(parts.known)
    jaxpr, count = known.jaxpr, parts.results
    residuals = [(jaxpr.invars if kind == "input" else jaxpr.outvars)[i] for kind, i in parts.residuals]
    of_jaxpr = split_by_policy(jaxpr, residuals, policy)
    saved = of_jaxpr.saved
    inputs = tuple([i for i, v in enumerate(jaxpr.invars) if v in of_jaxpr.read])
    constants = [(v, x) for v, x in zip(jaxpr.constvars, known.consts, strict=True) if v in of_jaxpr.read]
    invars = [*[jaxpr.invars[i] for i in inputs], *saved]
    recomputed, _ = eliminate_dead_code(Jaxpr([v for v, _ in constants], invars, residuals, of_jaxpr.again))
    split = len(recomputed.invars)

    def linear(*values: Array) -> list[Any]:
        residuals_again = evaluate(recomputed, [x for _, x in constants], values[:split])
        return evaluate(parts.unknown.jaxpr, parts.unknown.consts, [*residuals_again, *values[split:]])

    moved = parts.unknown.in_avals[len(parts.residuals) :]
    whole = jaxpr.replace(eqns=of_jaxpr.first, outvars=[*jaxpr.outvars[:count], *saved])
    linear_jaxpr = stage_to_jaxpr(linear, [*recomputed.in_avals, *moved], parts.unknown.jaxpr.debug_info)
    whole_closed = ClosedJaxpr(eliminate_dead_code(whole)[0], known.consts)
    return _Split(whole_closed, linear_jaxpr, parts.unknown_results, inputs, count), bool(saved)


def describe_origins(jaxpr: Jaxpr) -> dict[Atom, str]:
    """Return descriptions of the origins of the values that the equations of `jaxpr` compute, in order."""
    origin_of: dict[Atom, str] = {}
    for equation in jaxpr.eqns:
        origin = f"output of {equation.primitive.name}"
        if equation.primitive is checkpoint_name:
            origin = f"named {equation.params['name']!r}"
        elif equation.primitive is jit_call:
            origin = f"output of jitted function {equation.params['name']!r}"
        origin_of |= dict.fromkeys(equation.outvars, f"{origin} from {_describe_position(equation.source)}")
    return origin_of


def _describe_position(position: Position | None) -> str:
    """Return ``FILE:LINE:COLUMN (function)``, with the function's qualified name."""
    if position is None:
        return "an unknown place"
    location = resolve(position)
    return f"{name_file(location.file)}:{location.line}:{location.column} ({position[0].co_qualname})"


def _log_saved(parts: _Split, level: int) -> None:
    """Log the values that differentiation of a checkpointed function saves."""
    known, computed_by = parts.known, describe_origins(parts.known.jaxpr)
    lines = [f"  {known.in_avals[i].str_short(True)}" for i in parts.inputs]
    saved = [
        f"  {v.aval.str_short(True)} {computed_by.get(v, 'also an input')}"
        for v in known.jaxpr.outvars[parts.results_known :]
    ]
    _logger.log(
        level, "checkpoint: differentiating %s keeps the inputs\n%s\nand the intermediate values\n%s",
        known.jaxpr.debug_info, "\n".join(lines) or "  none", "\n".join(saved) or "  none",
    )


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, prevent_cse: _Barrier,
    differentiated: bool, policy: object,
) -> tuple[list[Any], list[Any]]:
    given = tuple([t is not None for t in tangents])
    parts = _linearize_function(jaxpr, given, policy)
    level = logging.WARNING if config.log_checkpoint_residuals.value else logging.DEBUG
    if _logger.isEnabledFor(level):
        _log_saved(parts, level)
    results, moved = parts.apply(primals, filter_by_mask(tangents, given), prevent_cse, policy)
    return results, scatter_by_mask(moved, parts.nonzero)


def _partial_evaluate(
    unknown: tuple[bool, ...], *, jaxpr: ClosedJaxpr, prevent_cse: _Barrier, differentiated: bool, policy: object
) -> Callable[[Sequence[Any]], list[Any]] | None:
    works, pending = analyze_unknowns(jaxpr, unknown)
    if all(pending) and (differentiated or not works):
        return None
    parts = _partially_evaluate_function(jaxpr, unknown, policy)
    # If all results are unknown, everything is recomputed and there is nothing to split.
    if all(parts.nonzero):
        return None
    known = [not u for u in unknown]
    flags = _select_flags(prevent_cse, len(unknown), filter_by_mask(range(len(unknown)), known), 0)

    def compute(operands: Sequence[Any]) -> list[Any]:
        results, rest = parts.apply(filter_by_mask(operands, known), filter_by_mask(operands, unknown), flags, policy)
        return merge_by_mask(results, rest, parts.nonzero)

    return compute


def _transpose(
    cotangents: Sequence[Any], *operands: Array | UndefinedPrimal, jaxpr: ClosedJaxpr, prevent_cse: _Barrier,
    differentiated: bool, policy: object,
) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    transposed, has_cotangent = transpose_jaxpr(jaxpr, linear, nonzero, False, ("rematted_computation",))
    known = [i for i, x in enumerate(operands) if type(x) is not UndefinedPrimal]
    given = [c for c in cotangents if c is not None]
    flags = _select_flags(prevent_cse, len(operands), known, len(given))
    results = bind_remat(transposed, [*[operands[i] for i in known], *given], flags, differentiated, policy)
    return scatter_by_mask(scatter_by_mask(results, has_cotangent), linear)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, jaxpr: ClosedJaxpr,
    prevent_cse: _Barrier, differentiated: bool, policy: Any,
) -> tuple[list[Any], tuple[int | None, ...]]:
    batched, out_axes = batch_jaxpr(jaxpr, mapped, tuple(axes))
    return bind_remat(batched, operands, prevent_cse, differentiated, policy), out_axes


remat_call = ListPrimitive(
    "remat2", ("jaxpr", "prevent_cse", "differentiated", "policy"), emit=_emit, jvp=_jvp, linearize=_linearize,
    partial_evaluate=_partial_evaluate, transpose=_transpose, batch=_batch, discharge=_discharge,
    # A policy of None is printed as well.
    unprinted={"policy": ()},
    **make_call_rules("jaxpr", "Call a function whose intermediate values are recomputed for its derivative."),
)
