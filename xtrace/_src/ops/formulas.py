"""Emission of operations that StableHLO lacks: a formula in other operations, recorded and written in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core import config
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.ir import Atom, DebugInfo, Jaxpr, can_be_remembered
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.tables import Table
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.jvp import jvp
from xtrace._src.transforms.lower import emit_equations
from xtrace._src.transforms.stage import stage

# How many choices of types and parameters a formula is kept for.
_LIMIT = 1024


def by_formula(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return an emission rule that writes what ``formula(*arrays, **parameters)`` does, equation by equation.

    `formula` is written with operators and operations of lax; it returns one array, or a list where the operation
    has several results. What it does is recorded once for each choice of types and parameters. The lines carry the
    place of the equation they stand for.
    """
    recorded = Table(_LIMIT)

    def emit(builder: FunctionBuilder, *values: Value, **parameters: Any) -> Any:
        avals = [x.aval.strip_weak_type() for x in values]
        if can_be_remembered(tuple(parameters.values())):
            key = (config.cache_key(), *avals, *parameters.items())
            found = recorded.get(key)
            if found is None:
                found = _record(formula, avals, parameters)
                recorded.remember(key, found)
        else:
            found = _record(formula, avals, parameters)
        jaxpr, constants = found.jaxpr, found.constants
        variables: dict[Atom, Value] = dict(zip(jaxpr.invars, values, strict=True))
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            variables[variable] = builder.constant(constant, variable.aval)
        position, scope = builder.place or (None, builder.scope)
        builder.scope, outer = scope, builder.scope
        try:
            results = emit_equations(builder, jaxpr, variables, position)
        finally:
            builder.scope = outer
        return results if found.several else results[0]

    return emit


class _Recorded(NamedTuple):
    """The jaxpr of a formula, its constants, and whether it returns several results."""

    jaxpr: Jaxpr
    constants: Sequence[Any]
    several: bool


def _record(formula: Callable[..., Any], avals: Sequence[ShapedArray], parameters: dict[str, Any]) -> _Recorded:
    several = False

    def flat(*arrays: Any) -> list[Any]:
        nonlocal several
        found = formula(*arrays, **parameters)
        several = isinstance(found, (list, tuple))
        return list(found) if several else [found]

    jaxpr, constants = stage(flat, avals, DebugInfo("emission", formula.__name__, None, None))
    # The places are those of the equations that it is written for.
    for equation in jaxpr.eqns:
        equation.source = None
    return _Recorded(jaxpr, constants, several)


def _loop_abstract(*state: ShapedArray, condition: Any, step: Any) -> list[ShapedArray]:
    """A loop inside a formula."""
    return list(state)


def _loop_emit(builder: FunctionBuilder, *state: Value, condition: Any, step: Any) -> list[Value]:
    avals = [x.aval for x in state]
    regions = []
    for function in (condition, step):
        region = builder.region(avals)
        results = by_formula(function)(region, *region.arguments)
        regions.append((region, results if isinstance(results, list) else [results]))
    return builder.op_with_regions("stablehlo.while", state, regions, avals)


def _loop_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, condition: Any, step: Any
) -> tuple[list[Any], list[Any]]:
    count = len(primals)
    smooth = [i for i, x in enumerate(primals) if is_differentiable(aval_of(x))]

    def filled(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return [zeros(aval_of(values[i])) if tangents[i] is None else tangents[i] for i in smooth]

    def spread(values: Sequence[Any]) -> list[Any]:
        found = dict(zip(smooth, values, strict=True))
        return [found.get(i) for i in range(count)]

    def both(*values: Any) -> list[Any]:
        results, moved = jvp(step, values[:count], spread(values[count:]))
        return [*results, *filled(results, moved)]

    state = [*primals, *filled(primals, tangents)]
    results = repeat_while(lambda *values: condition(*values[:count]), both, state)
    return results[:count], spread(results[count:])


_loop = Primitive(
    "formula_loop",
    ("condition", "step"),
    abstract=_loop_abstract,
    emit=_loop_emit,
    jvp=_loop_jvp,
    transpose=no_rule("a loop in a formula is emitted, not transposed"),
    batch=no_rule("a loop in a formula is emitted, not batched"),
    multiple_results=True,
    memoised=False,
)


def repeat_while(condition: Callable[..., Any], step: Callable[..., Any], state: Sequence[Any]) -> list[Any]:
    """Return `state` after ``state = step(*state)`` for as long as ``condition(*state)`` holds; inside formulas only.

    Both functions see no other arrays than those of the state. `jvp` of a formula goes through the loop.
    """
    return _loop.bind(*state, condition=condition, step=step)
