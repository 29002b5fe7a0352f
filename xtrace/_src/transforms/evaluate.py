"""Evaluating a jaxpr under the current trace, which applies transformations of functions to jaxprs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.diagnostics.source import call_at
from xtrace._src.core.jaxprs.ir import Jaxpr, Literal, Var
from xtrace._src.core.trace import current_trace


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Bind the equations of `jaxpr` under the current trace and return its results.

    Equations that are recorded in the process get the source positions of the evaluated equations.
    """
    trace = current_trace.get()
    values: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for equation in jaxpr.eqns:
        operands = [x if type(x) is Literal else values[x] for x in equation.invars]  # type: ignore[index]
        result = call_at(equation, trace.process, equation.primitive, operands, equation.parameters)
        if equation.primitive.multiple_results:
            values.update(zip(equation.outvars, result, strict=True))
        else:
            values[equation.outvars[0]] = result
    return [x if type(x) is Literal else values[x] for x in jaxpr.outvars]  # type: ignore[index]
