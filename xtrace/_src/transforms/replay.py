"""Replay of closed sub-programs: one runs once for operands of given types; later calls replay its equations.

A closed sub-program is a function of arrays whose equations depend only on the operands' types, static values, the
settings and the stack of traces: a rule of an operation, or a function of the library. The first call runs it under a
copy of the stack. Its equations become templates, one for each recording trace, and later calls instantiate these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.source import Position, user_position
from xtrace._src.core.jaxprs.ir import Atom, are_cacheable
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.transforms.equation_templates import NOT_REPLAYABLE, EquationTemplate, is_closed
from xtrace._src.transforms.stage import StagedTracer, StagingTrace


class StackedTrace(Trace):
    """A trace above others; its tracers consist of values of the traces below, and of its tape if it has one."""

    __slots__ = ("stack", "fusion_level")

    # The traces from this one down to a staging trace; None if there is no staging trace below.
    stack: TraceStack | None

    # The trace that records the linear operations on tangents.
    tape: StagingTrace | None = None

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.fusion_level = parent.fusion_level

    def rebind(self, parent: Trace | None) -> None:
        """Put the trace above another parent."""
        self.parent = parent
        self.fusion_level = 0 if parent is None else parent.fusion_level
        self.stack = TraceStack.below(self)

    def end(self) -> None:
        # The stack refers to the trace; without the cycle, both are freed at once.
        self.stack = None
        super().end()

    @property
    def signature(self) -> Any:
        """The transformation and its parameters, hashable."""
        raise NotImplementedError

    def copy_above(self, parent: Trace) -> StackedTrace:
        """Return a new trace of the same signature above `parent`, which replays nothing."""
        raise NotImplementedError

    def owns_any(self, values: Sequence[Any]) -> bool:
        """Whether one of the values is a tracer of this trace."""
        raise NotImplementedError

    def flatten_tracer(self, tracer: object) -> tuple[Any, tuple[Any, ...]]:
        """Return a tracer's hashable label, and its values in other traces."""
        raise NotImplementedError

    def unflatten_tracer(self, label: object, *values: object) -> Any:
        """Return the tracer with this label and these values."""
        raise NotImplementedError


# A plan builds values on a stack. Its steps, in order: (recorder, number of the atom, 0) pushes an atom of a recorder;
# (level, label, n) replaces the last n values, 1 or 2, by the tracer of this level and label with these values;
# `_ABSENT` pushes None.
_ABSENT = (-1, None, -1)
_Plan = list[tuple[int, Any, int]]


