"""Recordings under stacked traces: what a rule binds through vmap of jvp of … is recorded once and copied afterwards.

A rule depends on its operands' types, on the parameters and on the settings, and on nothing else: its operands are
tracers. So while a program is traced each rule runs once for each of these, under a copy of the stack that records by
itself, and what was recorded is written straight into the staging trace at the bottom and the tapes above it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace.core import config, pytree
from xtrace.core.arrays import Array
from xtrace.core.ir import Atom, can_be_remembered
from xtrace.core.primitive import Primitive
from xtrace.core.source import Position, user_position
from xtrace.core.tables import Table
from xtrace.core.trace import Trace, Tracer, current_trace
from xtrace.transforms.recordings import NEVER, Recording, is_closed
from xtrace.transforms.stage import StagedTracer, StagingTrace


class StackedTrace(Trace):
    """A trace whose tracers are made of values of traces below it, and of its tape if it has one."""

    __slots__ = ("stack", "evaluates", "fuses")

    # The stack below it, None where what rules bind cannot be copied.
    stack: Stack | None

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.evaluates, self.fuses = parent.evaluates, parent.fuses

    # The tape on which it records what is done to tangents.
    tape: StagingTrace | None = None

    def put_over(self, parent: Trace | None) -> None:
        """Let `parent` be the parent from now on."""
        self.parent = parent
        self.evaluates, self.fuses = (False, 0) if parent is None else (parent.evaluates, parent.fuses)
        self.stack = Stack.of(self)

    def end(self) -> None:
        # The stack holds the trace: neither should wait for the garbage collector.
        self.stack = None
        super().end()

    @property
    def signature(self) -> Any:
        """What it does to operations, hashable."""
        raise NotImplementedError

    def over(self, parent: Trace) -> StackedTrace:
        """Return a new trace that does the same over another parent, and copies nothing that was recorded before."""
        raise NotImplementedError

    def parts(self, tracer: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the values that a tracer is made of, and before them what else it is made of, hashable."""
        raise NotImplementedError

    def joined(self, label: Any, *values: Any) -> Any:
        """Return the tracer that has these parts."""
        raise NotImplementedError


class Stack:
    """The traces from one of them, the top, down to the staging trace that records for all of them, the bottom.

    A value's *structure*, hashable, says how it is made of atoms of the recorders, which are the bottom, number 0, and
    the tapes: the type alone is that of an atom of the bottom, (number, type) is one of a tape, and (trace, label, …)
    a tracer of a trace, counted from the bottom, with the structures of its parts.
    """

    __slots__ = ("traces", "recorders", "signature", "_levels", "_numbers")

    def __init__(self, traces: Sequence[StackedTrace], bottom: StagingTrace) -> None:
        """`traces` are those above the bottom, from the lowest to the top."""
        self.traces = traces
        self.recorders = [bottom, *[t.tape for t in traces if t.tape is not None]]
        self.signature = tuple([t.signature for t in traces])
        self._levels: dict[Trace, int] = {trace: i for i, trace in enumerate(traces)}
        self._numbers: dict[Trace, int] = {recorder: i for i, recorder in enumerate(self.recorders)}

    @classmethod
    def of(cls, top: Trace | None) -> Stack | None:
        """Return the stack below `top`, None where no staging trace is at the bottom."""
        traces = []
        while isinstance(top, StackedTrace):
            traces.append(top)
            top = top.parent
        return cls(traces[::-1], top) if type(top) is StagingTrace else None

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        """Return what the top does to an operation on its tracers, copied; None if that is not recorded."""
        if not primitive.recordable:
            return None
        function = functools.partial(_processed, primitive, parameters)
        found = self.copied(primitive.recordings, ("process", parameters), function, operands)
        if found is None:
            return None
        return found[0] if primitive.multiple_results else found[0][0]

    def call(
        self, function: Callable[..., Any], operands: Sequence[Any], static: dict[str, Any], table: Table
    ) -> Any:
        """Return ``function(*operands, **static)`` as the top does it, copied if it was called like this before."""
        found = None
        if all(isinstance(x, Array) for x in operands):
            head = ("call", tuple(static.items()))
            found = self.copied(table, head, functools.partial(_called, function, static), operands)
        return function(*operands, **static) if found is None else found[1].unflatten(found[0])

    def copied(
        self, table: Table, head: tuple[Any, ...], function: Callable[..., tuple[Sequence[Any], Any]],
        values: Sequence[Any], source: Position | None = None,
    ) -> tuple[list[Any], Any] | None:  # fmt: skip
        """Return what ``function(top, *values)`` returns, from `table` if it is there, None if that is not recorded.

        That is a flat list of results, with None for those there are not, and something else that goes with them.
        What the function binds under `top`, a trace like the top of this stack, depends on `head` and on the types of
        `values`. The equations get the position `source`, by default that of the user.
        """
        bottom = self.recorders[0]
        if not bottom.records_copies():
            return None
        inputs: list[list[Atom]]
        try:
            if self.traces:
                inputs = [[] for _ in self.recorders]
                structures = [self._structure(x, inputs) for x in values]
            else:
                inputs = [[
                    x.variable if type(x) is StagedTracer and x.owner is bottom else bottom.capture(x) for x in values
                ]]  # fmt: skip
                structures = [x.aval for x in inputs[0]]
            key = (head, config.cache_key(), self.signature, *structures)
            found = table.get(key)
        except (TypeError, AttributeError):
            # An operand that is no array, or a parameter that cannot be compared: the function says what is wrong.
            return None
        if found is None:
            if not can_be_remembered(head):
                return None
            found = _StackedRecording.of(self, function, structures)
            table.remember(key, found)
        if found is NEVER:
            return None
        return found.write(self, inputs, source if source is not None else user_position(3))  # type: ignore[no-any-return]

    def _structure(self, value: Any, atoms: list[list[Atom]]) -> Any:
        """Return the structure of a value, whose atoms are appended to those of their recorders."""
        if type(value) is StagedTracer:
            number = self._numbers.get(value.owner)
            if number is not None:
                atoms[number].append(value.variable)
                return (number, value.aval) if number else value.aval
        elif isinstance(value, Tracer):
            level = self._levels.get(value.owner)
            if level is not None:
                label, parts = self.traces[level].parts(value)
                return (level, label, *[self._structure(x, atoms) for x in parts])
        atom = self.recorders[0].capture(value)
        atoms[0].append(atom)
        return atom.aval

    def _made(self, structure: Any, atom_of: Callable[[int, Any], Atom]) -> Any:
        """Return the value of a structure; `atom_of` gives the next atom of a recorder, by its number and the type."""
        if type(structure) is not tuple:
            return StagedTracer(self.recorders[0], structure, atom_of(0, structure))
        if len(structure) == 2:
            number, aval = structure
            return StagedTracer(self.recorders[number], aval, atom_of(number, aval))
        level, label, *parts = structure
        return self.traces[level].joined(label, *[self._made(x, atom_of) for x in parts])

    def _alike(self) -> Stack:
        """Return a stack of new traces that does the same; its bottom is above that of this one."""
        bottom = StagingTrace(self.recorders[0], self.recorders[0].debug_info)
        traces: list[StackedTrace] = []
        for trace in self.traces:
            traces.append(trace.over(traces[-1] if traces else bottom))
        return Stack(traces, bottom)


