"""Equation templates: equations that were recorded once, with numbers in place of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xtrace.core.avals import ShapedArray, aval_of
from xtrace.core.effects import NO_EFFECTS, Effects
from xtrace.core.ir import Atom, Jaxpr, JaxprEqn, Literal, Var
from xtrace.core.primitive import Primitive
from xtrace.core.source import Position, Scopes, within
from xtrace.core.tables import Table
from xtrace.core.trace import Tracer

# The entry of a table for a sub-program that reads a tracer from outside, or has effects.
NOT_REPLAYABLE = object()


class RecordingTrace(Protocol):
    """A trace that records equations."""

    equations: list[JaxprEqn]
    constants: list[tuple[Var, Any]]
    effects: Effects
    scopes: Scopes

    def capture(self, value: Any) -> Atom:
        """Return the atom of a value from outside."""


def is_closed(trace: RecordingTrace, constants: Sequence[tuple[Var, Any]]) -> bool:
    """Whether what `trace` recorded, with these constants, can be written into any other."""
    return not trace.effects and not any(isinstance(x, Tracer) for _, x in constants)


class EquationTemplate:
    """Equations with numbers in place of atoms: inputs first, then literals, constants and the equations' results.

    The constants are arrays. `outputs` are the numbers of the results. `inputs` and `types` are the types of the
    inputs and outputs, and `transposes` is a table of what transposing all of it does.
    """

    __slots__ = ("inputs", "literals", "constants", "steps", "outputs", "types", "transposes")

    def __init__(
        self, trace: RecordingTrace, inputs: Sequence[Atom], constants: Sequence[tuple[Var, Any]],
        outputs: Sequence[Atom],
    ) -> None:  # fmt: skip
        read = [*outputs, *[x for e in trace.equations for x in e.invars]]
        self.literals = [x for x in dict.fromkeys(read) if type(x) is Literal and x not in inputs]
        self.constants = [value for _, value in constants]
        self.inputs, self.types = [x.aval for x in inputs], [x.aval for x in outputs]
        self.transposes = Table(nested=True)
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
            source = within(trace.scopes, source)
        append = trace.equations.append
        for primitive, parameters, places, avals in self.steps:
            # Most have one or two operands and one result; a comprehension takes longer than all the rest of this.
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
        """Return it as a jaxpr with its constants; the equations are at `source`."""
        into, inputs = _Equations(), [Var(aval) for aval in self.inputs]
        outputs = self.instantiate(into, [*inputs], source)
        return Jaxpr([v for v, _ in into.constants], inputs, outputs, into.equations), self.constants


class _Equations:
    """Equations by themselves, with their constants."""

    def __init__(self) -> None:
        self.equations: list[JaxprEqn] = []
        self.constants: list[tuple[Var, Any]] = []
        self.effects = NO_EFFECTS
        self.scopes: Scopes = ()

    def capture(self, value: Any) -> Atom:
        variable = Var(aval_of(value))
        self.constants.append((variable, value))
        return variable


class Group(JaxprEqn):
    """A template in the place of an equation, in a jaxpr that is transposed at once and that nobody else sees."""

    __slots__ = ("template",)

    def __init__(self, template: EquationTemplate, inputs: list[Atom], source: Position | None) -> None:
        outvars = [Var(aval) for aval in template.types]
        super().__init__(inputs, outvars, None, (), NO_EFFECTS, source)  # type: ignore[arg-type]
        self.template = template


def written_out(trace: RecordingTrace, outputs: Sequence[Atom]) -> tuple[list[JaxprEqn], list[Atom]]:
    """Return the equations of `trace` without groups, and the atoms that `outputs` are then."""
    into = _Equations()
    into.constants = trace.constants
    found: dict[Atom, Atom] = {}
    for equation in trace.equations:
        inputs = [found.get(x, x) for x in equation.invars]
        if type(equation) is Group:
            made = equation.template.instantiate(into, inputs, equation.source)
            found.update(zip(equation.outvars, made, strict=True))
        else:
            into.equations.append(equation.replace(invars=inputs))
    return into.equations, [found.get(x, x) for x in outputs]


def without_groups(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """Return `jaxpr` without groups, and its constants, to which those of the groups are added."""
    given = _Equations()
    given.equations, given.constants = jaxpr.eqns, list(zip(jaxpr.constvars, consts, strict=True))
    equations, outputs = written_out(given, jaxpr.outvars)
    variables, values = [v for v, _ in given.constants], [x for _, x in given.constants]
    return jaxpr.replace(constvars=variables, eqns=equations, outvars=outputs), values
