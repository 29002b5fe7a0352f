"""The split of a jaxpr, with its loops and branches, into equations that a policy saves and recomputed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.positions import call_at
from xtrace._src.core.jaxprs.effects import DEBUG_EFFECTS, NO_EFFECTS, has_side_effects
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.memory_spaces import MemorySpace, find_memory_space
from xtrace._src.core.trace import current_trace
from xtrace._src.ops.calls.calls import constrain_row, jit_call
from xtrace._src.ops.control_flow.cond import cond_p
from xtrace._src.ops.control_flow.scan import scan_p
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.remat.policies import Offloadable, Policy, RecomputeType, SaveableType
from xtrace._src.ops.shardings.device_put import CopySemantics, device_put_p, put
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask, stage_to_jaxpr


def _apply_policy(policy: Policy | None, equation: JaxprEqn) -> bool | Offloadable:
    """Return whether to save the results of an equation, or an Offloadable to save them in another kind of memory.

    Equations with effects other than debug effects are always saved, because recomputation would repeat the effects.
    """
    if equation.effects and has_side_effects(equation.effects - DEBUG_EFFECTS):
        return True
    if policy is None:
        return False
    answer = policy(equation.primitive, *[x.aval for x in equation.invars], **equation.params)
    if isinstance(answer, Offloadable):
        return answer
    return isinstance(answer, SaveableType) or (not isinstance(answer, RecomputeType) and bool(answer))


def _move_to_memory(maker: JaxprEqn, variables: Sequence[Var], kind: str, to: Sequence[Var] = ()) -> JaxprEqn:
    """Return the equation that copies results of `maker` to a kind of memory, as new variables or as `to`."""
    space = find_memory_space(kind)
    results = list(to) or [Var(v.aval.update(memory_space=space)) for v in variables]
    count = len(results)
    parameters = ((space,) * count, (None,) * count, (CopySemantics.ALWAYS_COPY,) * count)
    return JaxprEqn(list(variables), results, device_put_p, parameters, NO_EFFECTS, maker.source)


class PolicySplit(NamedTuple):
    """The split of a jaxpr: equations `first`, which also compute the `saved` variables, and `again`, recomputed ones.

    read: the variables that the recomputation reads or returns, including saved variables and inputs of the jaxpr.
    """

    first: list[JaxprEqn]
    again: list[JaxprEqn]
    saved: list[Var]
    read: set[Atom]


def split_by_policy(jaxpr: Jaxpr, outputs: Sequence[Atom], policy: Policy | None) -> PolicySplit:
    """Return the split of `jaxpr` that recomputes `outputs` from its inputs and the variables that `policy` saves.

    Without a policy nothing is saved. Calls must be inlined, because policies apply to single operations.
    """
    read: set[Atom] = set(outputs)
    first: list[JaxprEqn] = []
    again: list[JaxprEqn] = []
    saved: list[Var] = []
    for equation in reversed(jaxpr.eqns):
        wanted = [v in read for v in equation.outvars]
        now = equation
        then: JaxprEqn | None = None
        if any(wanted) and policy is not None and equation.primitive in _SPLITS:
            now, then, kept = _SPLITS[equation.primitive](equation, wanted, policy)
            saved += kept
        elif any(wanted) and (verdict := _apply_policy(policy, equation)):
            kept = filter_by_mask(equation.outvars, wanted)
            if isinstance(verdict, Offloadable):
                away = _move_to_memory(equation, kept, verdict.dst)
                first.append(away)
                then = _move_to_memory(equation, away.outvars, verdict.src, kept)
                kept = away.outvars
            saved += kept
        elif any(wanted) or not DEBUG_EFFECTS.isdisjoint(equation.effects):
            then = equation
        first.append(now)
        if then is not None:
            again.append(then)
            read.update(then.invars)
    return PolicySplit(first[::-1], again[::-1], [v for v in dict.fromkeys(saved) if v in read], read)


def inline_call_equations(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return `closed` with all calls inlined."""
    jaxpr = closed.jaxpr
    if not any(e.primitive is jit_call for e in jaxpr.eqns):
        return closed
    return stage_to_jaxpr(
        lambda *values: _evaluate_inlined(jaxpr, closed.consts, values), jaxpr.in_avals, jaxpr.debug_info
    )


