"""What linearizing under a staging trace does, recorded once for operands of given types and copied from then on.

This is what gradients are traced by, most of the time; every other stack of traces is the work of `stacks`, and what
holds there of rules and functions holds here: they depend on their operands' types, on parameters and settings only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace.core.avals import ShapedArray
from xtrace.core.ir import Atom
from xtrace.core.source import Position
from xtrace.core.trace import Tracer
from xtrace.transforms.recordings import NEVER, Recording, is_closed
from xtrace.transforms.stage import StagedTracer, StagingTrace


class Linearized:
    """What is done to values, and to tangents, with those of the values that the latter read.

    `results` is how many outputs of `known` are the results; the others are the residuals. `tangents` says for each
    result whether the next output of `linear` is its tangent.
    """

    __slots__ = ("known", "linear", "results", "tangents", "tree")

    def __init__(self, known: Recording, linear: Recording, results: int, tangents: list[bool], tree: Any) -> None:
        self.known, self.linear, self.results, self.tangents, self.tree = known, linear, results, tangents, tree

    @classmethod
    def of(
        cls, trace: StagingTrace, tape: Any, avals: Sequence[ShapedArray], given: Sequence[ShapedArray | None],
        function: Callable[..., tuple[list[Any], list[Any], Any]],
    ) -> Any:  # fmt: skip
        """Record ``function(primals, tangents)`` under two new traces, one of what is known and a tape above it.

        It returns results, their tangents and something else that goes with them. `given` has the types of tangents,
        None where there is none. NEVER if it cannot be recorded.
        """
        known = StagingTrace(trace, trace.debug_info)
        linear = type(tape)(known, trace.debug_info)
        primals = [known.new_input(a) for a in avals]
        tangents = [None if a is None else linear.new_input(a) for a in given]
        results, out, tree = linear.run(function, primals, tangents)
        if any(isinstance(x, Tracer) and x.owner is linear for x in results):
            return NEVER
        atoms = [known.atom(x) for x in results]
        linear_atoms = [linear.atom(t) for t in out if t is not None]
        residuals = {v: x.variable for v, x in linear.constants if type(x) is StagedTracer and x.owner is known}
        constants = [(v, x) for v, x in linear.constants if v not in residuals]
        if not is_closed(known, known.constants) or not is_closed(linear, constants):
            return NEVER
        return cls(
            Recording(known, known.inputs, known.constants, [*atoms, *residuals.values()]),
            Recording(linear, [*linear.inputs, *residuals], constants, linear_atoms),
            len(atoms),
            [t is not None for t in out],
            tree,
        )

    def write(
        self, trace: StagingTrace, tape: Any, atoms: list[Atom], tangents: Sequence[Any], source: Position | None
    ) -> tuple[list[Atom], Sequence[Atom]]:
        """Write it into `trace` and `tape`, and return the results, and the tangents of those that have one."""
        outputs = self.known.write(trace, atoms, source)
        inputs = [t.variable if type(t) is StagedTracer and t.owner is tape else tape.capture(t) for t in tangents]
        results = self.results
        if len(outputs) > results:
            inputs += [tape.residual(x) for x in outputs[results:]]
            del outputs[results:]
        return outputs, tape.append(self.linear, inputs, source)
