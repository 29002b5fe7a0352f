"""Calls of equation templates on a tape: a call is transposed as a whole; its other rules use the equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.source import Position
from xtrace._src.core.jaxprs.effects import NO_EFFECTS
from xtrace._src.core.jaxprs.ir import Atom, Jaxpr, JaxprEqn, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.backward import backward
from xtrace._src.transforms.batch import MappedAxis, batch
from xtrace._src.transforms.equation_templates import Equations, EquationTemplate, RecordingTrace
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jvp import jvp
from xtrace._src.transforms.lower import emit_jaxpr


def _evaluate(operands: Sequence[Any], template: EquationTemplate) -> list[Any]:
    jaxpr, consts = template.jaxpr(None)
    return evaluate(jaxpr, consts, operands)


def _abstract(*avals: ShapedArray, template: EquationTemplate) -> list[ShapedArray]:
    """Call an equation template."""
    return template.types


def _emit(builder: FunctionBuilder, *operands: Value, template: EquationTemplate) -> list[Value]:
    position = builder.place[0] if builder.place is not None else None
    jaxpr, consts = template.jaxpr(position)
    return emit_jaxpr(builder, jaxpr, operands, consts)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, template: EquationTemplate) -> tuple[list[Any], list[Any]]:
    return jvp(lambda *operands: _evaluate(operands, template), primals, tangents)


def _transpose(cotangents: Sequence[Any], *operands: object, template: EquationTemplate) -> list[Any]:
    jaxpr, consts = template.jaxpr(None)
    return backward(jaxpr, consts, operands, cotangents)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, template: EquationTemplate
) -> tuple[list[Any], list[int | None]]:
    return batch(lambda *values: _evaluate(values, template), mapped, operands, axes)


inlined_call = Primitive(
    "inlined_call", ("template",), holds_jaxprs=True, abstract=_abstract, emit=_emit, jvp=_jvp, transpose=_transpose,
    batch=_batch, multiple_results=True,
)


def call_template(template: EquationTemplate, inputs: list[Atom], source: Position | None) -> JaxprEqn:
    """Return the equation that calls a template."""
    return JaxprEqn(inputs, [Var(aval) for aval in template.types], inlined_call, (template,), NO_EFFECTS, source)


def inline_calls(trace: RecordingTrace, outputs: Sequence[Atom]) -> tuple[list[JaxprEqn], list[Atom]]:
    """Return the equations of `trace`, with calls of templates inlined, and the atoms of `outputs`."""
    into = Equations()
    into.constants = trace.constants
    atoms: dict[Atom, Atom] = {}
    for equation in trace.equations:
        inputs = [atoms.get(x, x) for x in equation.invars]
        if equation.primitive is inlined_call:
            (template,) = equation.parameters
            results = template.instantiate(into, inputs, equation.source)
            atoms.update(zip(equation.outvars, results, strict=True))
        else:
            into.equations.append(equation.replace(invars=inputs))
    return into.equations, [atoms.get(x, x) for x in outputs]


def inline_calls_in_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """Return `jaxpr` with calls of templates replaced by their equations, and the constants of both."""
    given = Equations()
    given.equations, given.constants = jaxpr.eqns, list(zip(jaxpr.constvars, consts, strict=True))
    equations, outputs = inline_calls(given, jaxpr.outvars)
    variables, values = [v for v, _ in given.constants], [x for _, x in given.constants]
    return jaxpr.replace(constvars=variables, eqns=equations, outvars=outputs), values
