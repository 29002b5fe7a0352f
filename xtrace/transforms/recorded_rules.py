"""What linearizing under a staging trace does, recorded once for operands of given types and copied from then on.

This is what gradients are traced by, most of the time; every other stack of traces is the work of `stacks`, and what
holds there of rules and functions holds here: they depend on their operands' types, on parameters and settings only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace.core import config
from xtrace.core.avals import ShapedArray
from xtrace.core.ir import Atom, can_be_remembered
from xtrace.core.source import user_position
from xtrace.core.tables import remember
from xtrace.core.trace import Tracer
from xtrace.transforms.recordings import NEVER, Recording, is_closed
from xtrace.transforms.stage import StagedTracer, StagingTrace


class _Linearized:
    """A jvp rule's work: on values, and on tangents, with those of the values that the latter read.

    `results` is how many outputs of `known` are the results; the others are the residuals. `tangents` says for each
    result whether the next output of `linear` is its tangent.
    """

    __slots__ = ("known", "linear", "results", "tangents", "tree")

    def __init__(self, known: Recording, linear: Recording, results: int, tangents: list[bool], tree: Any) -> None:
        self.known, self.linear, self.results, self.tangents, self.tree = known, linear, results, tangents, tree


def linearized(
    trace: StagingTrace, tape: Any, table: dict[Any, Any], parameters: tuple[Any, ...], primals: Sequence[Any],
    tangents: Sequence[Any], rule: Callable[..., tuple[list[Any], list[Any], Any]],
) -> tuple[list[Any], list[Any], Any] | None:  # fmt: skip
    """Return what ``rule(primals, tangents)`` returns, run under `tape` over `trace`; None if that is not recorded.

    That is results, their tangents, and something else that goes with them. The rule depends on `parameters` and the
    types of its operands, and `table` keeps what it did.
    """
    if not trace.records_copies():
        return None
    try:
        atoms: list[Atom] = [
            x.variable if type(x) is StagedTracer and x.owner is trace else trace.capture(x) for x in primals
        ]
        key = (
            parameters, config.cache_key(), *[x.aval for x in atoms], *[None if t is None else t.aval for t in tangents]
        )  # fmt: skip
        found = table.get(key)
    except (TypeError, AttributeError):
        # An operand that is no array, or a parameter that cannot be compared: the rule itself says what is wrong.
        return None
    if found is None:
        if not can_be_remembered(parameters):
            return None
        found = _record_jvp(trace, tape, [x.aval for x in atoms], tangents, rule)
        remember(table, key, found)
    if found is NEVER:
        return None
    source = user_position(2)
    outputs = found.known.write(trace, atoms, source)
    inputs = [tape.atom(t) for t in tangents if t is not None]
    inputs += [tape.residual(x) for x in outputs[found.results :]]
    linear = iter(tape.append(found.linear, inputs, source))
    out = [StagedTracer(tape, (x := next(linear)).aval, x) if wanted else None for wanted in found.tangents]
    return [StagedTracer(trace, x.aval, x) for x in outputs[: found.results]], out, found.tree


def _record_jvp(
    trace: StagingTrace, tape: Any, avals: Sequence[ShapedArray], given: Sequence[Any], rule: Callable[..., Any]
) -> Any:
    """Run the rule on tracers of two new traces, one of what is known and a tape above it; `given` are tangents."""
    known = StagingTrace(trace, trace.debug_info)
    linear = type(tape)(known, trace.debug_info)
    primals = [known.new_input(a) for a in avals]
    tangents = [None if t is None else linear.new_input(t.aval) for t in given]
    results, out, tree = linear.run(rule, primals, tangents)
    if any(isinstance(x, Tracer) and x.owner is linear for x in results):
        return NEVER
    atoms = [known.atom(x) for x in results]
    linear_atoms = [linear.atom(t) for t in out if t is not None]
    residuals = {v: x.variable for v, x in linear.constants if type(x) is StagedTracer and x.owner is known}
    constants = [(v, x) for v, x in linear.constants if v not in residuals]
    if not is_closed(known, known.constants) or not is_closed(linear, constants):
        return NEVER
    return _Linearized(
        Recording(known, known.inputs, known.constants, [*atoms, *residuals.values()]),
        Recording(linear, [*linear.inputs, *residuals], constants, linear_atoms),
        len(atoms),
        [t is not None for t in out],
        tree,
    )
