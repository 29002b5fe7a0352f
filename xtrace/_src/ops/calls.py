"""The call of a jitted function in a program: one equation, one private function of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.compiler_choices import Inline
from xtrace._src.core.effects import Effects
from xtrace._src.core.ir import ClosedJaxpr
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.source import path_inside
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.core.trace import current_trace
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.discharge import discharge_call
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import (
    analyze_unknowns,
    batch_jaxpr,
    filter_by_mask,
    infer_result_types,
    jvp_jaxpr,
    linearize_jaxpr,
    merge_by_mask,
    move_constants_to_inputs,
    partial_evaluate_jaxpr,
    scatter_by_mask,
    transpose_jaxpr,
)
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.lower import emit_call, emit_equations
from xtrace._src.transforms.scopes import call_in_scopes
from xtrace._src.transforms.stage import StagingTrace


def _abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """Call a jitted function."""
    return infer_result_types(jaxpr, avals)


def _emit(
    builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, name: str, inline: bool | Inline = False, **_: Any
) -> list[Value]:
    if builder.place is not None:
        source, path = builder.place
        builder.place = (source, path_inside(path.removesuffix("jit").removesuffix("/"), f"jit({name})"))
    if inline is Inline.JAX_LATE:
        return emit_equations(builder, jaxpr.jaxpr, dict(zip(jaxpr.jaxpr.invars, values, strict=True)))
    mark = f" {{mhlo.frontend_attributes = {{inlineable = \"{inline.value}\"}}}}" if isinstance(inline, Inline) else ""
    return emit_call(builder, jaxpr.jaxpr, name, values, attributes=mark)


def _effects(*, jaxpr: ClosedJaxpr, **_: object) -> Effects:
    return jaxpr.effects


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any,
    inline: bool | Inline, **_: Any,
) -> tuple[list[Any], list[Any]]:
    return discharge_call(
        lambda closed, values: bind_jit(closed, values, name, compiler_options, inline), keys, operands, jaxpr
    )


def bind_jit(
    closed: ClosedJaxpr, operands: Sequence[Any], name: str, options: object = None, inline: bool | Inline = False
) -> list[Any]:
    """Bind a call of `closed`; its constants become operands."""
    if closed.consts:
        closed, operands = move_constants_to_inputs(closed), [*closed.consts, *operands]
    return jit_call.bind_positional(operands, (name, closed, (), False, options, inline))


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any,
    inline: bool | Inline = False, **_: Any,
) -> tuple[list[Any], list[Any]]:
    both, nonzero = jvp_jaxpr(jaxpr, tuple([t is not None for t in tangents]))
    results = bind_jit(both, [*primals, *[t for t in tangents if t is not None]], name, compiler_options, inline)
    count = len(nonzero)
    return results[:count], scatter_by_mask(results[count:], nonzero)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr,
    compiler_options: object, inline: bool | Inline = False, **_: object,
) -> tuple[list[Any], list[Any]]:
    parts = linearize_jaxpr(jaxpr, tuple([t is not None for t in tangents]))
    results = bind_jit(parts.known, primals, name, compiler_options, inline)
    operands = [*parts.gather(primals, results), *[t for t in tangents if t is not None]]
    if inline is True:
        # The linear equations are inlined on the tape.
        moved = call_in_scopes(evaluate, parts.linear.jaxpr, parts.linear.consts, operands)
    else:
        moved = bind_jit(parts.linear, operands, name, compiler_options, inline)
    return results[: len(parts.nonzero)], scatter_by_mask(moved, parts.nonzero)


def _partial_evaluate(
    unknown: tuple[bool, ...], *, name: str, jaxpr: ClosedJaxpr, compiler_options: object = None,
    inline: bool | Inline = False, **_: object,
) -> Callable[[Sequence[Any]], list[Any]] | None:
    works, pending = analyze_unknowns(jaxpr, unknown)
    if not works and all(pending):
        return None
    parts = partial_evaluate_jaxpr(jaxpr, unknown)

    def compute(operands: Sequence[Any]) -> list[Any]:
        given = filter_by_mask(operands, [not u for u in unknown])
        results = bind_jit(parts.known, given, name, compiler_options, inline)
        rest = [*parts.gather(given, results), *filter_by_mask(operands, unknown)]
        moved = bind_jit(parts.linear, rest, name, compiler_options, inline) if any(parts.nonzero) else []
        return merge_by_mask(results, moved, parts.nonzero)

    return compute


def _transpose(
    cotangents: Sequence[Any], *operands: Array | UndefinedPrimal, name: str, jaxpr: ClosedJaxpr,
    compiler_options: object, inline: bool | Inline = False, **_: object,
) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    transposed, has_cotangent = transpose_jaxpr(jaxpr, linear, nonzero)
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    given = [*known, *[c for c in cotangents if c is not None]]
    results = bind_jit(transposed, given, name, compiler_options, inline)
    return scatter_by_mask(scatter_by_mask(results, has_cotangent), linear)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, jaxpr: ClosedJaxpr,
    compiler_options: Any, inline: bool | Inline = False, **_: Any,
) -> tuple[list[Any], tuple[int | None, ...]]:
    batched, out_axes = batch_jaxpr(jaxpr, mapped, tuple(axes))
    return bind_jit(batched, operands, name, compiler_options, inline), out_axes


jit_call = ListPrimitive(
    "jit", ("name", "jaxpr", "donated_invars", "keep_unused", "compiler_options", "inline"), abstract=_abstract,
    emit=_emit, effects=_effects, jvp=_jvp, linearize=_linearize, partial_evaluate=_partial_evaluate,
    transpose=_transpose, batch=_batch, multiple_results=True, memoised=False, discharge=_discharge,
    unprinted={"donated_invars": (), "keep_unused": False, "inline": False},
)


def evaluate_as_program(closed: ClosedJaxpr, operands: Sequence[Any], name: str) -> list[Any]:
    """Return the results of `closed`: inlined where a jaxpr is staged, otherwise by one program called `name`."""
    enclosing = current_trace.get().enclosing()
    if any(isinstance(t, StagingTrace) and not isinstance(t, Tape) for t in enclosing):
        return call_in_scopes(evaluate, closed.jaxpr, closed.consts, operands)
    return bind_jit(closed, operands, name)