def _evaluate_inlined(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    trace = current_trace.get()
    values: dict[Var, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    for equation in jaxpr.eqns:
        operands = [x if isinstance(x, Literal) else values[x] for x in equation.invars]
        if equation.primitive is jit_call:
            called = equation.params["jaxpr"]
            operands = constrain_row(operands, equation.params["in_shardings"])
            results = _evaluate_inlined(called.jaxpr, called.consts, operands)
            results = constrain_row(results, equation.params["out_shardings"])
        else:
            result: Any = call_at(equation, trace.process, equation.primitive, operands, equation.parameters)
            results = result if equation.primitive.multiple_results else [result]
        values.update(zip(equation.outvars, results, strict=True))
    return [x if isinstance(x, Literal) else values[x] for x in jaxpr.outvars]


_SplitEquation = tuple[JaxprEqn, JaxprEqn | None, list[Var]]


def _replace_parameters(equation: JaxprEqn, invars: list[Atom], outvars: list[Var], **changes: object) -> JaxprEqn:
    parameters = equation.params | changes
    return equation.replace(invars=invars, outvars=outvars, parameters=tuple(parameters.values()))


def _split_scan(equation: JaxprEqn, wanted: Sequence[bool], policy: Policy) -> _SplitEquation:
    """Return the scan that also stacks saved values, the recomputing scan over them, and the stacked variables."""
    closed = _inline_body(equation.params["jaxpr"])
    loop = Loop(*equation.parameters[1:])
    jaxpr = closed.jaxpr
    inputs = loop.split(jaxpr.invars)
    ys = jaxpr.outvars[loop.num_carry :]
    carried, ys_wanted = list(wanted[: loop.num_carry]), wanted[loop.num_carry :]
    while True:
        of_body = split_by_policy(
            jaxpr, [*filter_by_mask(jaxpr.outvars[: loop.num_carry], carried), *filter_by_mask(ys, ys_wanted)], policy
        )
        after = [c or v in of_body.read for c, v in zip(carried, inputs[1], strict=True)]
        if after == carried:
            break
        carried = after
    stacked = {y: v for y, v in zip(ys, equation.outvars[loop.num_carry :], strict=True) if isinstance(y, Var)}
    saved = of_body.saved
    new = [v for v in saved if v not in stacked]
    stacked |= {v: Var(v.aval.update(shape=(loop.length, *v.aval.shape))) for v in new}
    body = jaxpr.replace(eqns=of_body.first, outvars=[*jaxpr.outvars, *new])
    first = _replace_parameters(
        equation, equation.invars, [*equation.outvars, *[stacked[v] for v in new]], jaxpr=ClosedJaxpr(body, [])
    )
    # Saved results of the scan are stacked already, so they are not recomputed.
    ys_again = [w and y not in saved for w, y in zip(ys_wanted, ys, strict=True)]
    outputs = [*filter_by_mask(jaxpr.outvars[: loop.num_carry], carried), *filter_by_mask(ys, ys_again)]
    if not outputs:
        return first, None, [stacked[v] for v in saved]
    read: set[Atom] = {x for e in of_body.again for x in e.invars} | set(outputs)
    takes = [[v in read for v in inputs[0]], carried, [v in read for v in inputs[2]]]
    groups = [filter_by_mask(v, w) for v, w in zip(inputs, takes, strict=True)]
    operands = [filter_by_mask(v, w) for v, w in zip(loop.split(equation.invars), takes, strict=True)]
    over = [v for v in saved if v in read]
    again_body = Jaxpr([], [*groups[0], *groups[1], *groups[2], *over], outputs, of_body.again, jaxpr.effects)
    results = [v if w else Var(v.aval) for v, w in zip(equation.outvars, wanted, strict=True)]
    again = _replace_parameters(
        equation, [*operands[0], *operands[1], *operands[2], *[stacked[v] for v in over]],
        [*filter_by_mask(results[: loop.num_carry], carried), *filter_by_mask(results[loop.num_carry :], ys_again)],
        jaxpr=ClosedJaxpr(again_body.replace(debug_info=jaxpr.debug_info), []),
        num_consts=len(groups[0]), num_carry=len(groups[1]),
    )
    return first, again, [stacked[v] for v in saved]


def _inline_body(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a body or branch, which has no constants, with all calls inlined."""
    inlined = inline_call_equations(closed)
    assert not inlined.consts
    return inlined


def _split_cond(equation: JaxprEqn, wanted: Sequence[bool], policy: Policy) -> _SplitEquation:
    """Return the cond that also returns saved values, the recomputing cond that takes them, and the saved variables.

    Branches share outputs for saved values of one type; a branch with fewer such values returns zeros.
    """
    branches = [_inline_body(b).jaxpr for b in equation.params["branches"]]
    wanted = list(wanted)
    again = wanted
    while True:
        savings = [split_by_policy(b, filter_by_mask(b.outvars, again), policy) for b in branches]
        # A result is not recomputed if each branch saves it or computes it without operands.
        kept = [_is_kept(branches, savings, i) for i in range(len(wanted))]
        after = [a and not k for a, k in zip(again, kept, strict=True)]
        if after == again:
            break
        again = after
    results = [v for v, w, a in zip(equation.outvars, wanted, again, strict=True) if w and not a]
    read = [f.read for f in savings]
    places = [_assign_slots(b, f) for b, f in zip(branches, savings, strict=True)]
    taken = list(dict.fromkeys(slot for numbered in places for slot in numbered.values()))
    slots = [(aval, number) for aval, number in taken if aval is not None]
    new = {(a, i): Var(a) if a is not None else equation.outvars[i] for a, i in taken}
    first = _replace_parameters(
        equation, equation.invars, [*equation.outvars, *[new[slot] for slot in slots]],
        branches=tuple([_return_saved(b, f, p, slots) for b, f, p in zip(branches, savings, places, strict=True)]),
    )
    if not any(again):
        return first, None, results
    takes = [any(b.invars[i] in needed for b, needed in zip(branches, read, strict=True))
             for i in range(len(equation.invars) - 1)]
    taking = []
    for b, f, p in zip(branches, savings, places, strict=True):
        own = {slot: v for v, slot in p.items()}
        inputs = [*filter_by_mask(b.invars, takes), *[own.get(slot) or Var(new[slot].aval) for slot in taken]]
        taking.append(ClosedJaxpr(b.replace(invars=inputs, outvars=filter_by_mask(b.outvars, again), eqns=f.again), []))
    then = _replace_parameters(
        equation, [equation.invars[0], *filter_by_mask(equation.invars[1:], takes), *new.values()],
        filter_by_mask(equation.outvars, again), branches=tuple(taking),
    )
    return first, then, [*results, *new.values()]


# A saved value of a branch: its type and index among the saved values of this type, or None and the result's index.
_Slot = tuple[ShapedArray | None, int]


def _assign_slots(branch: Jaxpr, parts: PolicySplit) -> dict[Var, _Slot]:
    """Return the slot of each saved value of the branch."""
    counts: dict[ShapedArray, int] = {}
    slots: dict[Var, _Slot] = {}
    for v in parts.saved:
        if v in branch.outvars:
            slots[v] = (None, branch.outvars.index(v))
        else:
            slots[v] = (v.aval, counts.get(v.aval, 0))
            counts[v.aval] = slots[v][1] + 1
    return slots


def _is_kept(branches: Sequence[Jaxpr], savings: Sequence[PolicySplit], i: int) -> bool:
    """Return whether some branch saves the result `i`, and all others save it or compute it without operands."""
    saves, others = False, True
    for branch, parts in zip(branches, savings, strict=True):
        atom = branch.outvars[i]
        if atom in parts.saved:
            saves = True
        else:
            makers = [e for e in branch.eqns if atom in e.outvars]
            is_constant = all(isinstance(x, Literal) for e in makers for x in e.invars) and atom not in branch.invars
            others = others and is_constant
    return saves and others


def _return_saved(
    branch: Jaxpr, parts: PolicySplit, places: dict[Var, _Slot], slots: Sequence[tuple[ShapedArray, int]]
) -> ClosedJaxpr:
    """Return the branch that also returns its saved values, and zeros in slots that only other branches use."""
    own = {slot: v for v, slot in places.items()}
    whole = branch.replace(eqns=parts.first, outvars=[*branch.outvars, *[own[s] for s in slots if s in own]])
    count = len(branch.outvars)

    def function(*values: Array) -> list[Any]:
        results = evaluate(whole, [], values)
        saved = iter(results[count:])
        return [*results[:count], *[next(saved) if s in own else _zeros(s[0]) for s in slots]]

    return stage_to_jaxpr(function, branch.in_avals, branch.debug_info)


def _zeros(aval: ShapedArray) -> Array:
    """Return zeros in the memory space of `aval`."""
    array = zeros(aval.update(memory_space=MemorySpace.Device))
    return array if aval.memory_space is MemorySpace.Device else put([array], [aval.memory_space])[0]


_SPLITS: dict[Any, Callable[[JaxprEqn, Sequence[bool], Policy], _SplitEquation]] = {
    scan_p: _split_scan, cond_p: _split_cond,
}
