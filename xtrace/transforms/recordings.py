"""Recordings: what a rule binds for operands of some types, found once, then written into traces without running it.

A rule depends on its operands' types, on the parameters and on the settings, and on nothing else: its operands are
tracers. So while a program is traced each rule runs once for each of these, and its equations are copied from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace.core import config
from xtrace.core.avals import ShapedArray
from xtrace.core.effects import NO_EFFECTS
from xtrace.core.ir import Atom, JaxprEqn, Literal, Var, jaxprs_of
from xtrace.core.primitive import Primitive
from xtrace.core.source import Position, user_position
from xtrace.core.tangents import Linear
from xtrace.core.trace import Tracer, current_trace
from xtrace.transforms.stage import StagedTracer, StagingTrace

_LIMIT = 4096

# What a table holds where a rule cannot be recorded: it reads a tracer from outside, or has effects.
_NEVER = object()


class Recording:
    """Equations with numbers in place of atoms: the inputs come first, then literals, constants, and what is computed.

    The constants are arrays. `outputs` are the numbers of what is asked for.
    """

    __slots__ = ("literals", "constants", "steps", "outputs")

    def __init__(
        self, trace: StagingTrace, inputs: Sequence[Atom], constants: Sequence[tuple[Var, Any]], outputs: Sequence[Atom]
    ) -> None:
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

    def write(self, trace: StagingTrace, inputs: list[Atom], source: Position | None) -> list[Atom]:
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


class _Linearized:
    """A jvp rule's work: on values, and on tangents, with those of the values that the latter read.

    `results` is how many outputs of `known` are the results; the others are the residuals. `tangents` says for each
    result whether the next output of `linear` is its tangent.
    """

    __slots__ = ("known", "linear", "results", "tangents")

    def __init__(self, known: Recording, linear: Recording, results: int, tangents: list[bool]) -> None:
        self.known, self.linear, self.results, self.tangents = known, linear, results, tangents


def _table_of(primitive: Primitive) -> dict[Any, Any]:
    if len(primitive.recordings) >= _LIMIT:
        primitive.recordings.clear()
    return primitive.recordings


def _can_write(trace: StagingTrace) -> bool:
    return not trace.ended and trace.watched is None


def linearized(
    trace: StagingTrace, tape: Any, primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any],
    parameters: tuple[Any, ...],
) -> tuple[Any, Any] | None:  # fmt: skip
    """Return what the jvp rule of `primitive` returns, run under `tape` over `trace`; None if that is not recorded."""
    if primitive.linearize is not None or primitive.effects is not None or not _can_write(trace):
        return None
    try:
        atoms: list[Atom] = [
            x.variable if type(x) is StagedTracer and x.owner is trace else trace.capture(x) for x in primals
        ]
        key = (
            parameters, config.cache_key(), *[x.aval for x in atoms], *[None if t is None else t.aval for t in tangents]
        )  # fmt: skip
        found = primitive.recordings.get(key)
    except (TypeError, AttributeError):
        # An operand that is no array, or a parameter that cannot be compared: the rule itself says what is wrong.
        return None
    if found is None:
        found = _record_jvp(trace, tape, primitive, [x.aval for x in atoms], tangents, parameters)
        _table_of(primitive)[key] = found
    if found is _NEVER:
        return None
    source = user_position(2)
    outputs = found.known.write(trace, atoms, source)
    inputs = [tape.atom(t) for t in tangents if t is not None]
    inputs += [tape.residual(x) for x in outputs[found.results :]]
    linear = iter(found.linear.write(tape, inputs, source))
    out = [StagedTracer(tape, (x := next(linear)).aval, x) if wanted else None for wanted in found.tangents]
    results = [StagedTracer(trace, x.aval, x) for x in outputs[: found.results]]
    return (results, out) if primitive.multiple_results else (results[0], out[0])


def _record_jvp(
    trace: StagingTrace, tape: Any, primitive: Primitive, avals: Sequence[ShapedArray], given: Sequence[Any],
    parameters: tuple[Any, ...],
) -> Any:  # fmt: skip
    """Run the rule on tracers of two new traces, one of what is known and a tape above it; `given` are tangents."""
    if jaxprs_of(parameters):
        return _NEVER
    known = StagingTrace(trace, trace.debug_info)
    linear = type(tape)(known, trace.debug_info)
    primals = [known.new_input(a) for a in avals]
    tangents = [None if t is None else linear.new_input(t.aval) for t in given]
    results, out = _under(linear, _rule(primitive, "jvp", parameters), primals, tangents)
    if not primitive.multiple_results:
        results, out = [results], [out]
    if any(isinstance(x, Tracer) and x.owner is linear for x in results):
        return _NEVER
    atoms = [known.atom(x) for x in results]
    linear_atoms = [linear.atom(t) for t in out if t is not None]
    residuals = {v: x.variable for v, x in linear.constants if type(x) is StagedTracer and x.owner is known}
    constants = [(v, x) for v, x in linear.constants if v not in residuals]
    if not _is_closed(known, known.constants) or not _is_closed(linear, constants):
        return _NEVER
    return _Linearized(
        Recording(known, known.inputs, known.constants, [*atoms, *residuals.values()]),
        Recording(linear, [*linear.inputs, *residuals], constants, linear_atoms),
        len(atoms),
        [t is not None for t in out],
    )


def transposed(
    trace: StagingTrace, primitive: Primitive, given: Any, operands: Sequence[Any], parameters: tuple[Any, ...],
    source: Position | None,
) -> list[Any] | None:  # fmt: skip
    """Return what the transpose rule of `primitive` returns under `trace`; None if that is not recorded.

    `given` is the cotangent, or the list of cotangents where the primitive has multiple results.
    """
    if primitive.linearize is not None or primitive.effects is not None or not _can_write(trace):
        return None
    cotangents = given if primitive.multiple_results else [given]
    try:
        inputs = [trace.atom(x) for x in cotangents if x is not None]
        inputs += [trace.atom(x) for x in operands if type(x) is not Linear]
        key = (
            parameters, config.cache_key(), Linear, *[None if x is None else x.aval for x in cotangents],
            *[(x.aval,) if type(x) is Linear else x.aval for x in operands],
        )  # fmt: skip
        found = primitive.recordings.get(key)
    except (TypeError, AttributeError):
        return None
    if found is None:
        found = _record_transpose(trace, primitive, cotangents, operands, parameters)
        _table_of(primitive)[key] = found
    if found is _NEVER:
        return None
    recording, wanted = found
    outputs = iter(recording.write(trace, inputs, source))
    return [StagedTracer(trace, (x := next(outputs)).aval, x) if w else None for w in wanted]


def _record_transpose(
    trace: StagingTrace, primitive: Primitive, cotangents: Sequence[Any], operands: Sequence[Any],
    parameters: tuple[Any, ...],
) -> Any:  # fmt: skip
    if jaxprs_of(parameters):
        return _NEVER
    inner = StagingTrace(trace, trace.debug_info)
    given = [None if x is None else inner.new_input(x.aval) for x in cotangents]
    known = [x if type(x) is Linear else inner.new_input(x.aval) for x in operands]
    rule = _rule(primitive, "transpose", parameters)
    out = _under(inner, rule, given if primitive.multiple_results else given[0], *known)
    atoms = [inner.atom(x) for x in out if x is not None]
    if not _is_closed(inner, inner.constants):
        return _NEVER
    return Recording(inner, inner.inputs, inner.constants, atoms), [x is not None for x in out]


def _rule(primitive: Primitive, kind: str, parameters: tuple[Any, ...]) -> Callable[..., Any]:
    rule, named = primitive.rule(kind), dict(zip(primitive.parameters, parameters, strict=True))
    return lambda *operands: rule(*operands, **named)


def _under(trace: StagingTrace, rule: Callable[..., Any], *operands: Any) -> Any:
    token = current_trace.set(trace)
    try:
        return rule(*operands)
    finally:
        current_trace.reset(token)
        trace.end()


def _is_closed(trace: StagingTrace, constants: Sequence[tuple[Var, Any]]) -> bool:
    """Whether what was recorded can be written into any trace."""
    return not trace.effects and not any(isinstance(x, Tracer) for _, x in constants)
