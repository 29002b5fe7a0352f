"""The identity that attaches frontend attributes to the operation that computes its operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import IN_PLACE
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.primitive import Primitive
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.stablehlo.frontend_attributes import annotate, find_operation


def _abstract(aval: ShapedArray, **_: object) -> ShapedArray:
    """Return the operand."""
    return aval


def _emit(builder: FunctionBuilder, x: Value, *, xla_metadata_kvs: tuple[tuple[str, str], ...]) -> Value:
    at = find_operation(builder.lines, x.name)
    if at is not None:
        builder.lines[at] = annotate(builder.lines[at], dict(xla_metadata_kvs))
    return x


def _evaluate(x: Any, **_: object) -> Any:
    return x


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, xla_metadata_kvs: Any) -> tuple[Any, Any]:
    # Another operation computes the tangent.
    return xla_metadata_value_p.bind_positional(primals, (xla_metadata_kvs,)), tangents[0]


def _transpose(cotangent: Array, operand: Any, **_: object) -> list[Any]:
    return [cotangent]


xla_metadata_value_p = Primitive(
    "xla_metadata_value", ("xla_metadata_kvs",), abstract=_abstract, emit=_emit, jvp=_jvp, transpose=_transpose,
    batch=IN_PLACE, evaluate=_evaluate, moves_elements=True,
)