class TraceStack:
    """The traces from a top trace down to the staging trace at the bottom.

    The *recorders* are the bottom, number 0, and the tapes. The *levels* are the numbers of the other traces, from the
    lowest. The *spec* of values is the hashable form of a plan: a list in which an aval is the next atom of the bottom,
    a number and an aval are the next atom of the tape with this number, and (level, label, n) is a tracer of the n
    values before it.
    """

    __slots__ = ("traces", "recorders", "signature", "_levels", "_numbers")

    def __init__(self, traces: Sequence[StackedTrace], bottom: StagingTrace) -> None:
        self.traces = traces
        self.recorders = [bottom, *[t.tape for t in traces if t.tape is not None]]
        self.signature = tuple([t.signature for t in traces])
        self._levels: dict[Trace, int] = {trace: i for i, trace in enumerate(traces)}
        self._numbers: dict[Trace, int] = {recorder: i for i, recorder in enumerate(self.recorders)}

    @classmethod
    def below(cls, top: Trace | None) -> TraceStack | None:
        """Return the stack whose top is `top`; None if there is no staging trace at the bottom."""
        traces = []
        while isinstance(top, StackedTrace):
            traces.append(top)
            top = top.parent
        if type(top) is not StagingTrace:
            return None
        if traces:
            return cls(traces[::-1], top)
        if top.stack is None:
            top.stack = cls((), top)
        return top.stack  # type: ignore[no-any-return]

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        """Return the result of an operation on tracers of the top, replayed; None if it cannot be replayed."""
        rule = functools.partial(_apply_rule, primitive, parameters)
        replayed = self.replay(primitive.subprograms, ("process", parameters), rule, operands)
        if replayed is None:
            return None
        return replayed[0] if primitive.multiple_results else replayed[0][0]

    def replay(
        self, table: Table, static: tuple[Any, ...], function: Callable[..., tuple[Sequence[Any], Any]],
        values: Sequence[Any], source: Position | None = None,
    ) -> tuple[list[Any], Any] | None:
        """Return ``function(top, *values)``, recorded in `table` or replayed from it; None if it cannot be replayed.

        `function` depends on `static` and the specs of `values` only. It returns a flat list of results, with None for
        absent ones, and their tree (None for a rule). The equations get the position `source`, by default the user's.
        """
        bottom = self.recorders[0]
        # The check for leaks watches the tracers of users' rules, so these must run each time.
        if bottom.ended or bottom.checked:
            return None
        atoms: list[list[Atom]] = [[] for _ in self.recorders] if self.traces else [[]]
        specs: list[Any] = []
        try:
            for x in values:
                if type(x) is StagedTracer and x.owner is bottom:
                    atoms[0].append(x.variable)
                    specs.append(x.aval)
                else:
                    self._flatten(x, specs, atoms)
            key = (static, config.cache_key(), self.signature, *specs)
            subprogram = table.get(key)
        except (TypeError, AttributeError):
            # An operand is no array, or a parameter does not hash: the function itself raises the error.
            return None
        if subprogram is None:
            if not are_cacheable(static):
                return None
            subprogram = self._record(function, specs)
            table.remember(key, subprogram)
        if subprogram is NOT_REPLAYABLE:
            return None
        return subprogram.instantiate(self, atoms, source if source is not None else user_position(3))  # type: ignore[no-any-return]

    def _flatten(self, value: object, specs: list[Any], atoms: list[list[Atom]]) -> None:
        """Append the spec of a value to `specs`, and its atoms to the lists of their recorders."""
        if value is None:
            specs.append(_ABSENT)
            return
        level = self._levels.get(value.owner) if isinstance(value, Tracer) else None
        label, parts = (None, (value,)) if level is None else self.traces[level].flatten_tracer(value)
        numbers = self._numbers
        for x in parts:
            if type(x) is StagedTracer and (number := numbers.get(x.owner)) is not None:
                atoms[number].append(x.variable)
                if number:
                    specs.append(number)
                specs.append(x.aval)
            elif level is not None:
                self._flatten(x, specs, atoms)
            else:
                atom = self.recorders[0].capture(value)
                atoms[0].append(atom)
                specs.append(atom.aval)
        if level is not None:
            specs.append((level, label, len(parts)))

    def unflatten(self, plan: _Plan, atoms: Sequence[Sequence[Atom]]) -> list[Any]:
        """Build the values of a plan from the atoms of each recorder."""
        values: list[Any] = []
        traces, recorders = self.traces, self.recorders
        for number, what, count in plan:
            if not count:
                atom = atoms[number][what]
                values.append(StagedTracer(recorders[number], atom.aval, atom))
            elif count == 1:
                values[-1] = traces[number].unflatten_tracer(what, values[-1])
            elif count == 2:
                second = values.pop()
                values[-1] = traces[number].unflatten_tracer(what, values[-1], second)
            else:
                values.append(None)
        return values

    def _record(self, function: Callable[..., tuple[Sequence[Any], Any]], specs: Sequence[Any]) -> Any:
        """Run ``function(top, *values)`` for values of these specs under a copy of the stack; return a `Subprogram`."""
        stack = self._copy()
        recorders = stack.recorders
        avals: list[list[Any]] = [[] for _ in recorders]
        plan = _plan(specs, avals)
        inputs = [[recorder.new_input(a).variable for a in given] for recorder, given in zip(recorders, avals)]
        values = stack.unflatten(plan, inputs)
        top = stack.traces[-1] if stack.traces else recorders[0]
        try:
            with use_trace(top):
                made, out_tree = function(top, *values)
                outputs: list[list[Atom]] = [[] for _ in recorders]
                residual_specs: list[list[Any]] = [[] for _ in recorders[1:]]
                result_specs: list[Any] = []
                for tape, residuals in zip(recorders[1:], residual_specs, strict=True):
                    for _, x in tape.constants:
                        stack._flatten(x, residuals, outputs)
                for x in made:
                    stack._flatten(x, result_specs, outputs)
        finally:
            for trace in (*stack.traces, *recorders):
                trace.end()
        bottom, *tapes = recorders
        if not is_closed(bottom, bottom.constants) or any(tape.effects for tape in tapes):
            return NOT_REPLAYABLE
        templates = [EquationTemplate(bottom, bottom.inputs, bottom.constants, outputs[0])]
        for tape, wanted in zip(tapes, outputs[1:], strict=True):
            templates.append(EquationTemplate(tape, [*tape.inputs, *[v for v, _ in tape.constants]], (), wanted))
        avals = [[] for _ in recorders]
        residual_plans = [_plan(specs, avals) for specs in residual_specs]
        return Subprogram(templates, residual_plans, _plan(result_specs, avals), out_tree)

    def _copy(self) -> TraceStack:
        """Return a stack of new traces with the same signature, above the bottom of this one."""
        bottom = StagingTrace(self.recorders[0], self.recorders[0].debug_info)
        traces: list[StackedTrace] = []
        for trace in self.traces:
            traces.append(trace.copy_above(traces[-1] if traces else bottom))
        return TraceStack(traces, bottom)


