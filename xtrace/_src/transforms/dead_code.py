"""Dead-code elimination: equations without effects are dropped if no output depends on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xtrace._src.core.jaxprs.effects import NO_EFFECTS, has_side_effects, join_effects
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn
from xtrace._src.core.primitive import Primitive

# Maps an operation to a function ``(is_read, equation) -> equation`` that simplifies equations with unread results.
replacements: dict[Primitive, Callable[[Sequence[bool], JaxprEqn], JaxprEqn]] = {}


def replace_equation(equation: JaxprEqn, needed: set[Atom]) -> JaxprEqn:
    """Return `equation`, or a simpler one that computes only the `needed` results."""
    replace = replacements.get(equation.primitive)
    return equation if replace is None else replace([v in needed for v in equation.outvars], equation)


def eliminate_dead_code(jaxpr: Jaxpr) -> tuple[Jaxpr, list[bool]]:
    """Return `jaxpr` without dead equations, and a flag for each input: whether a live equation or an output reads it.

    Inputs, constvars and equations with effects are kept.
    """
    needed: set[Atom] = set(jaxpr.outvars)
    kept, changed = [], False
    for equation in reversed(jaxpr.eqns):
        for variable in equation.outvars:
            if variable in needed:
                break
        else:
            if not has_side_effects(equation.effects):
                continue
        if equation.primitive in replacements:
            equation, changed = replace_equation(equation, needed), True
        needed.update(equation.invars)
        kept.append(equation)
    read = [v in needed for v in jaxpr.invars]
    if len(kept) == len(jaxpr.eqns) and not changed:
        return jaxpr, read
    return jaxpr.replace(eqns=kept[::-1], effects=join_effects(kept) if jaxpr.effects else NO_EFFECTS), read


def drop_inputs(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """Return the live equations of a jaxpr without inputs and constants; None if they read one."""
    jaxpr, read = eliminate_dead_code(closed.jaxpr)
    return None if any(read) or closed.consts else ClosedJaxpr(jaxpr.replace(invars=[]), [])


def find_read_atoms(jaxpr: Jaxpr) -> set[Atom]:
    """Return the variables that the equations and the results of `jaxpr` read."""
    read: set[Atom] = set(jaxpr.outvars)
    for equation in jaxpr.eqns:
        read.update(equation.invars)
    return read


def name_dropped(jaxpr: Jaxpr) -> Jaxpr:
    """Return `jaxpr` in which unread results of equations are bound to `DropVar`, which prints as ``_``."""
    read = find_read_atoms(jaxpr)
    equations = [
        e if read.issuperset(e.outvars) else e.replace(outvars=[v if v in read else DropVar(v.aval) for v in e.outvars])
        for e in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=equations)
