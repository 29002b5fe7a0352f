"""Dead-code elimination: equations without effects are dropped if no output depends on them."""

from __future__ import annotations

from xtrace._src.core.effects import NO_EFFECTS, effects_of_all, has_side_effects
from xtrace._src.core.ir import Atom, DropVar, Jaxpr


def eliminate_dead_code(jaxpr: Jaxpr) -> tuple[Jaxpr, list[bool]]:
    """Return `jaxpr` without dead equations, and for each input whether the rest reads it.

    Inputs, constvars and equations with effects are kept.
    """
    needed: set[Atom] = set(jaxpr.outvars)
    kept = []
    for equation in reversed(jaxpr.eqns):
        for variable in equation.outvars:
            if variable in needed:
                break
        else:
            if not has_side_effects(equation.effects):
                continue
        needed.update(equation.invars)
        kept.append(equation)
    read = [v in needed for v in jaxpr.invars]
    if len(kept) == len(jaxpr.eqns):
        return jaxpr, read
    return jaxpr.replace(eqns=kept[::-1], effects=effects_of_all(kept) if jaxpr.effects else NO_EFFECTS), read


def name_dropped(jaxpr: Jaxpr) -> Jaxpr:
    """Return `jaxpr` in which unread results of equations are bound to `DropVar`, which prints as ``_``."""
    read: set[Atom] = set(jaxpr.outvars)
    for equation in jaxpr.eqns:
        read.update(equation.invars)
    equations = [
        e if read.issuperset(e.outvars) else e.replace(outvars=[v if v in read else DropVar(v.aval) for v in e.outvars])
        for e in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=equations)
