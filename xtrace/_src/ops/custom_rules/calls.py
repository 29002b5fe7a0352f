"""Rules shared by all calls of functions with custom rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import AbstractRef, aval_of
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, OWN_DERIVATIVE_EFFECT, Effects
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo
from xtrace._src.core.linear_functions import wrap_init
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.trace import Trace, use_trace
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.calls.calls import NO_PLACES, jit_call, make_call_rules
from xtrace._src.ops.custom_rules.rule import Rule, is_recorded
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.discharge import discharge_call
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import batch_jaxpr, cast_weak_type, move_constants_to_inputs
from xtrace._src.transforms.jvp import JVPTracer
from xtrace._src.transforms.lower import emit_jaxpr
from xtrace._src.transforms.stage import stage


class CalledFunction:
    """The function of an equation, as interpreters of jaxprs call it: through `call_wrapped`, on flat operands."""

    def __init__(self, call_jaxpr: ClosedJaxpr) -> None:
        self.call_jaxpr = call_jaxpr

    def call_wrapped(self, *operands: object) -> list[Any]:
        """Return the results for the equation's operands."""
        return evaluate(self.call_jaxpr.jaxpr, self.call_jaxpr.consts, operands)


class CustomRuleCall(ListPrimitive):
    """The call of a function with custom rules; `functions` are the parameters that hold the function and its rules.

    As JAX's, `get_bind_params` gives these as one tuple `subfuns`, and `bind` takes them so.
    """

    def __init__(self, name: str, functions: Sequence[str], parameters: Sequence[str], **rules: Any) -> None:
        super().__init__(name, ("name", *functions, *parameters), **rules)
        self.functions = functions

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return an equation's parameters as the keywords of `bind`."""
        call_jaxpr, *rules = [params[name] for name in self.functions]
        others = {name: value for name, value in params.items() if name not in self.functions}
        return {"subfuns": (CalledFunction(call_jaxpr), *rules), **others}

    def bind(self, *operands: object, subfuns: Sequence[Any] | None = None, **parameters: object) -> list[Any]:  # type: ignore[override]
        """Apply the primitive under the current trace; `subfuns` is as `get_bind_params` gives it."""
        if subfuns is not None:
            call, *rules = subfuns
            parameters |= dict(zip(self.functions, (call.call_jaxpr, *rules), strict=True))
        return super().bind(*operands, **parameters)

    def bind_with_trace(
        self, trace: Any, args: Sequence[Any], avals: Sequence[Any], params: Mapping[str, Any], /
    ) -> Any:
        """Apply the primitive under a trace; parameters with `subfuns` are as for `bind`."""
        if "subfuns" not in params:
            return super().bind_with_trace(trace, args, avals, params)
        with use_trace(trace):
            return self.bind(*args, **params)


