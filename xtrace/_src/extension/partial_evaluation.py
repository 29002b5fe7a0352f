"""Partial evaluation of Python functions: it computes operations on known values and records the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.trace import current_trace, use_trace
from xtrace._src.transforms.stage import StagedTracer, StagingTrace


class PartialVal(tuple[Any, Any]):
    """A known value, or the type of an unknown value: the pair ``(None, value)`` or ``(type, None)``.

    Args:
        xs: the pair.

    Example:
        >>> from xtrace.interpreters import partial_eval
        >>> partial_eval.PartialVal.known(3).get_known()
        3
    """

    __slots__ = ()

    def __new__(cls, xs: tuple[ShapedArray | None, Any]) -> PartialVal:
        """Make the pair."""
        return super().__new__(cls, xs)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return a known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Return an unknown value of a type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value; None if it is unknown."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> ShapedArray:
        """Return the type."""
        return self[0] if self[0] is not None else aval_of(self[1])


# ``rule(trace, *operands, **parameters)`` returns the result of an operation, a tracer or a known value, or a list.
custom_partial_eval_rules: dict[Primitive, Callable[..., Any]] = {}


class PartialTrace(StagingTrace):
    """Records operations on unknown values; its parent computes the others."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        rule = custom_partial_eval_rules.get(primitive)
        if rule is None:
            return self._process_without_rule(primitive, operands, parameters)
        named = primitive.given_parameters(dict(zip(primitive.parameters, parameters, strict=True)))
        return rule(self, *operands, **named)

    def default_process_primitive(self, primitive: Primitive, tracers: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Record an operation on unknown values, or compute it on known values, without the user's rule."""
        return self._process_without_rule(primitive, tracers, primitive.pack_parameters(params))

    def is_known(self, value: object) -> bool:
        """Return whether an operand is known."""
        return not (type(value) is StagedTracer and value.owner is self)

    def _process_without_rule(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        if any(type(x) is StagedTracer and x.owner is self for x in operands):
            return super().process(primitive, operands, parameters)
        assert self.parent is not None
        return self.parent.process(primitive, operands, parameters)

    def constant(self, value: Any, aval: ShapedArray) -> Any:
        assert self.parent is not None
        return self.parent.constant(value, aval)


def partially_evaluate(
    function: Callable[..., Any], values: Sequence[PartialVal], instantiate: bool | Sequence[bool]
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Return the jaxpr of a function's unknown part, the function's results, and the values of the jaxpr's constants.

    instantiate: whether a known result is a result of the jaxpr as well, for all results or for each.
    """
    trace = PartialTrace(current_trace.get(), DebugInfo("partial evaluation", "function", None, None))
    try:
        with use_trace(trace):
            given = [v[1] if v[0] is None else trace.new_input(v[0]) for v in values]
            results = list(function(*given))
            wanted = [instantiate] * len(results) if isinstance(instantiate, bool) else list(instantiate)
            out, outvars = [], []
            for result, always in zip(results, wanted, strict=True):
                if type(result) is StagedTracer and result.owner is trace:
                    out.append(PartialVal.unknown(result.aval))
                    outvars.append(result.variable)
                elif always:
                    out.append(PartialVal.unknown(aval_of(result)))
                    outvars.append(trace.atom(result))
                else:
                    out.append(PartialVal.known(result))
    finally:
        trace.end()
    constants = [variable for variable, _ in trace.constants]
    jaxpr = Jaxpr(constants, trace.inputs, outvars, trace.equations, trace.effects, trace.debug_info)
    return jaxpr, out, [value for _, value in trace.constants]
