"""Calls of functions that have rules of their own: what the operations of all kinds of rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import with_axis
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.effects import NO_EFFECTS, Effects
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.ir import Atom, ClosedJaxpr
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.calls import jit_call
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.jaxpr_transforms import (
    batch_jaxpr,
    cast_weak_type,
    infer_result_types,
    move_constants_to_inputs,
)
from xtrace._src.transforms.jvp import JVPTracer
from xtrace._src.transforms.lower import emit_equations


def closed_over_message(name: str) -> str:
    """The message of a derivative with respect to what a function with rules of its own closes over."""
    return (
        f"Detected differentiation of the custom_jvp or custom_vjp function {name} with respect to a closed-over "
        "value. That is not supported because the custom rule only specifies how to differentiate the function with "
        "respect to explicit arguments. Pass the closed-over value as an argument and adapt the rule, or use "
        "closure_convert"
    )


def explicit(name: str, values: Sequence[Any], tangents: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    """Return the arguments that rules are about, without the `count` closed-over values before them."""
    if any(t is not None for t in tangents[:count]):
        raise UnexpectedTracerError(closed_over_message(name))
    return list(values[count:]), list(tangents[count:])


def abstract_call(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: object) -> list[ShapedArray]:
    """The results of a function that has rules of its own."""
    return infer_result_types(call_jaxpr, avals)


def emit_inline(builder: FunctionBuilder, *values: Value, call_jaxpr: ClosedJaxpr, **_: object) -> list[Value]:
    """Write the equations of the jaxpr in place of the call."""
    jaxpr, results = call_jaxpr.jaxpr, builder.results
    operands: dict[Atom, Value] = dict(zip(jaxpr.invars, values, strict=True))
    emitted = emit_equations(builder, jaxpr, operands)
    builder.results = results
    return emitted


def effects_of_call(*, call_jaxpr: ClosedJaxpr, **_: object) -> Effects:
    """Return the effects of the function, none where it is one of Python."""
    return call_jaxpr.effects if isinstance(call_jaxpr, ClosedJaxpr) else NO_EFFECTS


def evaluate_call(*operands: object, call_jaxpr: Any, name: str, **_: object) -> list[Any]:
    """Call the function: Python's, or that of a jaxpr as a program."""
    if isinstance(call_jaxpr, ClosedJaxpr):
        return jit_call.bind_positional(operands, (name, call_jaxpr, (), False, None, False))
    results: list[Any] = call_jaxpr.function(*operands)
    if any(type(x) is JVPTracer for x in results):
        raise UnexpectedTracerError(closed_over_message(name))
    return results


def transpose_inline(
    cotangents: Sequence[Any], *operands: ArrayLike, call_jaxpr: ClosedJaxpr, name: str, **_: object
) -> list[Any]:
    """Transpose the jaxpr of a call on a tape."""
    # A linear function of tangents is transposed as any other: its rules are about its derivative.
    return jit_call.rule("transpose")(
        cotangents, *operands, name=name, jaxpr=call_jaxpr, compiler_options=None
    )


def partial_evaluate_inline(
    unknown: tuple[bool, ...], *, name: str, call_jaxpr: ClosedJaxpr, **_: object
) -> Callable[[Sequence[Any]], list[Any]] | None:
    """Split the jaxpr of a call by the operands that are unknown."""
    # What is on a tape is transposed, and needs rules no more.
    assert jit_call.partial_evaluate is not None
    return jit_call.partial_evaluate(unknown, name=name, jaxpr=call_jaxpr)


def cast_results(results: Sequence[Any], call_jaxpr: Any) -> list[Any]:
    """Return the results of a rule with the weak types that the jaxpr declares."""
    if not isinstance(call_jaxpr, ClosedJaxpr):
        return list(results)
    return [cast_weak_type(x, a) for x, a in zip(results, call_jaxpr.out_avals, strict=True)]


def batch_call(
    mapped: MappedAxis, call_jaxpr: Any, operands: Sequence[Any], axes: Sequence[int | None],
    also: Sequence[bool] | None = None,
) -> tuple[Any, list[Any], Callable[[Sequence[Any], Sequence[int | None]], list[Any]], Callable[[], list[int | None]]]:
    """Return the function batched, its operands, what puts results in order, and where the axis is in them.

    The axis is at 0 in those results that have it: those of a jaxpr that depend on it, with those that `also` says, and
    those of a Python function that have it, as is known after the call.
    """
    size = mapped.size
    if isinstance(call_jaxpr, ClosedJaxpr):
        mapped_results = find_mapped_results(call_jaxpr, mapped, axes)
        if also is not None:
            mapped_results = tuple([a or b for a, b in zip(mapped_results, also, strict=True)])
        batched, found_places = batch_jaxpr(call_jaxpr, mapped, tuple(axes), mapped_results)
        operands = [*batched.consts, *operands]

        def as_jaxpr(results: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
            # A rule may return the same for every index of the axis along it.
            return [
                with_axis(x, i, size) if wanted else x if i is None else index_in_dim(x, 0, i, False)
                for x, i, wanted in zip(results, places, mapped_results, strict=True)
            ]

        return move_constants_to_inputs(batched), list(operands), as_jaxpr, lambda: list(found_places)
    where: list[int | None] = []
    mapping = call_jaxpr.mapping(mapped)

    def in_order(results: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
        where[:] = [None if i is None else 0 for i in places]
        return [x if i is None else with_axis(x, i, size) for x, i in zip(results, places, strict=True)]

    def call(*values: ArrayLike) -> list[Any]:
        return in_order(*mapping(call_jaxpr.function, values, axes))

    return call_jaxpr.batched(call), list(operands), in_order, lambda: where


def find_mapped_results(closed: ClosedJaxpr, mapped: MappedAxis, axes: Sequence[int | None]) -> tuple[bool, ...]:
    """Return which results depend on the mapped axis."""
    return tuple([i is not None for i in batch_jaxpr(closed, mapped, tuple(axes))[1]])
