"""Dead-code elimination by rules of primitives; users may add rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xtrace._src.core.jaxprs.effects import has_side_effects, join_effects
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops.calls.call_primitives import call_p, closed_call_p
from xtrace._src.ops.calls.calls import close_jaxpr, jit_call
from xtrace._src.ops.control_flow.cond import cond_p
from xtrace._src.ops.remat.rematerialization import remat_call
from xtrace._src.transforms.dead_code import replace_equation
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask

_Result = tuple[list[bool], JaxprEqn | None]

# ``rule(used_outputs, equation)`` returns a flag for each operand, whether the reduced equation reads it, and the
# reduced equation; None for no equation.
dce_rules: dict[Primitive, Callable[[list[bool], JaxprEqn], _Result]] = {}


def eliminate(jaxpr: Jaxpr, wanted: Sequence[bool], always: Sequence[bool]) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Return `jaxpr` reduced to its `wanted` results, whether each constvar is read, and whether each input stays.

    always: inputs that stay even if nothing reads them. All constvars stay.
    """
    outvars = filter_by_mask(jaxpr.outvars, wanted)
    needed: set[Atom] = set(outvars)
    kept = []
    for equation in reversed(jaxpr.eqns):
        used = [v in needed for v in equation.outvars]
        rule = dce_rules.get(equation.primitive)
        if rule is None:
            is_kept = any(used) or has_side_effects(equation.effects)
            rest = replace_equation(equation, needed) if is_kept else None
            reads = [rest is not None] * len(equation.invars)
        else:
            reads, rest = rule(used, equation)
            if len(reads) != len(equation.invars):
                raise ValueError(
                    f"dce_jaxpr: the rule of {equation.primitive} returned {len(reads)} flags for "
                    f"{len(equation.invars)} operands"
                )
        needed.update(filter_by_mask(equation.invars, reads))
        if rest is not None:
            kept.append(rest)
    stays = [v in needed or keep for v, keep in zip(jaxpr.invars, always, strict=True)]
    smaller = jaxpr.replace(
        invars=filter_by_mask(jaxpr.invars, stays), outvars=outvars, eqns=kept[::-1], effects=join_effects(kept)
    )
    return smaller, [v in needed for v in jaxpr.constvars], stays


def eliminate_in_call(used_outputs: list[bool], equation: JaxprEqn, name: str) -> _Result:
    """Return the flags and the reduced equation of a call, as a rule of `dce_rules`; its jaxpr is parameter `name`."""
    parameters = equation.params
    closed = close_jaxpr(parameters[name])
    if not any(used_outputs) and not has_side_effects(equation.effects):
        return [False] * len(equation.invars), None
    smaller, _, reads = eliminate(closed.jaxpr, used_outputs, [False] * len(closed.in_avals))
    parameters[name] = ClosedJaxpr(smaller, closed.consts)
    rows = [("donated_invars", "in_shardings", "in_layouts"), ("out_shardings", "out_layouts")]
    for names, mask in zip(rows, (reads, used_outputs), strict=True):
        parameters |= {row: tuple(filter_by_mask(parameters[row], mask)) for row in names if parameters.get(row)}
    return reads, equation.replace(
        invars=filter_by_mask(equation.invars, reads), outvars=filter_by_mask(equation.outvars, used_outputs),
        parameters=equation.primitive.pack_parameters(parameters), effects=smaller.effects,
    )


def _eliminate_in_cond(used_outputs: list[bool], equation: JaxprEqn) -> _Result:
    if not any(used_outputs) and not has_side_effects(equation.effects):
        return [False] * len(equation.invars), None
    parameters = equation.params
    branches: Sequence[ClosedJaxpr] = parameters["branches"]
    none = [False] * len(branches[0].in_avals)
    flags = [eliminate(b.jaxpr, used_outputs, none)[2] for b in branches]
    # All branches must keep the same inputs.
    reads = [any(each) for each in zip(*flags, strict=True)]
    smaller = [ClosedJaxpr(eliminate(b.jaxpr, used_outputs, reads)[0], b.consts) for b in branches]
    parameters["branches"] = tuple(smaller)
    reads = [True, *reads]
    return reads, equation.replace(
        invars=filter_by_mask(equation.invars, reads), outvars=filter_by_mask(equation.outvars, used_outputs),
        parameters=equation.primitive.pack_parameters(parameters),
        effects=frozenset().union(*[b.effects for b in smaller]),
    )


def _make_call_rule(name: str) -> Callable[[list[bool], JaxprEqn], _Result]:
    return lambda used_outputs, equation: eliminate_in_call(used_outputs, equation, name)


dce_rules.update({
    jit_call: _make_call_rule("jaxpr"), remat_call: _make_call_rule("jaxpr"), call_p: _make_call_rule("call_jaxpr"),
    closed_call_p: _make_call_rule("call_jaxpr"), cond_p: _eliminate_in_cond,
})
