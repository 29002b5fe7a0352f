"""The call of a function with a custom jvp rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED, ClosedJaxpr, DebugInfo
from xtrace._src.core.linear_functions import WrappedFun
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.core.trace import current_trace, use_trace
from xtrace._src.ops.custom_rules.calls import (
    SHARED_RULES,
    CustomDerivativeCall,
    batch_call,
    cast_results,
    drop_closed_over,
    find_mapped_results,
)
from xtrace._src.ops.custom_rules.rule import Rule, call_rule, make_zero, to_user_operand
from xtrace._src.ops.custom_rules.symbolic_zeros import is_zero, symbolic_zero
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask, scatter_by_mask
from xtrace._src.transforms.scopes import program_scopes
from xtrace._src.transforms.stage import StagedTracer, stage


def _custom_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, call_jaxpr: Any, jvp: Rule, num_consts: int, **_: Any
) -> tuple[list[Any], list[Any]]:
    primals, tangents = drop_closed_over(name, primals, tangents, num_consts)
    results, moved = call_rule(jvp, primals, tangents)
    return cast_results(results, call_jaxpr), moved


def _custom_jvp_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, call_jaxpr: Any, jvp: Rule, num_consts: int, **_: Any
) -> tuple[list[Any], list[Any]]:
    primals, tangents = drop_closed_over(name, primals, tangents, num_consts)
    tape = current_trace.get()
    with program_scopes():
        results, moved = call_rule(jvp, primals, tangents)
    if tape.is_tape and any(type(x) is StagedTracer and x.owner is tape for x in results):
        # Operations such as while_loop also put primal results on the tape. Primals depend on no tangent: a second call
        # of the rule outside of the tape, with zero tangents, computes them.
        assert tape.parent is not None
        with use_trace(tape.parent):
            still = [None if t is None else make_zero(aval_of(t)) for t in tangents]
            results, _ = call_rule(jvp, primals, still)
    return cast_results(results, call_jaxpr), moved


def _custom_jvp_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, call_jaxpr: object,
    jvp: Rule, num_consts: int, symbolic_zeros: bool,
) -> tuple[list[Any], list[int | None]]:
    mapping, explicit = jvp.mapping(mapped), list(axes[num_consts:])

    def mapped_rule(
        primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[int | None], list[Any], list[int | None]]:
        """Return the results, their mapped axes, their tangents (None for zero), and the tangents' mapped axes."""
        nonzero = [t is not None for t in tangents]
        out_nonzero: list[bool] = []

        def both(*inner: Array) -> list[Any]:
            results, moved = jvp.function(inner[: len(primals)], scatter_by_mask(inner[len(primals) :], nonzero))
            out_nonzero[:] = [t is not None for t in moved]
            return [*results, *filter_by_mask(moved, out_nonzero)]

        results, where = mapping(
            both, [*primals, *filter_by_mask(tangents, nonzero)], explicit + filter_by_mask(explicit, nonzero)
        )
        count = len(out_nonzero)
        moved, moved_where = scatter_by_mask(results[count:], out_nonzero), scatter_by_mask(where[count:], out_nonzero)
        return results[:count], where[:count], moved, moved_where

    also = None
    if isinstance(call_jaxpr, ClosedJaxpr) and not all(find_mapped_results(call_jaxpr, mapped, axes)):
        also = _find_mapped_tangents(mapped_rule, call_jaxpr, operands[num_consts:])
    call, values, in_order, places = batch_call(mapped, call_jaxpr, operands, axes, also)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        primals_out, where, moved, moved_where = mapped_rule(primals, tangents)
        together = [i if i is not None else j for i, j in zip(where, moved_where, strict=True)]
        results = in_order(
            [x if i is None and j is None else mapped.place(x, i)
             for x, i, j in zip(primals_out, where, together, strict=True)],
            [None if j is None else 0 for j in together],
        )
        wanted = places()
        return results, [
            t if t is None or j is None else mapped.place(t, i)
            for t, i, j in zip(moved, moved_where, wanted, strict=True)
        ]

    results = custom_jvp_call.bind_positional(
        values, (name, call, jvp.batched(rule), num_consts + len(values) - len(operands), symbolic_zeros)
    )
    return results, places()


_finding_mapped_tangents: ContextVar[bool] = ContextVar("finding_mapped_tangents", default=False)


def _find_mapped_tangents(
    mapped_rule: Callable[..., Any], call_jaxpr: ClosedJaxpr, operands: Sequence[Any]
) -> list[bool]:
    """Return the mask of results with mapped tangents; the results themselves may be unmapped."""
    if _finding_mapped_tangents.get():
        # A rule that calls a custom_jvp function for the next order would recurse forever.
        return [True] * len(call_jaxpr.out_avals)
    is_mapped: list[bool] = []

    def both(*values: Array) -> list[Any]:
        *_, moved_where = mapped_rule(values, [v if is_differentiable(aval_of(v)) else None for v in values])
        is_mapped[:] = [i is not None for i in moved_where]
        return []

    outer = _finding_mapped_tangents.get()
    try:
        _finding_mapped_tangents.set(True)
        stage(both, [aval_of(x) for x in operands], DebugInfo("vmap", "custom_jvp", None, None))
    except Exception:
        # The rule's error is raised when a derivative is computed.
        return [True] * len(call_jaxpr.out_avals)
    finally:
        _finding_mapped_tangents.set(outer)
    return is_mapped


def _flatten_rules(named: dict[str, Any]) -> tuple[list[Callable[..., Any]], dict[str, Any]]:
    """Return the rule as a function of primals and tangents that returns results and their tangents."""

    def call(*operands: Any) -> list[Any]:
        primals, tangents = _halve(operands)
        given = [None if is_zero(t) else t for t in tangents]
        operands = drop_closed_over(named["name"], primals, given, named["num_consts"])
        results, moved = call_rule(named["jvp"], *operands)
        zeros = [symbolic_zero(a) if is_differentiable(a) else make_zero(a) for a in map(aval_of, results)]
        return [*results, *[zero if t is None else t for t, zero in zip(moved, zeros, strict=True)]]

    return [call], {}


def _unflatten_rules(rules: Sequence[WrappedFun], is_staged: bool, *, symbolic_zeros: bool) -> tuple[Rule]:
    """Return the rule whose flat form is given.

    Transformations around it store values at its first call, and whoever binds it reads them afterwards; the ones
    around a staged function have stored theirs already.
    """
    (jvp,) = rules
    make = symbolic_zero if symbolic_zeros else make_zero

    def call(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = [make(aval_of(x)) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        jvp.reset_stores()
        results, moved = _halve(jvp.call_wrapped(*map(to_user_operand, primals), *given))
        if is_staged:
            jvp.reset_stores()
        return list(results), [None if is_zero(t) else t for t in moved]

    return (Rule(call, jvp.__name__),)


def _halve(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    return values[: len(values) // 2], values[len(values) // 2 :]


custom_jvp_call = CustomDerivativeCall(
    "custom_jvp_call", ("call_jaxpr", "jvp"), _flatten_rules, _unflatten_rules, jvp=_custom_jvp,
    linearize=_custom_jvp_linearize, batch=_custom_jvp_batch, unprinted={"num_consts": NEVER_PRINTED}, **SHARED_RULES,
)
