"""Values along manual mesh axes: a value that is the same everywhere as one that varies, and its adjoint, the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import LINEAR
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.sharding_rules import same
from xtrace._src.core.trace import checked_axes, current_trace
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

_Names = tuple[Any, ...]


def _vary_abstract(x: ShapedArray, *, axes: _Names) -> ShapedArray:
    """The operand, as a value that varies along manual mesh axes."""
    return x.update(varying=x.varying | frozenset(axes))


def _sum_abstract(x: ShapedArray, **_: object) -> ShapedArray:
    """The sum along manual mesh axes, the same on all devices along these."""
    return x


def _pvary_transpose(cotangent: Array, operand: object, *, axes: _Names) -> list[Any]:
    return [psum_invariant.bind_positional((cotangent,), (axes,))]


def _sum_transpose(cotangent: Array, operand: object, *, axes: _Names) -> list[Any]:
    return [pvary.bind_positional((cotangent,), (axes,))]


def _pvary_batch(mapped: Any, operands: Sequence[Any], places: Sequence[int], *, axes: _Names) -> tuple[Any, int]:
    return pvary.bind_positional(operands, (axes,)), places[0]


def _sum_batch(
    mapped: Any, operands: Sequence[Any], places: Sequence[int | None], *, axes: _Names
) -> tuple[Any, int | None]:
    return psum_invariant.bind_positional(operands, (axes,)), places[0]


def _emit_identity(builder: FunctionBuilder, x: Value, **_: object) -> Value:
    return x.bitcast(builder.results[0])


def _emit_sum(builder: FunctionBuilder, x: Value, *, axes: _Names) -> Value:
    return builder.all_reduce(x, "add", builder.module.groups_of(axes), builder.results[0])


pvary = Primitive(
    "pvary", ("axes",), sharding=same, abstract=_vary_abstract, emit=_emit_identity, jvp=LINEAR,
    transpose=_pvary_transpose,
    batch=_pvary_batch, varying=lambda varying, *, axes: varying | frozenset(axes), moves_elements=True,
)
psum_invariant = Primitive(
    "psum_invariant", ("axes",), sharding=same, abstract=_sum_abstract, emit=_emit_sum, jvp=LINEAR,
    transpose=_sum_transpose,
    batch=_sum_batch, varying=lambda varying, *, axes: varying - frozenset(axes),
)


def vary(x: Any, axes: Sequence[Any]) -> Any:
    """Return a value as one that varies along those of the manual `axes` that types speak of."""
    checked = checked_axes(current_trace.get())
    missing = tuple([a for a in axes if a in checked and a not in aval_of(x).varying])
    return pvary.bind_positional((x,), (missing,)) if missing else x
