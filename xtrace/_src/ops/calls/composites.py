"""Named composite operations for XLA's backends, and sinks that protect values from dead-code elimination."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import Effect, Effects, ordered_effects
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.calls.ffi import CallAttribute
from xtrace._src.ops.control_flow.bodies import flatten_argument, same_type, stage_body
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.jaxpr_transforms import batch_jaxpr, move_constants_to_inputs
from xtrace._src.transforms.lower import emit_private_function


def _composite_abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, name: str, **_: object) -> list[ShapedArray]:
    """Call a named operation, defined by its decomposition."""
    if len(avals) != len(jaxpr.in_avals) or not all(map(same_type, avals, jaxpr.in_avals)):
        raise TypeError(f"composite {name}: the decomposition takes {jaxpr.in_avals}, got {list(avals)}")
    return jaxpr.out_avals


def _composite_emit(
    builder: FunctionBuilder, *values: Value, attributes: Any, jaxpr: ClosedJaxpr, name: str, version: int
) -> list[Value]:
    results = builder.results
    if ordered_effects(jaxpr.effects):
        raise NotImplementedError(
            f"composite {name}: a composite cannot contain ordered callbacks; use ordered=False, or call them outside "
            "of the composite"
        )
    function = emit_private_function(builder, jaxpr.jaxpr, name)
    operands = ", ".join(x.name for x in values)
    given = ", ".join(f"{_quote(k)} = {v.text}" for k, v in attributes if v is not None)
    texts = [f"composite_attributes = {{{given}}}"] if given else []
    texts += [f"decomposition = @{function.name}", f"version = {version} : i32"]
    head = f"stablehlo.composite {_quote(name)} {operands} {{{', '.join(texts)}}}"
    return builder.line_of_many(f"{head} : {builder.function_type(values, results)}", results)


def _quote(text: str) -> str:
    return attributes.string(text)


def _composite_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, attributes: object, jaxpr: ClosedJaxpr,
    name: str, version: int,
) -> tuple[list[Any], tuple[int | None, ...]]:
    batched, out_axes = batch_jaxpr(jaxpr, mapped, tuple(axes))
    operands = [*batched.consts, *operands]
    return composite_p.bind_positional(
        operands, (attributes, move_constants_to_inputs(batched), name, version)
    ), out_axes


def _composite_effects(*, jaxpr: ClosedJaxpr, **_: object) -> Effects:
    return jaxpr.effects


composite_p = Primitive(
    "composite", ("attributes", "jaxpr", "name", "version"), holds_jaxprs=True, abstract=_composite_abstract,
    emit=_composite_emit,
    effects=_composite_effects, batch=_composite_batch, multiple_results=True, memoised=False,
    jvp=no_rule(
        "a composite has no derivative: only XLA's backends know the meaning of its name. Give the function that calls "
        "it a derivative with xtrace.custom_jvp or xtrace.custom_vjp", ValueError,
    ),
)


# The names that StableHLO accepts.
_NAME = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Return a function that calls one named operation, for which a backend may have its own code.

    Args:
        decomposition: a function of arrays or trees of arrays that defines the operation.
        name: a name with a namespace, such as ``"my.op"``.
        version: the version of the operation, an integer.

    Returns:
        A function of the same arguments; keyword arguments are attributes of the operation. It has no derivative; use
        `custom_vjp`.

    Raises:
        TypeError: `decomposition` cannot be called, or an attribute has no form in StableHLO.
        ValueError: `name` has no namespace, or the returned function is differentiated.

    Example:
        >>> lax.composite(lambda x: x * 2.0, "my.double")(1.0)
        Array(2., dtype=float32, weak_type=True)
    """
    if not callable(decomposition):
        raise TypeError(f"composite: decomposition must be a function, got {abbreviate(decomposition)}")
    if not isinstance(name, str):
        raise TypeError(f"composite: name must be a string such as 'my.op', got {abbreviate(name)}")
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"composite: name must be a namespace and a name, joined by a dot, such as 'my.op'; got {abbreviate(name)}"
        )

    def call(*args: Any, **keywords: Any) -> Any:
        leaves, in_tree, avals = flatten_argument("args", args)
        named = tuple(
            [(k, None if v is None else CallAttribute("composite", k, v)) for k, v in sorted(keywords.items())]
        )
        body = stage_body("composite", lambda *a: decomposition(*a, **keywords), in_tree, avals)
        results = composite_p.bind_positional([*body.consts, *leaves], (named, body.jaxpr, name, int(version)))
        return pytree.tree_unflatten(body.out_tree, results)

    return call


_KEPT = Effect("DceSink")


def _sink_abstract(x: ShapedArray, **_: object) -> list[ShapedArray]:
    """Read a value and return nothing."""
    return []


def _sink_emit(builder: FunctionBuilder, x: Value, *, prevent_mlir_dce: bool) -> list[Value]:
    if prevent_mlir_dce:
        text = (
            f"stablehlo.custom_call @dce_sink({x.name}) {{api_version = 4 : i32, has_side_effect = true}} : "
            f"({x.type}) -> ()"
        )
        builder.line_of_many(text, [])
    return []


def _sink_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: object) -> tuple[list[Any], list[Any]]:
    dce_sink_p.bind_positional(primals, tuple(parameters.values()))
    return [], []


def _sink_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: object
) -> tuple[list[Any], list[Any]]:
    dce_sink_p.bind_positional(operands, tuple(parameters.values()))
    return [], []


dce_sink_p = Primitive(
    "dce_sink", ("prevent_mlir_dce",), abstract=_sink_abstract, emit=_sink_emit, jvp=_sink_jvp, batch=_sink_batch,
    effects=lambda **_: frozenset((_KEPT,)), multiple_results=True,
)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Read a value, so that its computation stays in the program although no result needs it.

    Args:
        val: an array or a tree of arrays.
        prevent_mlir_dce: whether it stays also where MLIR simplifies programs.

    Raises:
        TypeError: a leaf is no array.

    Example:
        >>> xtrace.make_jaxpr(lambda x: lax.dce_sink(x + 1))(1.0).eqns[-1].primitive
        dce_sink
    """
    for leaf in flatten_argument("val", val)[0]:
        dce_sink_p.bind_positional((leaf,), (bool(prevent_mlir_dce),))