def _processed(
    primitive: Primitive, parameters: tuple[Any, ...], top: Trace, *operands: Any
) -> tuple[Sequence[Any], None]:
    made = top.process(primitive, operands, parameters)
    return (made if primitive.multiple_results else [made]), None


def _called(
    function: Callable[..., Any], static: dict[str, Any], top: Trace, *operands: Any
) -> tuple[Sequence[Any], Any]:
    return pytree.tree_flatten(function(*operands, **static))


class _StackedRecording:
    """What was recorded on each recorder of a stack, and how results and residuals are made of the outputs.

    The inputs of a tape's recording are followed by its residuals, values of the traces below it. Among the outputs of
    a recording those in residuals come first.
    """

    __slots__ = ("recordings", "residuals", "results", "rest")

    def __init__(
        self, recordings: list[Recording], residuals: list[list[Any]], results: list[Any], rest: Any
    ) -> None:  # fmt: skip
        self.recordings, self.residuals, self.results, self.rest = recordings, residuals, results, rest

    @classmethod
    def of(cls, like: Stack, function: Callable[..., tuple[Sequence[Any], Any]], structures: Sequence[Any]) -> Any:
        """Record ``function(top, *values)`` for values of these structures under a new stack; NEVER if it cannot be."""
        stack = like._alike()
        recorders = stack.recorders
        top = stack.traces[-1] if stack.traces else recorders[0]
        values = [stack._made(s, lambda number, aval: recorders[number].new_input(aval).variable) for s in structures]
        token = current_trace.set(top)
        try:
            made, rest = function(top, *values)
            outputs: list[list[Atom]] = [[] for _ in recorders]
            residuals = [[stack._structure(x, outputs) for _, x in tape.constants] for tape in recorders[1:]]
            results = [None if x is None else stack._structure(x, outputs) for x in made]
        finally:
            current_trace.reset(token)
            for trace in (*stack.traces, *recorders):
                trace.end()
        bottom, *tapes = recorders
        if not is_closed(bottom, bottom.constants) or any(tape.effects for tape in tapes):
            return NEVER
        recordings = [Recording(bottom, bottom.inputs, bottom.constants, outputs[0])]
        for tape, wanted in zip(tapes, outputs[1:], strict=True):
            recordings.append(Recording(tape, [*tape.inputs, *[v for v, _ in tape.constants]], (), wanted))
        return cls(recordings, residuals, results, rest)

    def write(self, stack: Stack, inputs: list[list[Atom]], source: Position | None) -> tuple[list[Any], Any]:
        """Write what was recorded into the recorders of `stack`, and return the results and the rest."""
        recorders, recordings = stack.recorders, self.recordings
        if not stack.traces:
            bottom = recorders[0]
            atoms = iter(recordings[0].write(bottom, inputs[0], source))
            return [None if s is None else StagedTracer(bottom, s, next(atoms)) for s in self.results], self.rest
        outputs = [iter(recordings[0].write(recorders[0], inputs[0], source))]

        def next_atom(number: int, _: Any) -> Atom:
            return next(outputs[number])

        for number, residuals in enumerate(self.residuals, 1):
            tape = recorders[number]
            given = inputs[number] + [tape.atom(stack._made(s, next_atom)) for s in residuals]
            outputs.append(iter(tape.append(recordings[number], given, source)))
        return [None if s is None else stack._made(s, next_atom) for s in self.results], self.rest
