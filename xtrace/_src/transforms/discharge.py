"""Discharging references: a program that makes, reads and writes them, as one that computes new arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.varying import vary
from xtrace._src.core.avals import AbstractRef, array_type
from xtrace._src.core.effects import REFERENCE_EFFECT
from xtrace._src.core.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.source import call_at, describe
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.trace import current_trace
from xtrace._src.transforms.jaxpr_transforms import cast_weak_type, move_constants_to_inputs, stage_to_jaxpr


def has_references(jaxpr: Jaxpr) -> bool:
    """Whether a program takes, holds or makes references."""
    return REFERENCE_EFFECT in jaxpr.effects or any(type(v.aval) is AbstractRef for v in jaxpr.invars)


def find_references(keys: Sequence[Any]) -> list[int]:
    """Return the positions of the operands that are references, which have a key; ValueError if one is there twice."""
    positions = [i for i, key in enumerate(keys) if key is not None]
    if len({id(keys[i]) for i in positions}) != len(positions):
        raise ValueError(
            "the same reference was given to a function twice, as two arguments, or as an argument and in its closure; "
            "a write to one would have to show in the other. Pass it once"
        )
    return positions


def discharge_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with arrays for references: the last arrays of those among the inputs are its last outputs.

    Its constants must not be references. Always the same object.
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
    """Raise ValueError if an operand is a reference that an earlier equation has ended; note if this one ends one."""
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
    """Return the results of an equation on arrays; references that it writes to are updated in `environment`."""
    primitive = equation.primitive
    keys = [x if type(x.aval) is AbstractRef else None for x in equation.invars]
    if REFERENCE_EFFECT not in equation.effects and not any(keys):
        result = call_at(equation, current_trace.get().process, primitive, operands, equation.parameters)
        return result if primitive.multiple_results else [result]
    updates, results = call_at(equation, apply_rule, primitive, keys, operands, equation.parameters)
    for x, update in zip(equation.invars, updates, strict=True):
        if update is not None:
            update = cast_weak_type(update, array_type(x.aval))
            environment[x] = vary(update, sorted(x.aval.varying, key=str)) if x.aval.varying else update  # type: ignore[index]
    return results  # type: ignore[no-any-return]


def apply_rule(
    primitive: Primitive, keys: Sequence[Any], operands: Sequence[Any], parameters: tuple[Any, ...]
) -> tuple[list[Any], list[Any]]:
    """Apply the discharge rule of an operation. One without a rule may hold functions that make references inside."""
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
    """Apply the discharge rule of an operation that calls `closed`; ``bind(closed, operands)`` binds another call."""
    pure = discharge_jaxpr(move_constants_to_inputs(closed))
    return split_results(keys, bind(pure, [*closed.consts, *operands]))


def split_results(keys: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the last arrays of the operands that are references, and None for others, and the other results."""
    count = len(results) - len(find_references(keys))
    last = iter(results[count:])
    return [None if key is None else next(last) for key in keys], list(results[:count])
