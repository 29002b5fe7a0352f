"""The call of a jitted function inside another: one equation, one private function of the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace.core.avals import ShapedArray
from xtrace.core.effects import Effects
from xtrace.core.ir import ClosedJaxpr
from xtrace.core.primitive import Primitive
from xtrace.core.tangents import Linear
from xtrace.stablehlo.builder import FunctionBuilder, Value
from xtrace.transforms.batch import MappedAxis
from xtrace.transforms.closed import (
    as_called,
    batch_jaxpr,
    jvp_jaxpr,
    linearize_jaxpr,
    result_types,
    spread,
    transpose_jaxpr,
)
from xtrace.transforms.lower import emit_call


def _abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """The results of a jitted function on the operands."""
    return result_types(jaxpr, avals)


def _emit(builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, name: str, **_: Any) -> list[Value]:
    return emit_call(builder, jaxpr.jaxpr, name, values)


def _effects(*, jaxpr: ClosedJaxpr, **_: Any) -> Effects:
    return jaxpr.effects


def _call(closed: ClosedJaxpr, operands: Sequence[Any], name: str, options: Any = None) -> list[Any]:
    """Bind the call of `closed`, whose constants become operands."""
    if closed.consts:
        closed, operands = as_called(closed), [*closed.consts, *operands]
    return jit_call.apply(operands, (name, closed, (), False, options))  # type: ignore[no-any-return]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any, **_: Any
) -> tuple[list[Any], list[Any]]:
    both, nonzero = jvp_jaxpr(jaxpr, tuple([t is not None for t in tangents]))
    results = _call(both, [*primals, *[t for t in tangents if t is not None]], name, compiler_options)
    count = len(nonzero)
    return results[:count], spread(results[count:], nonzero)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any, **_: Any
) -> tuple[list[Any], list[Any]]:
    parts = linearize_jaxpr(jaxpr, tuple([t is not None for t in tangents]))
    results = _call(parts.known, primals, name, compiler_options)
    operands = [*parts.gather(primals, results), *[t for t in tangents if t is not None]]
    moved = _call(parts.linear, operands, name, compiler_options)
    return results[: len(parts.nonzero)], spread(moved, parts.nonzero)


def _transpose(
    cotangents: Sequence[Any], *operands: Any, name: str, jaxpr: ClosedJaxpr, compiler_options: Any, **_: Any
) -> list[Any]:
    linear = tuple([type(x) is Linear for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    transposed, found = transpose_jaxpr(jaxpr, linear, nonzero)
    known = [x for x in operands if type(x) is not Linear]
    results = _call(transposed, [*known, *[c for c in cotangents if c is not None]], name, compiler_options)
    return spread(spread(results, found), linear)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, jaxpr: ClosedJaxpr,
    compiler_options: Any, **_: Any,
) -> tuple[list[Any], tuple[int | None, ...]]:  # fmt: skip
    batched, out_axes = batch_jaxpr(jaxpr, mapped, tuple(axes))
    return _call(batched, operands, name, compiler_options), out_axes


jit_call = Primitive(
    "jit",
    ("name", "jaxpr", "donated_invars", "keep_unused", "compiler_options"),
    abstract=_abstract,
    emit=_emit,
    effects=_effects,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    memoised=False,
    unprinted={"donated_invars": (), "keep_unused": False},
)
