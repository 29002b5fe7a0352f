"""Forward-mode differentiation: values carry tangents, and jvp rules compute the tangents of results.

The same trace linearizes: the rules then run under a tape, which records operations on tangents and computes the others
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, aval_rules, own_aval
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.rule_error_notes import note_rule
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.trace import FUSES_ALL, FUSES_NONLINEAR, Trace, Tracer, current_trace, use_trace
from xtrace._src.transforms.replay import StackedTrace, TraceStack

if TYPE_CHECKING:
    from xtrace._src.core.diagnostics.provenance import Provenance


class JVPTracer(Tracer):
    """A value with its tangent; Python conditions see the value.

    Args:
        trace: its trace.
        primal: the value.
        tangent: the tangent.

    Example:
        >>> xtrace.jvp(lambda x: x.tangent, (1.0,), (2.0,))[0]
        2.0
    """

    __slots__ = ("primal", "tangent")
    __module__ = "xtrace.interpreters.ad"

    def __init__(self, trace: Trace, primal: Any, tangent: Array) -> None:
        self.owner, self.primal, self.tangent = trace, primal, tangent
        self.aval = primal.aval if isinstance(primal, Array) else aval_of(primal)

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __int__(self) -> int:
        return int(self.primal)

    def get_referent(self) -> Any:
        return self.primal.get_referent() if isinstance(self.primal, Tracer) else self.primal

    def to_concrete_value(self) -> Any:
        return self.primal.to_concrete_value() if isinstance(self.primal, Tracer) else self.primal

    def item(self, *indices: int) -> Any:
        """Return the value as a Python number, which the derivative treats as a constant."""
        return self.primal.item(*indices)

    def __repr__(self) -> str:
        if self.owner.linearizing:  # type: ignore[attr-defined]
            return f"GradTracer(primal={self.primal!s}, typeof(tangent)={self.aval.str_short(True)})"
        return f"JVPTracer(primal={self.primal!s}, tangent={self.tangent!s})"


aval_rules[JVPTracer] = own_aval


class JVPTrace(StackedTrace):
    """Applies jvp rules to operations on its tracers, under the trace `rules`: its parent, or a tape above the parent.

    Args:
        parent: the trace around it.
        rules: the trace under which rules run.
        described: a function that returns a description of the user's function, for messages.

    Example:
        >>> kinds = []
        >>> _ = xtrace.jvp(lambda x: kinds.append(xtrace.extend.core.find_top_trace(())) or x, (1.0,), (1.0,))
        >>> isinstance(kinds[0], xtrace.interpreters.ad.JVPTrace)
        True
    """

    __slots__ = ("rules", "tape", "linearizing", "described")
    __module__ = "xtrace.interpreters.ad"

    def __init__(self, parent: Trace, rules: Trace, described: Callable[[], DebugInfo] | None = None) -> None:
        super().__init__(parent)
        self.described = described
        # A jvp inside a rule under a tape must linearize as well: it computes with tangents of the tape.
        self.rules = rules
        self.linearizing = rules is not parent or any(t.is_tape for t in parent.enclosing())
        if self.fusion_level:
            self.fusion_level = max(self.fusion_level, FUSES_NONLINEAR if self.linearizing else FUSES_ALL)
        self.tape = rules if rules is not parent else None  # type: ignore[assignment]
        self.stack = TraceStack.below(self)

    @property
    def signature(self) -> Any:
        return self.tape is not None, self.linearizing

    def copy_above(self, parent: Trace) -> JVPTrace:
        made = JVPTrace(parent, parent if self.tape is None else type(self.tape)(parent, self.tape.debug_info))
        made.stack = None
        return made

    def flatten_tracer(self, tracer: Any) -> tuple[Any, tuple[Any, ...]]:
        return None, (tracer.primal, tracer.tangent)

    def unflatten_tracer(self, label: object, *values: Any) -> JVPTracer:
        return JVPTracer(self, *values)

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        if not self.owns_any(operands):
            assert self.parent is not None
            return self.parent.process(primitive, operands, parameters)
        try:
            if primitive.replayable and self.stack is not None:
                made = self.stack.process(primitive, operands, parameters)
                if made is not None:
                    return made
            own = primitive.linearize if self.linearizing else None
            if own is None:
                own = primitive.rule("jvp")
            primals = [x.primal if type(x) is JVPTracer and x.owner is self else x for x in operands]
            tangents = [x.tangent if type(x) is JVPTracer and x.owner is self else None for x in operands]
            outer = current_trace.get()
            try:
                current_trace.set(self.rules)
                results, out = own(primals, tangents, **dict(zip(primitive.parameters, parameters, strict=True)))
            finally:
                current_trace.set(outer)
        except Exception as error:
            note_rule(error, "jvp", primitive, operands)
            raise
        if primitive.multiple_results:
            return [x if t is None else JVPTracer(self, x, t) for x, t in zip(results, out, strict=True)]
        return results if out is None else JVPTracer(self, results, out)

    def owns_any(self, values: Sequence[Any]) -> bool:
        for x in values:  # noqa: SIM110 - a generator would be another frame for each operation
            if type(x) is JVPTracer and x.owner is self:
                return True
        return False

    def split(self, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the values and the tangents of a function's results."""
        own = [type(x) is JVPTracer and x.owner is self for x in results]
        primals = [x.primal if mine else x for x, mine in zip(results, own, strict=True)]
        return primals, [x.tangent if mine else None for x, mine in zip(results, own, strict=True)]

    def find_provenance(self, tracer: Tracer) -> Provenance:
        """Return the provenance of the tracer, for messages."""
        assert isinstance(tracer, JVPTracer)
        note = (
            "The value is being differentiated, and would lose its derivative as a Python or NumPy number. If that is "
            "what you want, convert xtrace.lax.stop_gradient(x)."
        )
        return explain.provenance_under(self, "jvp", (tracer.primal, tracer.tangent), note)

    def __repr__(self) -> str:
        level = sum(isinstance(t, JVPTrace) for t in self.enclosing())
        return f"{'LinearizeTrace' if self.linearizing else 'JVPTrace'}(level={level})"


def jvp(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any],
    described: Callable[[], DebugInfo] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Return the results of ``function(*primals)``, a flat sequence, and their tangents; None is a zero tangent.

    `described` returns a description of the user's function, for messages.
    """
    parent = current_trace.get()
    trace = JVPTrace(parent, parent, described)
    try:
        with use_trace(trace):
            results = function(
                *[x if t is None else JVPTracer(trace, x, t) for x, t in zip(primals, tangents, strict=True)]
            )
    finally:
        trace.end()
    results_and_tangents = trace.split(results)
    if config.check_tracer_leaks.value:
        del results
        explain.check_leaks(trace)
    return results_and_tangents
