"""Recordings: equations that were recorded once, kept in a form in which they are written into traces again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xtrace.core.avals import ShapedArray
from xtrace.core.effects import NO_EFFECTS, Effects
from xtrace.core.ir import Atom, JaxprEqn, Literal, Var
from xtrace.core.primitive import Primitive
from xtrace.core.source import Position
from xtrace.core.trace import Tracer

# What a table of recordings holds for what cannot be recorded: it reads a tracer from outside, or has effects.
NEVER = object()


class RecordingTrace(Protocol):
    """A trace that records equations."""

    equations: list[JaxprEqn]
    constants: list[tuple[Var, Any]]
    effects: Effects

    def capture(self, value: Any) -> Atom:
        """Return the atom of a value from outside."""


def is_closed(trace: RecordingTrace, constants: Sequence[tuple[Var, Any]]) -> bool:
    """Whether what `trace` recorded, with these constants, can be written into any other."""
    return not trace.effects and not any(isinstance(x, Tracer) for _, x in constants)


class Recording:
    """Equations with numbers in place of atoms: the inputs come first, then literals, constants, and what is computed.

    The constants are arrays. `outputs` are the numbers of what is asked for.
    """

    __slots__ = ("literals", "constants", "steps", "outputs")

    def __init__(
        self, trace: RecordingTrace, inputs: Sequence[Atom], constants: Sequence[tuple[Var, Any]],
        outputs: Sequence[Atom],
    ) -> None:  # fmt: skip
        read = [*outputs, *[x for e in trace.equations for x in e.invars]]
        self.literals = [x for x in dict.fromkeys(read) if type(x) is Literal and x not in inputs]
        self.constants = [value for _, value in constants]
        order: list[Atom] = [*inputs, *self.literals, *[v for v, _ in constants]]
        number = {atom: i for i, atom in enumerate(order)}
        self.steps: list[tuple[Primitive, tuple[Any, ...], list[int], list[ShapedArray]]] = []
        for equation in trace.equations:
            places = [number[x] for x in equation.invars]
            self.steps.append((equation.primitive, equation.parameters, places, [v.aval for v in equation.outvars]))
            for variable in equation.outvars:
                number[variable] = len(number)
        self.outputs = [number[x] for x in outputs]

    def write(self, trace: RecordingTrace, inputs: list[Atom], source: Position | None) -> list[Atom]:
        """Append the equations to those of `trace`, applied to `inputs`, and return the outputs."""
        atoms = inputs + self.literals
        if self.constants:
            atoms += [trace.capture(x) for x in self.constants]
        append = trace.equations.append
        for primitive, parameters, places, avals in self.steps:
            outvars = [Var(aval) for aval in avals]
            append(JaxprEqn([atoms[i] for i in places], outvars, primitive, parameters, NO_EFFECTS, source))
            atoms += outvars
        return [atoms[i] for i in self.outputs]