class CustomDerivativeCall(CustomRuleCall):
    """The call of a function with a custom derivative; users' traces and `bind` also have it as flat functions.

    flatten_rules: makes, from the named parameters, the rules as functions of flat values, and the other keywords of
    the method of users' traces. unflatten_rules: makes the parameters between the function and ``num_consts`` from
    flat rules, from whether the function was staged, and from the other keywords.
    """

    def __init__(
        self, name: str, functions: Sequence[str], flatten_rules: Callable[[dict[str, Any]], tuple[list[Any], Any]],
        unflatten_rules: Callable[..., tuple[Any, ...]], **rules: Any,
    ) -> None:
        super().__init__(name, functions, ("num_consts", "symbolic_zeros"), **rules)
        self.flatten_rules, self.unflatten_rules = flatten_rules, unflatten_rules

    def process_by_users_trace(self, trace: Trace, operands: Sequence[Any], named: dict[str, Any]) -> Any:
        """Apply the primitive by the method of the trace, such as ``process_custom_vjp_call``, if it has one."""
        method = getattr(trace, f"process_{self.name}", None)
        if method is None:
            return super().process_by_users_trace(trace, operands, named)
        call = named["call_jaxpr"]
        function = CalledFunction(call).call_wrapped if isinstance(call, ClosedJaxpr) else call.function
        rules, others = self.flatten_rules(named)
        zeros = named["symbolic_zeros"]
        return method(self, *map(wrap_init, [function, *rules]), operands, **others, symbolic_zeros=zeros)

    def bind(self, *operands: object, subfuns: Sequence[Any] | None = None, **parameters: Any) -> list[Any]:  # type: ignore[override]
        """Apply the primitive under the current trace; `subfuns` may be the functions that a user's trace gets."""
        if subfuns is None or isinstance(subfuns[0], CalledFunction):
            return super().bind(*operands, subfuns=subfuns, **parameters)
        function, *rules = subfuns
        name, is_staged = function.__name__, is_recorded(operands)
        call: Rule | ClosedJaxpr = Rule(function.call_wrapped, name)
        consts: Sequence[Any] = []
        if is_staged:
            info = DebugInfo(self.name.removesuffix("_call"), name, None, None)
            jaxpr, consts = stage(function.call_wrapped, [aval_of(x) for x in operands], info)
            call = ClosedJaxpr(jaxpr.with_constants_as_inputs() if jaxpr.constvars else jaxpr, [])
        values = (name, call, *self.unflatten_rules(rules, is_staged, **parameters), len(consts))
        return self.bind_positional([*consts, *operands], (*values, bool(parameters["symbolic_zeros"])))


def closed_over_message(name: str) -> str:
    """Return the message for a derivative with respect to a closed-over value of a function with custom rules."""
    return (
        f"Detected differentiation of the custom_jvp or custom_vjp function {name} with respect to a closed-over "
        "value. That is not supported because the custom rule only specifies how to differentiate the function with "
        "respect to explicit arguments. Pass the closed-over value as an argument and adapt the rule, or use "
        "closure_convert"
    )


def drop_closed_over(
    name: str, values: Sequence[Any], tangents: Sequence[Any], count: int
) -> tuple[list[Any], list[Any]]:
    """Return primals and tangents without the leading `count`, of closed-over values.

    UnexpectedTracerError if a closed-over value has a tangent.
    """
    if any(t is not None for t in tangents[:count]):
        raise UnexpectedTracerError(closed_over_message(name))
    return list(values[count:]), list(tangents[count:])


def emit_inline(parameter: str) -> Callable[..., list[Value]]:
    """Return the emission rule that writes the equations of the jaxpr in a parameter inline."""

    def emit(builder: FunctionBuilder, *values: Value, **parameters: Any) -> list[Value]:
        results = builder.results
        emitted = emit_jaxpr(builder, parameters[parameter].jaxpr, values)
        builder.results = results
        return emitted

    return emit


def _effects(*, call_jaxpr: ClosedJaxpr, **_: object) -> Effects:
    """Return the effects of the jaxpr; a Python function declares none."""
    if not isinstance(call_jaxpr, ClosedJaxpr):
        return NO_EFFECTS
    takes_references = AbstractRef in map(type, call_jaxpr.in_avals)
    return call_jaxpr.effects | {OWN_DERIVATIVE_EFFECT} if takes_references else call_jaxpr.effects


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, call_jaxpr: ClosedJaxpr, **_: object
) -> tuple[list[Any], list[Any]]:
    """Apply the equations of the function to the arrays of references."""
    return discharge_call(
        lambda closed, values: evaluate(closed.jaxpr, closed.consts, values), keys, operands, call_jaxpr
    )


def _evaluate(*operands: object, call_jaxpr: Any, name: str, **_: object) -> list[Any]:
    """Call a Python function, or run a jaxpr as one program."""
    if isinstance(call_jaxpr, ClosedJaxpr):
        return jit_call.bind_positional(operands, (name, call_jaxpr, (), False, None, False, *NO_PLACES))
    results: list[Any] = call_jaxpr.function(*operands)
    if any(type(x) is JVPTracer for x in results):
        raise UnexpectedTracerError(closed_over_message(name))
    return results


