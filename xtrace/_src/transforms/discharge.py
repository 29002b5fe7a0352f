"""Discharging references: a program that makes, reads and writes references becomes a program of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.avals import AbstractRef, array_type
from xtrace._src.core.diagnostics.positions import call_at, describe
from xtrace._src.core.jaxprs.effects import REFERENCE_EFFECT
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.trace import current_trace

with late_modules(globals()):
    from xtrace._src.algebra.varying import vary
    from xtrace._src.transforms.jaxpr_transforms import cast_weak_type, move_constants_to_inputs, stage_to_jaxpr


def has_references(jaxpr: Jaxpr) -> bool:
    """Whether a program takes, holds or makes references."""
    return REFERENCE_EFFECT in jaxpr.effects or any(type(v.aval) is AbstractRef for v in jaxpr.invars)


def find_references(keys: Sequence[Any]) -> list[int]:
    """Return the positions of references among operands, which have a key; ValueError if one occurs twice."""
    positions = [i for i, key in enumerate(keys) if key is not None]
    if len({id(keys[i]) for i in positions}) != len(positions):
        raise ValueError(
            "the same reference was given to a function twice, as two arguments, or as an argument and in its closure; "
            "a write to one would change the other. Pass it once"
        )
    return positions


def discharge_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with arrays in the place of references.

    Its last outputs are the final arrays of the inputs that are references. Constants must not be references. The
    result for one jaxpr is always the same object.
    """
    return _discharge(closed) if has_references(closed.jaxpr) else closed


@memoize_by_owner
def _discharge(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    references = [i for i, a in enumerate(jaxpr.in_avals) if type(a) is AbstractRef]

    def discharged(*values: Any) -> list[Any]:
        environment: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        environment.update(zip(jaxpr.invars, values, strict=True))
        ended: dict[Var, JaxprEqn] = {}
        for equation in jaxpr.eqns:
            _check_alive(equation, ended)
            operands = [x if type(x) is Literal else environment[x] for x in equation.invars]  # type: ignore[index]
            results = _evaluate(equation, operands, environment)
            environment.update(zip(equation.outvars, results, strict=True))
        outputs = [x if type(x) is Literal else environment[x] for x in jaxpr.outvars]  # type: ignore[index]
        return [*outputs, *[environment[jaxpr.invars[i]] for i in references]]

    return stage_to_jaxpr(discharged, [array_type(a) for a in closed.in_avals], jaxpr.debug_info)


def _check_alive(equation: JaxprEqn, ended: dict[Var, JaxprEqn]) -> None:
    """Raise ValueError if an operand is a reference that an earlier equation ended; record an end by this one."""
    for x in equation.invars:
        if type(x.aval) is AbstractRef and x in ended:
            how = "frozen" if ended[x].primitive.name == "freeze" else "freed"
            raise ValueError(
                f"the reference of type {x.aval} was {how} at {describe(ended[x].source)}, and is used at "
                f"{describe(equation.source)}; use the array that freeze returns"
            )
    if equation.primitive.name in ("freeze", "free_ref"):
        ended[equation.invars[0]] = equation  # type: ignore[index]


def _evaluate(equation: JaxprEqn, operands: Sequence[Any], environment: dict[Var, Any]) -> Sequence[Any]:
    """Return the results of an equation on arrays; update the references that it writes in `environment`."""
    primitive = equation.primitive
    keys = [x if type(x.aval) is AbstractRef else None for x in equation.invars]
    if REFERENCE_EFFECT not in equation.effects and not any(keys):
        result: Any = call_at(equation, current_trace.get().process, primitive, operands, equation.parameters)
        return result if primitive.multiple_results else [result]
    updates, results = call_at(equation, apply_rule, primitive, keys, operands, equation.parameters)
    for x, update in zip(equation.invars, updates, strict=True):
        if update is not None:
            update = cast_weak_type(update, array_type(x.aval))
            environment[x] = vary(update, sorted(x.aval.varying, key=str)) if x.aval.varying else update  # type: ignore[index]
    return results


def apply_rule(
    primitive: Primitive, keys: Sequence[Any], operands: Sequence[Any], parameters: tuple[Any, ...]
) -> tuple[list[Any], list[Any]]:
    """Return the new arrays of written references (None for other operands) and the results of an operation.

    An operation without a discharge rule takes no references, but its jaxprs may make some.
    """
    if primitive.discharge is not None:
        return primitive.discharge(keys, operands, **dict(zip(primitive.parameters, parameters, strict=True)))
    if any(key is not None for key in keys):
        raise NotImplementedError(
            f"{primitive.name} takes arrays only, and was given a reference: pass ref[...], and write the result to it"
        )
    result = primitive.bind_positional(operands, tuple(map(_discharge_parameter, parameters)))
    return [None] * len(operands), result if primitive.multiple_results else [result]


def _discharge_parameter(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_discharge_parameter, value)) if type(value) is tuple else value
    if isinstance(value, Jaxpr):
        return discharge_jaxpr(ClosedJaxpr(value, [])).jaxpr if has_references(value) else value
    return discharge_jaxpr(value) if isinstance(value, ClosedJaxpr) else value


def discharge_call(
    bind: Callable[..., list[Any]], keys: Sequence[Any], operands: Sequence[Any], closed: ClosedJaxpr
) -> tuple[list[Any], list[Any]]:
    """Apply the discharge rule of an operation that calls `closed`; ``bind(closed, operands)`` binds a call."""
    pure = discharge_jaxpr(move_constants_to_inputs(closed))
    return split_results(keys, bind(pure, [*closed.consts, *operands]))


def split_results(keys: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split the results of a discharged call: the final array of each reference (None for other operands), the rest."""
    count = len(results) - len(find_references(keys))
    last = iter(results[count:])
    return [None if key is None else next(last) for key in keys], list(results[:count])
