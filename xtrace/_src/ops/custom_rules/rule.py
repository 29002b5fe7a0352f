"""Custom rules as parameters of operations, and their calls."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.core.trace import Trace, current_trace, use_trace
from xtrace._src.runtime.transfer import to_constant
from xtrace._src.transforms.batch import BatchTrace, BatchTracer, MappedAxis, batch
from xtrace._src.transforms.jvp import JVPTracer
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.scopes import call_in_scopes
from xtrace._src.transforms.stage import StagedTracer, StagingTrace

_SCALARS = (bool, int, float, complex, Literal)


class Rule:
    """A Python function of flat values as a parameter of an operation; it prints as its name.

    origin: the trace that bound the operation; the function may close over its tracers. Rules with equal keys are
    equal; a rule without a key is equal only to itself.
    """

    __slots__ = ("function", "name", "key", "_origin")

    def __init__(
        self, function: Callable[..., Any], name: str, key: object = None, origin: Trace | None = None
    ) -> None:
        self.function, self.name, self.key = function, name, key
        self._origin = weakref.ref(origin or current_trace.get())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Rule) and self.key is not None and bool(self.key == other.key))

    def __hash__(self) -> int:
        return object.__hash__(self) if self.key is None else hash(self.key)

    def __str__(self) -> str:
        return self.name

    def batched(self, function: Callable[..., Any]) -> Rule:
        """Return the rule of `function`, the batched form of this rule."""
        return Rule(function, self.name, None, self._origin())

    def mapping(self, mapped: MappedAxis) -> Callable[..., tuple[list[Any], list[int | None]]]:
        """Return a function that works as `batch` does, for calls after the batch rule has returned.

        The batched function may close over tracers of the trace that called the batch rule. Unless that trace has
        ended, it is entered again, on top of the current trace.
        """
        current, inner = current_trace.get(), self._origin()
        traced_in: weakref.ref[BatchTrace] | None = None
        for trace in inner.enclosing() if inner is not None else ():
            if type(trace) is BatchTrace and trace.parent is current and trace.mapped is mapped:
                traced_in = weakref.ref(trace)

        def mapping(
            function: Callable[..., Any], values: Sequence[Any], axes: Sequence[int | None]
        ) -> tuple[list[Any], list[int | None]]:
            trace = traced_in() if traced_in is not None else None
            if trace is None or trace.ended:
                return batch(function, mapped, values, axes)
            return _reenter(trace, function, values, axes)

        return mapping


def _reenter(
    trace: BatchTrace, function: Callable[..., Sequence[Any]], values: Sequence[Any], axes: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    outer = trace.parent
    trace.rebind(current_trace.get())
    try:
        with use_trace(trace):
            results = function(
                *[x if i is None else BatchTracer(trace, x, i) for x, i in zip(values, axes, strict=True)]
            )
    finally:
        trace.rebind(outer)
    own = [type(x) is BatchTracer and x.owner is trace for x in results]
    return (
        [x.value if mine else x for x, mine in zip(results, own, strict=True)],
        [x.axis if mine else None for x, mine in zip(results, own, strict=True)],
    )


def is_recorded(operands: Sequence[Any]) -> bool:
    """Return whether a call on these operands must be staged: inside of a program, or if an operand is on a tape."""
    taped = False
    for trace in current_trace.get().enclosing():
        if type(trace) is Tape:
            taped = True
        elif isinstance(trace, StagingTrace):
            return True
    return taped and any(_reaches_tape(x) for x in operands)


def _reaches_tape(value: Any) -> bool:
    kind = type(value)
    if kind is JVPTracer:
        return _reaches_tape(value.primal) or _reaches_tape(value.tangent)
    return _reaches_tape(value.value) if kind is BatchTracer else kind is StagedTracer


def to_user_operand(value: ArrayLike) -> Any:
    """Return an operand for a user's function: Python scalars and literals become arrays."""
    return to_constant(value) if isinstance(value, _SCALARS) else value


def to_rule_operand(value: Any) -> Any:
    """Return an operand for a custom rule: literals become arrays; Python's numbers stay, as in JAX's rules."""
    return to_constant(value) if type(value) is Literal else value


def call_rule(rule: Rule, *arguments: Any) -> Any:
    """Return ``rule.function(*arguments)``; an UnexpectedTracerError gets a note about closed-over values."""
    try:
        return call_in_scopes(rule.function, *arguments)
    except UnexpectedTracerError as error:
        error.add_note(
            f"while the custom rule {rule} was called: it must not close over traced values of a function that has "
            "ended, such as an outer jitted one. Pass the value as an argument, or through the residuals"
        )
        raise


def make_zero(aval: ShapedArray) -> Any:
    """Return the zero tangent of a type; for integers, a NumPy array of float0."""
    if not is_differentiable(aval):
        return np.zeros(aval.shape, dtypes.float0)
    if aval.shape or isinstance(aval.dtype, dtypes.ExtendedDType):
        return zeros(aval)
    return to_constant(Literal(dtypes.scalar_type_of(aval.dtype)(0), aval))
