"""Linearization: evaluating a function, and recording its operations on tangents as a linear jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._late_imports import late_modules
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.positions import Position, Scopes, add_scopes
from xtrace._src.core.jaxprs.ir import Atom, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.tangents import tangent_aval
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.transforms.dead_code import eliminate_dead_code, find_read_atoms
from xtrace._src.transforms.equation_templates import EquationTemplate
from xtrace._src.transforms.inlined_calls import call_template, inline_calls, inlined_call
from xtrace._src.transforms.jvp import JVPTrace, JVPTracer
from xtrace._src.transforms.stage import StagedTracer, StagingTrace

with late_modules(globals()):
    from xtrace._src.core.jaxprs.check import check_jaxpr

if TYPE_CHECKING:
    from xtrace._src.core.diagnostics.provenance import Provenance


class KnownResults:
    """A partial evaluation without residuals: `compute` returns the known results, the equation the `unknown` ones."""

    __slots__ = ("compute", "unknown")

    def __init__(self, compute: Callable[[Sequence[Any]], list[Any]], unknown: tuple[bool, ...]) -> None:
        self.compute, self.unknown = compute, unknown

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        return self.compute(operands)


class Tape(StagingTrace):
    """Records operations on its tracers, the tangents; its parent processes all others at once.

    This is partial evaluation, in which the tangents are the unknown values. keeps_calls: whether a replayed
    sub-program is one equation, `inlined_call`, which is transposed as a whole.
    """

    __slots__ = ("residuals", "keeps_calls", "fusion_level")

    is_tape = True

    def __init__(self, parent: Trace, debug_info: DebugInfo, keeps_calls: bool = False) -> None:
        super().__init__(parent, debug_info)
        self.keeps_calls = keeps_calls
        self.fusion_level = parent.fusion_level
        # Maps a variable of a recorder below to the residual with its value.
        self.residuals: dict[Var, Var] = {}

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        for x in operands:
            if type(x) is StagedTracer and x.owner is self:
                if primitive.partial_evaluate is not None:
                    return self._split(primitive, operands, parameters)
                return super().process(primitive, operands, parameters)
        assert self.parent is not None
        return self.parent.process(primitive, operands, parameters)

    def _split(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        """Compute the part of the operation that does not depend on tangents, and record the rest."""
        assert primitive.partial_evaluate is not None
        unknown = tuple([self.records(x) for x in operands])
        parts = primitive.partial_evaluate(unknown, **dict(zip(primitive.parameters, parameters, strict=True)))
        if parts is None:
            return super().process(primitive, operands, parameters)
        with use_trace(self):
            results = parts(operands)
        if isinstance(parts, KnownResults) and any(parts.unknown):
            rest = super().process(primitive, operands, parameters)
            known = iter(results)
            results = [x if u else next(known) for x, u in zip(rest, parts.unknown, strict=True)]
        return results if primitive.multiple_results else results[0]

    def records(self, value: object) -> bool:
        """Whether the value is one of the tape's tracers."""
        return type(value) is StagedTracer and value.owner is self

    def capture(self, value: object) -> Atom:
        if type(value) is StagedTracer:
            atom = value.variable
            if type(atom) is Literal:
                return atom
            residual = self.residuals.get(atom)  # type: ignore[arg-type]
            if residual is None:
                residual = self.residuals[atom] = Var(atom.aval)  # type: ignore[index]
                self.constants.append((residual, value))
            return residual
        if not isinstance(value, Array):
            return super().capture(value)
        captured = self.captured.get(id(value))
        if captured is not None:
            return captured[0]
        # An array stays an array: reading a number would wait for the device.
        variable = Var(aval_of(value))
        self.constants.append((variable, value))
        self.captured[id(value)] = (variable, value, value)
        return variable

    def append(self, template: EquationTemplate, inputs: list[Atom], source: Position | None) -> Sequence[Atom]:
        if not self.keeps_calls or len(template.steps) < 2:
            return template.instantiate(self, inputs, source)
        equation = call_template(template, inputs, add_scopes(self.scopes, source) if self.scopes else source)
        self.equations.append(equation)
        return equation.outvars

    def find_provenance(self, tracer: Tracer) -> Provenance:
        assert isinstance(tracer, StagedTracer)
        # The tape itself is unchanged, because the error may be caught.
        equations, (variable,) = inline_calls(self, [tracer.variable])
        return self.provenance_in(equations, variable)

    def constant(self, value: Any, aval: Any) -> Any:
        assert self.parent is not None
        return self.parent.constant(value, aval)


