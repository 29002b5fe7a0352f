"""Equation templates: equations that were recorded once, with numbers in the place of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.source import Position, Scopes, add_scopes
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, Effects
from xtrace._src.core.jaxprs.ir import Atom, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.trace import Tracer

# The table entry of a sub-program that cannot be replayed: it reads a tracer from outside, or has effects.
NOT_REPLAYABLE = object()


class RecordingTrace(Protocol):
    """A trace that records equations."""

    equations: list[JaxprEqn]
    constants: list[tuple[Var, Any]]
    effects: Effects
    scopes: Scopes

    def capture(self, value: object) -> Atom:
        """Return the atom of a value from outside the trace."""
        ...


def is_closed(trace: RecordingTrace, constants: Sequence[tuple[Var, Any]]) -> bool:
    """Whether the equations of `trace`, with these constants, can be appended to any other trace."""
    return not trace.effects and not any(isinstance(x, Tracer) for _, x in constants)


class EquationTemplate:
    """Equations with numbers in the place of atoms: inputs first, then literals, constants and the equations' results.

    The constants are arrays. `outputs` are the numbers of the outputs. `inputs` and `types` are the types of the inputs
    and outputs.
    """

    __slots__ = ("inputs", "literals", "constants", "steps", "outputs", "types")

    def __init__(
        self, trace: RecordingTrace, inputs: Sequence[Atom], constants: Sequence[tuple[Var, Any]],
        outputs: Sequence[Atom],
    ) -> None:
        read = [*outputs, *[x for e in trace.equations for x in e.invars]]
        self.literals = [x for x in dict.fromkeys(read) if type(x) is Literal and x not in inputs]
        self.constants = [value for _, value in constants]
        self.inputs, self.types = [x.aval for x in inputs], [x.aval for x in outputs]
        order: list[Atom] = [*inputs, *self.literals, *[v for v, _ in constants]]
        number = {atom: i for i, atom in enumerate(order)}
        self.steps: list[tuple[Primitive, tuple[Any, ...], list[int], list[ShapedArray]]] = []
        for equation in trace.equations:
            places = [number[x] for x in equation.invars]
            self.steps.append((equation.primitive, equation.parameters, places, [v.aval for v in equation.outvars]))
            for variable in equation.outvars:
                number[variable] = len(number)
        self.outputs = [number[x] for x in outputs]

    def instantiate(self, trace: RecordingTrace, inputs: list[Atom], source: Position | None) -> list[Atom]:
        """Append the equations to those of `trace`, applied to `inputs`, and return the outputs."""
        atoms = inputs + self.literals
        if self.constants:
            atoms += [trace.capture(x) for x in self.constants]
        if trace.scopes:
            source = add_scopes(trace.scopes, source)
        append = trace.equations.append
        for primitive, parameters, places, avals in self.steps:
            # Most equations have one or two operands and one result. A comprehension would take longer than the rest.
            if len(places) == 2:
                first, second = places
                invars = [atoms[first], atoms[second]]
            elif len(places) == 1:
                invars = [atoms[places[0]]]
            else:
                invars = [atoms[i] for i in places]
            outvars = [Var(avals[0])] if len(avals) == 1 else [Var(aval) for aval in avals]
            append(JaxprEqn(invars, outvars, primitive, parameters, NO_EFFECTS, source))
            atoms += outvars
        return [atoms[i] for i in self.outputs]

    def jaxpr(self, source: Position | None) -> tuple[Jaxpr, list[Any]]:
        """Return the equations as a jaxpr, and its constants; the equations have the position `source`."""
        into, inputs = Equations(), [Var(aval) for aval in self.inputs]
        outputs = self.instantiate(into, [*inputs], source)
        return Jaxpr([v for v, _ in into.constants], inputs, outputs, into.equations), self.constants


class Equations:
    """A recording of equations and constants outside of any trace."""

    def __init__(self) -> None:
        self.equations: list[JaxprEqn] = []
        self.constants: list[tuple[Var, Any]] = []
        self.effects = NO_EFFECTS
        self.scopes: Scopes = ()

    def capture(self, value: object) -> Atom:
        """Return the atom of a value from outside."""
        variable = Var(aval_of(value))
        self.constants.append((variable, value))
        return variable
