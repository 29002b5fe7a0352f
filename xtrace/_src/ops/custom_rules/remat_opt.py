"""The call of a forward rule that becomes a call of the function itself where nothing reads the residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo, JaxprEqn, Var
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.ops.calls.call_primitives import closed_call_p
from xtrace._src.ops.calls.calls import make_jit_rules
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.dead_code import replacements
from xtrace._src.transforms.jaxpr_transforms import batch_jaxpr, stage_to_jaxpr


def call_forward_rule(
    forward: Callable[..., tuple[list[Any], list[Any]]], function: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the results and residuals that `forward` returns, as those of one equation; `function` has the results."""
    counts: list[int] = []

    def residuals_first(*values: Any) -> list[Any]:
        results, residuals = forward(*values)
        counts[:] = [len(residuals)]
        return [*residuals, *results]

    avals = [aval_of(x) for x in operands]
    info = DebugInfo("remat_opt", "forward", None, None)
    rule, itself = [stage_to_jaxpr(f, avals, info) for f in (residuals_first, function)]
    # Residuals that are operands are no results of the equation.
    given: dict[Any, Any] = dict(zip(rule.jaxpr.invars, operands, strict=True))
    residuals, results = rule.jaxpr.outvars[: counts[0]], rule.jaxpr.outvars[counts[0] :]
    computed = [v for v in residuals if v not in given]
    rule = ClosedJaxpr(rule.jaxpr.replace(outvars=[*computed, *results]), rule.consts)
    outputs = _bind(rule, itself, operands, 0, len(computed))
    given.update(zip(computed, outputs, strict=False))
    return outputs[len(computed) :], [given[v] for v in residuals]


def _bind(
    rule: ClosedJaxpr, function: ClosedJaxpr, operands: Sequence[Any], num_consts: int, num_res: int
) -> list[Any]:
    """Bind a call; the constants of both jaxprs become its first operands."""
    first, second = rule.jaxpr, function.jaxpr
    others = [[Var(v.aval) for v in jaxpr.constvars] for jaxpr in (first, second)]
    call = ClosedJaxpr(first.replace(constvars=[], invars=[*first.constvars, *others[1], *first.invars]), [])
    smaller = ClosedJaxpr(second.replace(constvars=[], invars=[*others[0], *second.constvars, *second.invars]), [])
    constants = [*rule.consts, *function.consts]
    parameters = (num_consts + len(constants), num_res, call, lambda: smaller)
    return remat_opt.bind_positional([*constants, *operands], parameters)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, num_consts: int, num_res: int,
    fwd_jaxpr: ClosedJaxpr, fun_jaxpr_thunk: Callable[[], ClosedJaxpr],
) -> tuple[list[Any], list[int]]:
    rule, function = [
        batch_jaxpr(closed, mapped, tuple(axes), (True,) * len(closed.out_avals))[0]
        for closed in (fwd_jaxpr, fun_jaxpr_thunk())
    ]
    outputs = _bind(rule, function, operands, num_consts, num_res)
    return outputs, [0] * len(outputs)


remat_opt = ListPrimitive(
    "remat_opt", ("num_consts", "num_res", "fwd_jaxpr", "fun_jaxpr_thunk"),
    **make_jit_rules(
        "remat_opt", "fwd_jaxpr", "Call a forward rule, whose residuals come before the results.", batch=_batch
    ),
)


def _call_function(used: Sequence[bool], equation: JaxprEqn) -> JaxprEqn:
    """Return a call of the function itself if no residual is used."""
    _, count, _, function = equation.parameters
    if any(used[:count]):
        return equation
    called = function()
    return JaxprEqn(
        list(equation.invars), equation.outvars[count:], closed_call_p, (called,), called.effects, equation.source
    )


replacements[remat_opt] = _call_function