class LinearMap:
    """A linear jaxpr of tangents: the values of its constvars are the residuals `consts`, its inputs are tangents.

    `nonzero` has a flag for each result of the function: whether its tangent is among the jaxpr's outputs. After a
    partial evaluation the flag says whether the result itself is.
    """

    __slots__ = ("jaxpr", "consts", "nonzero")

    def __init__(self, jaxpr: Jaxpr, consts: list[Any], nonzero: list[bool]) -> None:
        self.jaxpr, self.consts, self.nonzero = jaxpr, consts, nonzero


def linearize(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], differentiated: Sequence[bool], info: DebugInfo,
    keeps_calls: bool = False, scopes: Scopes = (),
) -> tuple[list[Any], LinearMap]:
    """Return the results of ``function(*primals)``, a flat sequence, and the linear map to their tangents.

    The map's inputs are the tangents of the primals marked by `differentiated`. keeps_calls: whether its replayed
    sub-programs are equations, `inlined_call`. scopes: the scopes of recorded equations.
    """
    parent = current_trace.get()
    tape = Tape(parent, info, keeps_calls)
    tape.scopes = scopes
    trace = JVPTrace(parent, tape)
    try:
        inputs = [
            JVPTracer(trace, x, tape.new_input(tangent_aval(aval_of(x)))) if wanted else x
            for x, wanted in zip(primals, differentiated, strict=True)
        ]
        with use_trace(trace):
            results = function(*inputs)
        primals_out, tangents_out = trace.split(results)
        outvars = [tape.atom(t) for t in tangents_out if t is not None]
    finally:
        trace.end()
        tape.end()
    nonzero = [t is not None for t in tangents_out]
    if config.check_tracer_leaks.value:
        del inputs, results, tangents_out
        explain.check_leaks(trace)
        del trace
        explain.check_leaks(tape)
    return primals_out, _linear_map(tape, outvars, nonzero)


def partial_evaluate(
    function: Callable[..., Sequence[Any]], values: Sequence[Any], unknown: Sequence[ShapedArray | None],
    always: Sequence[bool], info: DebugInfo,
) -> tuple[list[Any], LinearMap]:
    """Return the known results of `function`, and the map from the unknown inputs to the other results.

    unknown: the type of each unknown input, None for a known one; `values` are the known inputs. always: marks results
    that the map returns even if they are known.
    """
    tape = Tape(current_trace.get(), info)
    given = iter(values)
    try:
        inputs = [next(given) if aval is None else tape.new_input(aval) for aval in unknown]
        with use_trace(tape):
            results = function(*inputs)
        pending = [tape.records(x) or wanted for x, wanted in zip(results, always, strict=True)]
        outvars = [tape.atom(x) for x, wanted in zip(results, pending, strict=True) if wanted]
    finally:
        tape.end()
    known = [x for x, wanted in zip(results, pending, strict=True) if not wanted]
    if config.check_tracer_leaks.value:
        del inputs, results
        explain.check_leaks(tape)
    return known, _linear_map(tape, outvars, pending)


def _linear_map(tape: Tape, outvars: list[Atom], nonzero: list[bool]) -> LinearMap:
    jaxpr, read = _drop_unread(tape, tape.equations, outvars)
    if tape.keeps_calls and any(e.primitive is inlined_call and not read.issuperset(e.outvars) for e in jaxpr.eqns):
        # Inlining a call with unread results drops the residuals that only its dead equations read.
        jaxpr, read = _drop_unread(tape, *inline_calls(tape, outvars))
    kept = [(v, value) for v, value in tape.constants if v in read]
    jaxpr = jaxpr.replace(constvars=[v for v, _ in kept])
    if config.enable_checks.value:
        equations, results = inline_calls(tape, outvars)
        check_jaxpr(Jaxpr([v for v, _ in tape.constants], tape.inputs, results, equations, tape.effects))
    return LinearMap(jaxpr, [value for _, value in kept], nonzero)


def _drop_unread(tape: Tape, equations: list[JaxprEqn], outvars: list[Atom]) -> tuple[Jaxpr, set[Atom]]:
    """Return the jaxpr of the live equations, without constvars, and the atoms that it reads."""
    jaxpr, _ = eliminate_dead_code(Jaxpr([], tape.inputs, outvars, equations, tape.effects, tape.debug_info))
    return jaxpr, find_read_atoms(jaxpr)