def transpose_inline(
    cotangents: Sequence[Any], *operands: ArrayLike, call_jaxpr: ClosedJaxpr, name: str, **_: object
) -> list[Any]:
    """Return the cotangents of a call on a tape."""
    # The custom rule defines the derivative; the transpose of the call follows from its equations.
    return jit_call.rule("transpose")(cotangents, *operands, name=name, jaxpr=call_jaxpr, compiler_options=None)


def _partial_evaluate(
    unknown: tuple[bool, ...], *, name: str, call_jaxpr: ClosedJaxpr, **_: object
) -> Callable[[Sequence[Any]], list[Any]] | None:
    """Return the partial evaluation of the call's jaxpr."""
    # Only tapes are partially evaluated, and they are transposed next, without the custom rule.
    assert jit_call.partial_evaluate is not None
    return jit_call.partial_evaluate(unknown, name=name, jaxpr=call_jaxpr)


# Rules that do not depend on the custom rule, of calls of functions with custom derivatives.
SHARED_RULES = make_call_rules("call_jaxpr", "Call a function with custom rules.") | {
    "emit": emit_inline("call_jaxpr"), "effects": _effects, "evaluate": _evaluate, "discharge": _discharge,
    "partial_evaluate": _partial_evaluate, "transpose": transpose_inline,
}


def cast_results(results: Sequence[Any], call_jaxpr: Any) -> list[Any]:
    """Return the results of a rule cast to the weak types of the jaxpr's results."""
    if not isinstance(call_jaxpr, ClosedJaxpr):
        return list(results)
    return [cast_weak_type(x, a) for x, a in zip(results, call_jaxpr.out_avals, strict=True)]


def batch_call(
    mapped: MappedAxis, call_jaxpr: Any, operands: Sequence[Any], axes: Sequence[int | None],
    also: Sequence[bool] | None = None,
) -> tuple[Any, list[Any], Callable[[Sequence[Any], Sequence[int | None]], list[Any]], Callable[[], list[int | None]]]:
    """Return the batched function, its operands, and functions that align results and that return their axes.

    The mapped axis is at 0 in mapped results. A jaxpr's result is mapped if it depends on the axis or its flag in
    `also` is set. A Python function's mapped results are known only after the call.
    """
    if isinstance(call_jaxpr, ClosedJaxpr):
        mapped_results = find_mapped_results(call_jaxpr, mapped, axes)
        if also is not None:
            mapped_results = tuple([a or b for a, b in zip(mapped_results, also, strict=True)])
        batched, found_places = batch_jaxpr(call_jaxpr, mapped, tuple(axes), mapped_results)
        operands = [*batched.consts, *operands]

        def align(results: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
            # The rule may map a result that does not depend on the axis; then all its elements are equal.
            return [
                mapped.place(x, i) if wanted else x if i is None else index_in_dim(x, 0, i, False)
                for x, i, wanted in zip(results, places, mapped_results, strict=True)
            ]

        return move_constants_to_inputs(batched), list(operands), align, lambda: list(found_places)
    where: list[int | None] = []
    mapping = call_jaxpr.mapping(mapped)

    def align_found(results: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
        where[:] = [None if i is None else 0 for i in places]
        return [x if i is None else mapped.place(x, i) for x, i in zip(results, places, strict=True)]

    def call(*values: ArrayLike) -> list[Any]:
        return align_found(*mapping(call_jaxpr.function, values, axes))

    return call_jaxpr.batched(call), list(operands), align_found, lambda: where


def find_mapped_results(closed: ClosedJaxpr, mapped: MappedAxis, axes: Sequence[int | None]) -> tuple[bool, ...]:
    """Return the mask of results that depend on the mapped axis."""
    return tuple([i is not None for i in batch_jaxpr(closed, mapped, tuple(axes))[1]])