def _plan(specs: Sequence[Any], avals: list[list[Any]]) -> _Plan:
    """Return the plan of values of these specs, and append the types of their atoms to the lists of their recorders."""
    plan: _Plan = []
    number = 0
    for step in specs:
        if type(step) is tuple:
            plan.append(step)
        elif type(step) is int:
            number = step
        else:
            plan.append((number, len(avals[number]), 0))
            avals[number].append(step)
            number = 0
    return plan


class Subprogram:
    """The templates of a closed sub-program, one for each recorder, and the plans of its residuals and results.

    The inputs of a tape's template are those of the tape, then its residuals, which are values of the traces below.
    """

    __slots__ = ("templates", "residuals", "results", "out_tree")

    def __init__(
        self, templates: list[EquationTemplate], residuals: list[_Plan], results: _Plan, out_tree: Any
    ) -> None:
        self.templates, self.residuals, self.results, self.out_tree = templates, residuals, results, out_tree

    def instantiate(
        self, stack: TraceStack, inputs: Sequence[list[Atom]], source: Position | None
    ) -> tuple[list[Any], Any]:
        """Append the equations to the recorders of `stack`; return the flat results and their tree."""
        recorders, templates = stack.recorders, self.templates
        outputs: list[Sequence[Atom]] = [templates[0].instantiate(recorders[0], inputs[0], source)]
        for number, residuals in enumerate(self.residuals, 1):
            tape, atoms = recorders[number], inputs[number]
            for x in stack.unflatten(residuals, outputs) if residuals else ():
                atoms.append(tape.capture(x))
            outputs.append(tape.append(templates[number], atoms, source))
        return stack.unflatten(self.results, outputs), self.out_tree


def call(function: Callable[..., Any], operands: Sequence[Any], key: tuple[Any, ...], table: Table) -> Any:
    """Return ``function(*operands)``; under a recording trace, replayed from `table`.

    The function depends on its operands' types, on `key` and on the settings only.
    """
    trace = current_trace.get()
    while isinstance(trace, StackedTrace) and not trace.owns_any(operands):
        trace = trace.parent  # type: ignore[assignment]
    stack = trace.stack if isinstance(trace, StackedTrace) else TraceStack.below(trace)
    if stack is not None:
        replayed = stack.replay(table, key, functools.partial(_apply_function, function), operands)
        if replayed is not None:
            return replayed[1].unflatten(replayed[0])
    return function(*operands)


def _apply_rule(
    primitive: Primitive, parameters: tuple[Any, ...], top: Trace, *operands: Array
) -> tuple[Sequence[Any], None]:
    results = top.process(primitive, operands, parameters)
    return (results if primitive.multiple_results else [results]), None


def _apply_function(function: Callable[..., Any], top: Trace, *operands: Array) -> tuple[Sequence[Any], Any]:
    return pytree.tree_flatten(function(*operands))
