"""Emission rules from Python functions, for operations that StableHLO lacks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo, Jaxpr, are_cacheable
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.primitive import ListPrimitive, Primitive, no_rule
from xtrace._src.core.settings import config
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.lower import emit_call, emit_jaxpr
from xtrace._src.transforms.stage import stage

with late_modules(globals()):
    from xtrace._src.transforms.jvp import jvp


@overload
def lower_fun(function: Callable[..., Array], *, call: str | None = None) -> Callable[..., Value]: ...


@overload
def lower_fun(function: Callable[..., Sequence[Any]], *, call: str | None = None) -> Callable[..., list[Value]]: ...


def lower_fun(function: Callable[..., Any], *, call: str | None = None) -> Callable[..., Any]:
    """Return the emission rule that writes the equations of ``function(*arrays, **parameters)``.

    `function` uses operators and operations of lax; it returns one array, or a sequence for several results. It is
    staged once for each choice of types and parameters. The lines have the source position of the emitted equation.
    call: the name of a private function of the module for the equations; None writes them inline.
    """

    def emit(builder: FunctionBuilder, *values: Value, **parameters: Any) -> Any:
        jaxpr, constants, several = _stage_formula(function, [x.aval for x in values], parameters)
        if any(x.aval.memory_space is not MemorySpace.Device for x in values):
            types = builder.results
            results = emit(builder, *[x.bitcast(_drop_memory(x.aval)) for x in values], **parameters)
            placed = [x.bitcast(aval) for x, aval in zip(results if several else [results], types, strict=True)]
            return placed if several else placed[0]
        if call is not None:
            return emit_call(builder, jaxpr, call, values, "func.call")
        position, scope = builder.place or (None, builder.scope)
        builder.scope, outer = scope, builder.scope
        try:
            results = emit_jaxpr(builder, jaxpr, values, constants, position)
        finally:
            builder.scope = outer
        return results if several else results[0]

    emit.make_formula = lambda avals, parameters: (function, avals, parameters)  # type: ignore[attr-defined]
    return emit


def find_formula_jaxpr(
    primitive: Primitive, avals: Sequence[ShapedArray], parameters: dict[str, Any]
) -> ClosedJaxpr | None:
    """Return the jaxpr, on physical types, of an operation lowered by `lower_fun`; None for another operation."""
    make_formula = getattr(primitive.emit, "make_formula", None)
    if make_formula is None:
        return None
    jaxpr, constants, _ = _stage_formula(*make_formula(avals, parameters))
    return ClosedJaxpr(jaxpr, constants)


def emit_bitcast(builder: FunctionBuilder, x: Value, **_: object) -> Value:
    """Write nothing: the result has the operand's physical type."""
    return x.bitcast(builder.results[0])


def _drop_memory(aval: ShapedArray) -> ShapedArray:
    """Return a type in the device's memory: in a formula, constants are there, and only results have a place."""
    return aval if aval.memory_space is MemorySpace.Device else aval.update(memory_space=MemorySpace.Device)


def _stage_formula(
    function: Callable[..., Any], avals: Sequence[ShapedArray], parameters: dict[str, Any]
) -> tuple[Jaxpr, Sequence[Any], bool]:
    stage_once = _stage if are_cacheable(tuple(parameters.values())) else inspect.unwrap(_stage)
    types = tuple([_drop_memory(a.strip_weak_type()) for a in avals])
    return stage_once(function, config.cache_key(), types, tuple(parameters.items()))


@memoize_by_owner(limit=1024)
def _stage(
    function: Callable[..., Any], _settings: object, avals: Sequence[ShapedArray], parameters: Sequence[tuple[str, Any]]
) -> tuple[Jaxpr, Sequence[Any], bool]:
    """Return the jaxpr of a function, its constants, and whether it returns several results."""
    several = False

    def flat(*arrays: ArrayLike) -> list[Any]:
        nonlocal several
        result = function(*arrays, **dict(parameters))
        several = isinstance(result, (list, tuple))
        return list(result) if several else [result]

    jaxpr, constants = stage(flat, avals, DebugInfo("emission", function.__name__, None, None))
    # Without positions of their own, the lines get that of the emitted equation.
    for equation in jaxpr.eqns:
        equation.source = None
    return jaxpr, constants, several


def _loop_abstract(*state: ShapedArray, condition: object, step: object) -> list[ShapedArray]:
    """Repeat a step, inside of a function that `lower_fun` lowers."""
    return list(state)


def _loop_emit(
    builder: FunctionBuilder, *state: Value, condition: Callable[..., Array], step: Callable[..., Sequence[Any]]
) -> list[Value]:
    tested, stepped = [builder.region([x.aval for x in state]) for _ in range(2)]
    holds = lower_fun(condition)(tested, *tested.arguments)
    return builder.while_loop(state, (tested, holds), (stepped, lower_fun(step)(stepped, *stepped.arguments)))


def _loop_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, condition: Any, step: Any
) -> tuple[list[Any], list[Any]]:
    count = len(primals)
    smooth = [i for i, x in enumerate(primals) if is_differentiable(aval_of(x))]

    def instantiate(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return [zeros(aval_of(values[i])) if tangents[i] is None else tangents[i] for i in smooth]

    def scatter(values: Sequence[Any]) -> list[Any]:
        by_position = dict(zip(smooth, values, strict=True))
        return [by_position.get(i) for i in range(count)]

    def both(*values: Any) -> list[Any]:
        results, moved = jvp(step, values[:count], scatter(values[count:]))
        return [*results, *instantiate(results, moved)]

    state = [*primals, *instantiate(primals, tangents)]
    results = repeat_while(lambda *values: condition(*values[:count]), both, state)
    return results[:count], scatter(results[count:])


_loop = ListPrimitive(
    "lowered_loop", ("condition", "step"), holds_jaxprs=True, abstract=_loop_abstract, emit=_loop_emit, jvp=_loop_jvp,
    transpose=no_rule("a loop in a lowered function is emitted, not transposed"),
    batch=no_rule("a loop in a lowered function is emitted, not batched"), multiple_results=True, memoised=False,
)


def repeat_while(condition: Callable[..., Any], step: Callable[..., Any], state: Sequence[Any]) -> list[Array]:
    """Return `state` after repeating ``state = step(*state)`` while ``condition(*state)`` holds.

    It is for functions that `lower_fun` lowers. Both functions may use only arrays of the state. The loop has a jvp.
    """
    return _loop.bind(*state, condition=condition, step=step)
