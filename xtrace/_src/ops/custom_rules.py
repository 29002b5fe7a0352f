"""Operations whose rules a user gives: calls of functions with their own derivative, transpose or batched form.

Under traces that compute at once the function and its rules stay Python functions; where something records, the
function is a jaxpr in the equation, and the rules wait beside it until a transformation asks for them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import with_axis, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.effects import NO_EFFECTS, Effects
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.ir import NEVER_PRINTED, Atom, ClosedJaxpr, DebugInfo, Literal
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tangents import UndefinedPrimal, is_differentiable
from xtrace._src.core.trace import Trace, current_trace, use_trace
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.calls import jit_call
from xtrace._src.ops.reductions import add_elements
from xtrace._src.runtime.transfer import to_constant
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import BatchTrace, BatchTracer, MappedAxis, batch
from xtrace._src.transforms.jaxpr_transforms import (
    batch_jaxpr,
    cast_weak_type,
    filter_by_mask,
    infer_result_types,
    jvp_jaxpr,
    move_constants_to_inputs,
    scatter_by_mask,
)
from xtrace._src.transforms.jvp import JVPTracer, jvp
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.lower import emit_equations
from xtrace._src.transforms.scopes import call_in_scopes, program_scopes
from xtrace._src.transforms.stage import StagedTracer, StagingTrace, stage

_SCALARS = (bool, int, float, complex, Literal)


class Rule:
    """A Python function of flat values in the parameters of an operation; it prints as the user's name for it.

    `origin` is the trace that the operation was bound under: what the function closes over may be its tracers. Rules
    of equal keys do the same; one without a key is equal to itself alone.
    """

    __slots__ = ("function", "name", "key", "_origin")

    def __init__(self, function: Callable[..., Any], name: str, key: Any = None, origin: Trace | None = None) -> None:
        self.function, self.name, self.key = function, name, key
        self._origin = weakref.ref(origin or current_trace.get())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Rule) and self.key is not None and bool(self.key == other.key))

    def __hash__(self) -> int:
        return object.__hash__(self) if self.key is None else hash(self.key)

    def __str__(self) -> str:
        return self.name

    def batched(self, function: Callable[..., Any]) -> Rule:
        """Return `function`, which is this rule batched, as a rule."""
        return Rule(function, self.name, None, self._origin())

    def mapping(self, mapped: MappedAxis) -> Callable[..., tuple[list[Any], list[int | None]]]:
        """Return ``batch`` for what is called while a batch rule is at work.

        Where the tracers that the function closes over are those of the trace which called the batch rule, that trace
        is entered again, above whatever is the current one then.
        """
        current, inner = current_trace.get(), self._origin()
        found: weakref.ref[BatchTrace] | None = None
        for trace in inner.enclosing() if inner is not None else ():
            if type(trace) is BatchTrace and trace.parent is current and trace.mapped is mapped:
                found = weakref.ref(trace)

        def mapping(
            function: Callable[..., Any], values: Sequence[Any], axes: Sequence[int | None]
        ) -> tuple[list[Any], list[int | None]]:
            trace = found() if found is not None else None
            if trace is None or trace.ended:
                return batch(function, mapped, values, axes)
            return _entered_again(trace, function, values, axes)

        return mapping


def _entered_again(
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
    """Whether a function called now on the operands is to be a jaxpr: an enclosing trace records, or a tape does."""
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


def given(value: Any) -> Any:
    """Return an operand as users' functions take it: Python scalars and literals as arrays."""
    return to_constant(value) if isinstance(value, _SCALARS) else value


def _calling(rule: Rule, *arguments: Any) -> Any:
    """Return ``rule.function(*arguments)``; an error of a value out of its trace says what rules may close over."""
    try:
        return call_in_scopes(rule.function, *arguments)
    except UnexpectedTracerError as error:
        error.add_note(
            f"while the custom rule {rule} was called: it may close over no traced value of a function that has ended, "
            "such as an outer jitted one. Pass the value as an argument, or through the residuals"
        )
        raise


def closed_over(name: str) -> str:
    """The message of a derivative with respect to what a function with rules of its own closes over."""
    return (
        f"Detected differentiation of the custom_jvp or custom_vjp function {name} with respect to a closed-over "
        "value. That is not supported because the custom rule only specifies how to differentiate the function with "
        "respect to explicit arguments. Pass the closed-over value as an argument and adapt the rule, or use "
        "closure_convert"
    )


def explicit(name: str, values: Sequence[Any], tangents: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    """Return the arguments that rules are about, without the `count` closed-over values before them."""
    if any(t is not None for t in tangents[:count]):
        raise UnexpectedTracerError(closed_over(name))
    return list(values[count:]), list(tangents[count:])


def zero_of(aval: ShapedArray) -> Any:
    """Return the zero tangent of values of this type; of integers, a NumPy array of float0."""
    if not is_differentiable(aval):
        return np.zeros(aval.shape, dtypes.float0)
    return zeros(aval) if aval.shape else to_constant(Literal(dtypes.scalar_type_of(aval.dtype)(0), aval))


def _results_of_jaxpr(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """The results of a function that has rules of its own."""
    return infer_result_types(call_jaxpr, avals)


def _emit_inline(builder: FunctionBuilder, *values: Value, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Value]:
    jaxpr, results = call_jaxpr.jaxpr, builder.results
    operands: dict[Atom, Value] = dict(zip(jaxpr.invars, values, strict=True))
    emitted = emit_equations(builder, jaxpr, operands)
    builder.results = results
    return emitted


def _effects_of_jaxpr(*, call_jaxpr: Any, **_: Any) -> Effects:
    return call_jaxpr.effects if isinstance(call_jaxpr, ClosedJaxpr) else NO_EFFECTS


def _evaluate(*operands: Any, call_jaxpr: Any, name: str, **_: Any) -> list[Any]:
    """Call the function: Python's, or that of a jaxpr as a program."""
    if isinstance(call_jaxpr, ClosedJaxpr):
        return jit_call.bind_positional(operands, (name, call_jaxpr, (), False, None, False))  # type: ignore[no-any-return]
    results: list[Any] = call_jaxpr.function(*operands)
    if any(type(x) is JVPTracer for x in results):
        raise UnexpectedTracerError(closed_over(name))
    return results


def _transpose_inline(
    cotangents: Sequence[Any], *operands: Any, call_jaxpr: ClosedJaxpr, name: str, **_: Any
) -> list[Any]:
    # A linear function of tangents is transposed as any other: its rules are about its derivative.
    return jit_call.rule("transpose")(  # type: ignore[no-any-return]
        cotangents, *operands, name=name, jaxpr=call_jaxpr, compiler_options=None
    )


def _partial_evaluate_inline(
    unknown: tuple[bool, ...], *, name: str, call_jaxpr: Any, **_: Any
) -> Callable[[Sequence[Any]], list[Any]] | None:
    # What is on a tape is transposed, and needs rules no more.
    assert jit_call.partial_evaluate is not None
    return jit_call.partial_evaluate(unknown, name=name, jaxpr=call_jaxpr)


def _as_declared(results: Sequence[Any], call_jaxpr: Any) -> list[Any]:
    if not isinstance(call_jaxpr, ClosedJaxpr):
        return list(results)
    return [cast_weak_type(x, a) for x, a in zip(results, call_jaxpr.out_avals, strict=True)]


def _batched_call(
    mapped: MappedAxis,
    call_jaxpr: Any,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    also: Sequence[bool] | None = None,
) -> tuple[Any, list[Any], Callable[[Sequence[Any], Sequence[int | None]], list[Any]], Callable[[], list[int | None]]]:
    """Return the function batched, its operands, what puts results in order, and where the axis is in them.

    The axis is at 0 in those results that have it: those of a jaxpr that depend on it, with those that `also` says, and
    those of a Python function that have it, as is known after the call.
    """
    size = mapped.size
    if isinstance(call_jaxpr, ClosedJaxpr):
        mapped_results = _mapped_results(call_jaxpr, mapped, axes)
        if also is not None:
            mapped_results = tuple([a or b for a, b in zip(mapped_results, also, strict=True)])
        batched, found_places = batch_jaxpr(call_jaxpr, mapped, tuple(axes), mapped_results)
        operands = [*batched.consts, *operands]

        def as_jaxpr(results: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
            # A rule may return the same for every index of the axis along it.
            return [
                with_axis(x, i, size) if wanted else x if i is None else index_in_dim(x, 0, i, False)
                for x, i, wanted in zip(results, places, mapped_results, strict=True)
            ]

        return move_constants_to_inputs(batched), list(operands), as_jaxpr, lambda: list(found_places)
    where: list[int | None] = []
    mapping = call_jaxpr.mapping(mapped)

    def in_order(results: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
        where[:] = [None if i is None else 0 for i in places]
        return [x if i is None else with_axis(x, i, size) for x, i in zip(results, places, strict=True)]

    def call(*values: Any) -> list[Any]:
        return in_order(*mapping(call_jaxpr.function, values, axes))

    return call_jaxpr.batched(call), list(operands), in_order, lambda: where


def _mapped_results(closed: ClosedJaxpr, mapped: MappedAxis, axes: Sequence[int | None]) -> tuple[bool, ...]:
    """Return which results depend on the mapped axis."""
    return tuple([i is not None for i in batch_jaxpr(closed, mapped, tuple(axes))[1]])


def _custom_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, call_jaxpr: Any, jvp: Rule, num_consts: int, **_: Any
) -> tuple[list[Any], list[Any]]:
    primals, tangents = explicit(name, primals, tangents, num_consts)
    results, moved = _calling(jvp, primals, tangents)
    return _as_declared(results, call_jaxpr), moved


def _custom_jvp_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, call_jaxpr: Any, jvp: Rule, num_consts: int, **_: Any
) -> tuple[list[Any], list[Any]]:
    primals, tangents = explicit(name, primals, tangents, num_consts)
    tape = current_trace.get()
    with program_scopes():
        results, moved = _calling(jvp, primals, tangents)
    if tape.is_tape and any(type(x) is StagedTracer and x.owner is tape for x in results):
        # An operation that is on the tape as a whole, such as while_loop, gave them: they depend on no tangent.
        assert tape.parent is not None
        with use_trace(tape.parent):
            still = [None if t is None else zero_of(aval_of(t)) for t in tangents]
            results, _ = _calling(jvp, primals, still)
    return _as_declared(results, call_jaxpr), moved


def _custom_jvp_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, call_jaxpr: Any, jvp: Rule,
    num_consts: int, symbolic_zeros: bool,
) -> tuple[list[Any], list[int | None]]:
    mapping, explicit = jvp.mapping(mapped), list(axes[num_consts:])

    def mapped_rule(
        primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[int | None], list[Any], list[int | None]]:
        """Return the results and their tangents, None for zero, each with the axis in it."""
        nonzero = [t is not None for t in tangents]
        out_nonzero: list[bool] = []

        def both(*inner: Any) -> list[Any]:
            results, moved = jvp.function(inner[: len(primals)], scatter_by_mask(inner[len(primals) :], nonzero))
            out_nonzero[:] = [t is not None for t in moved]
            return [*results, *filter_by_mask(moved, out_nonzero)]

        found, where = mapping(
            both, [*primals, *filter_by_mask(tangents, nonzero)], explicit + filter_by_mask(explicit, nonzero)
        )
        count = len(out_nonzero)
        moved, moved_where = scatter_by_mask(found[count:], out_nonzero), scatter_by_mask(where[count:], out_nonzero)
        return found[:count], where[:count], moved, moved_where

    also = None
    if isinstance(call_jaxpr, ClosedJaxpr) and not all(_mapped_results(call_jaxpr, mapped, axes)):
        also = _with_mapped_tangents(mapped_rule, call_jaxpr, operands[num_consts:])
    call, values, in_order, places = _batched_call(mapped, call_jaxpr, operands, axes, also)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        found, where, moved, moved_where = mapped_rule(primals, tangents)
        together = [i if i is not None else j for i, j in zip(where, moved_where, strict=True)]
        size = mapped.size
        results = in_order(
            [x if i is None and j is None else with_axis(x, i, size)
             for x, i, j in zip(found, where, together, strict=True)],
            [None if j is None else 0 for j in together],
        )
        wanted = places()
        return results, [
            t if t is None or j is None else with_axis(t, i, size)
            for t, i, j in zip(moved, moved_where, wanted, strict=True)
        ]

    found = custom_jvp_call.bind_positional(
        values, (name, call, jvp.batched(rule), num_consts + len(values) - len(operands), symbolic_zeros)
    )
    return found, places()


_looking_at_tangents: ContextVar[bool] = ContextVar("looking_at_tangents", default=False)


def _with_mapped_tangents(
    mapped_rule: Callable[..., Any], call_jaxpr: ClosedJaxpr, operands: Sequence[Any]
) -> list[bool]:
    """Return for which results the rule has tangents that differ along the axis, though the results may not."""
    if _looking_at_tangents.get():
        # Inside of another rule: a rule may call one of the next order, and so on without end.
        return [True] * len(call_jaxpr.out_avals)
    found: list[bool] = []

    def both(*values: Any) -> list[Any]:
        *_, moved_where = mapped_rule(values, [v if is_differentiable(aval_of(v)) else None for v in values])
        found[:] = [i is not None for i in moved_where]
        return []

    token = _looking_at_tangents.set(True)
    try:
        stage(both, [aval_of(x) for x in operands], DebugInfo("vmap", "custom_jvp", None, None))
    except Exception:
        # What is wrong with a rule is said where a derivative is asked for.
        return [True] * len(call_jaxpr.out_avals)
    finally:
        _looking_at_tangents.reset(token)
    return found


custom_jvp_call = Primitive(
    "custom_jvp_call",
    ("name", "call_jaxpr", "jvp", "num_consts", "symbolic_zeros"),
    abstract=_results_of_jaxpr,
    emit=_emit_inline,
    evaluate=_evaluate,
    effects=_effects_of_jaxpr,
    jvp=_custom_jvp,
    linearize=_custom_jvp_linearize,
    partial_evaluate=_partial_evaluate_inline,
    transpose=_transpose_inline,
    batch=_custom_jvp_batch,
    multiple_results=True,
    memoised=False,
    unprinted={"num_consts": NEVER_PRINTED},
)


def _no_forward_mode(name: str) -> TypeError:
    return TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function. "
        f"{name} has a rule for reverse mode only: use grad or vjp, or define it with custom_jvp"
    )


def _custom_vjp_jvp(*_: Any, name: str, **__: Any) -> Any:
    raise _no_forward_mode(name)


def _custom_vjp_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, call_jaxpr: Any, fwd: Rule, num_consts: int, **_: Any
) -> tuple[list[Any], list[Any]]:
    primals, tangents = explicit(name, primals, tangents, num_consts)
    nonzero = tuple([t is not None for t in tangents])
    results, residuals, bwd = _calling(fwd, primals, nonzero)
    results = _as_declared(results, call_jaxpr)
    avals = tuple(map(aval_of, results))
    operands = [*residuals, *filter_by_mask(tangents, nonzero)]
    with program_scopes():
        moved = custom_lin.bind_positional(operands, (name, bwd, nonzero, len(residuals), avals))
    return results, scatter_by_mask(moved, [is_differentiable(a) for a in avals])


def _custom_vjp_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, call_jaxpr: Any, fwd: Rule,
    bwd: str, num_consts: int, symbolic_zeros: bool,
) -> tuple[list[Any], list[int | None]]:
    call, values, in_order, places = _batched_call(mapped, call_jaxpr, operands, axes)
    mapping, explicit = fwd.mapping(mapped), list(axes[num_consts:])

    def forward(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Rule]:
        rules: list[Any] = []

        def both(*inner: Any) -> list[Any]:
            results, residuals, backward = fwd.function(inner, nonzero)
            rules[:] = [len(results), backward]
            return [*results, *residuals]

        found, where = mapping(both, primals, explicit)
        count, backward = rules
        results = in_order(found[:count], where[:count])
        return results, found[count:], _batched_backward(mapped, backward, where[count:], places(), explicit)

    found = custom_vjp_call.bind_positional(
        values, (name, call, fwd.batched(forward), bwd, num_consts + len(values) - len(operands), symbolic_zeros)
    )
    return found, places()


def _batched_backward(
    mapped: MappedAxis,
    backward: Rule,
    residual_axes: Sequence[int | None],
    out_axes: Sequence[int | None],
    in_axes: Sequence[int | None],
) -> Rule:
    """Return the rule from residuals and cotangents to cotangents of the inputs, all batched as the axes say."""
    residual_axes, out_axes = list(residual_axes), list(out_axes)

    def batched(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        nonzero = [c is not None for c in cotangents]
        split = len(residuals)
        found_nonzero: list[bool] = []

        def each(*inner: Any) -> list[Any]:
            found = backward.function(inner[:split], scatter_by_mask(inner[split:], nonzero))
            found_nonzero[:] = [c is not None for c in found]
            return filter_by_mask(found, found_nonzero)

        values = [*residuals, *filter_by_mask(cotangents, nonzero)]
        found, where = batch(each, mapped, values, residual_axes + filter_by_mask(out_axes, nonzero))
        found, where = scatter_by_mask(found, found_nonzero), scatter_by_mask(where, found_nonzero)
        each_input = zip(found, where, in_axes, strict=True)
        return [None if c is None else _as_input(c, i, j, mapped.size) for c, i, j in each_input]

    return backward.batched(batched)


def _as_input(cotangent: Any, axis: int | None, in_axis: int | None, size: int) -> Any:
    """Return a cotangent with its axis where the input has it; an input that is not mapped is shared by all indices."""
    if in_axis is not None:
        return with_axis(cotangent, axis, size, in_axis)
    return cotangent if axis is None else add_elements(cotangent, (axis,))


custom_vjp_call = Primitive(
    "custom_vjp_call",
    ("name", "call_jaxpr", "fwd", "bwd", "num_consts", "symbolic_zeros"),
    abstract=_results_of_jaxpr,
    emit=_emit_inline,
    evaluate=_evaluate,
    effects=_effects_of_jaxpr,
    jvp=_custom_vjp_jvp,
    linearize=_custom_vjp_linearize,
    partial_evaluate=_partial_evaluate_inline,
    transpose=_transpose_inline,
    batch=_custom_vjp_batch,
    multiple_results=True,
    memoised=False,
    unprinted={"num_consts": NEVER_PRINTED},
)


def _lin_abstract(*_: ShapedArray, out_avals: Sequence[ShapedArray], **__: Any) -> list[ShapedArray]:
    """The tangents of a custom_vjp function's results: a map that only its transpose, the user's rule, is known of."""
    return [a for a in out_avals if is_differentiable(a)]


def _lin_refused(*_: Any, name: str, **__: Any) -> Any:
    raise _no_forward_mode(name)


def _lin_transpose(
    cotangents: Sequence[Any], *operands: Any, bwd: Rule, in_nonzero: Sequence[bool], num_res: int,
    out_avals: Sequence[ShapedArray], **_: Any,
) -> list[Any]:
    residuals = operands[:num_res]
    assert not any(type(x) is UndefinedPrimal for x in residuals)
    found = _calling(bwd, residuals, scatter_by_mask(cotangents, [is_differentiable(a) for a in out_avals]))
    return [None] * num_res + filter_by_mask(found, in_nonzero)


def _lin_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, bwd: Rule,
    in_nonzero: Sequence[bool], num_res: int, out_avals: Sequence[ShapedArray],
) -> tuple[list[Any], list[int | None]]:
    size = mapped.size
    tangents = [with_axis(t, i, size) for t, i in zip(operands[num_res:], axes[num_res:], strict=True)]
    in_axes = [0] * len(in_nonzero)
    rule = _batched_backward(mapped, bwd, axes[:num_res], [0] * len(out_avals), in_axes)
    avals = tuple([a.update(shape=(size, *a.shape)) for a in out_avals])
    found = custom_lin.bind_positional([*operands[:num_res], *tangents], (name, rule, in_nonzero, num_res, avals))
    return found, [0] * len(found)


custom_lin = Primitive(
    "custom_lin",
    ("name", "bwd", "in_nonzero", "num_res", "out_avals"),
    abstract=_lin_abstract,
    emit=_lin_refused,
    evaluate=_lin_refused,
    jvp=_lin_refused,
    transpose=_lin_transpose,
    batch=_lin_batch,
    multiple_results=True,
    memoised=False,
    unprinted={"out_avals": NEVER_PRINTED},
)


def _custom_vmap_results(*avals: ShapedArray, call: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """The results of a function that has a batching rule of its own."""
    return _results_of_jaxpr(*avals, call_jaxpr=call)


def _custom_vmap_emit(builder: FunctionBuilder, *values: Value, call: ClosedJaxpr, **_: Any) -> list[Value]:
    return _emit_inline(builder, *values, call_jaxpr=call)


def _custom_vmap_effects(*, call: ClosedJaxpr, **_: Any) -> Effects:
    return call.effects


def _custom_vmap_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, rule: Rule, name: str
) -> tuple[list[Any], list[Any]]:
    nonzero = [t is not None for t in tangents]
    smooth = tuple([is_differentiable(a) for a in call.out_avals])
    both, _ = jvp_jaxpr(call, tuple(nonzero), smooth)
    count, split = len(call.out_avals), len(primals)

    def moved_rule(size: int, batched: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        own, moved = list(batched[:split]), scatter_by_mask(batched[split:], nonzero)
        if any(b and m for b, m in zip(own, moved, strict=True)):
            return of_batched(size, [b or bool(m) for b, m in zip(own, moved, strict=True)], batched, values)
        # Nothing is batched together with its tangent: the rule is told so, and is itself mapped.
        mapped = MappedAxis(size)

        def each(*inner: Any) -> list[Any]:
            results, where = of_batched(size, [False] * split, [False] * len(values), inner)
            return [index_in_dim(x, 0, 0, False) if b else x for x, b in zip(results, where, strict=True)]

        results, where = batch(each, mapped, values, [0 if b else None for b in batched])
        return (
            [x if i is None else with_axis(x, i, size) for x, i in zip(results, where, strict=True)],
            [i is not None for i in where],
        )

    def of_batched(
        size: int, told: Sequence[bool], batched: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        """Return the rule's results and their tangents, which of them are batched; it is `told` of its operands."""
        wanted = [*told, *filter_by_mask(told, nonzero)]
        values = [with_axis(x, 0 if b else None, size) if w else x
                  for x, b, w in zip(values, batched, wanted, strict=True)]
        out_batched: list[bool] = []

        def function(*inner: Any) -> list[Any]:
            results, out_batched[:] = rule.function(size, told, inner)
            return results

        results, found = jvp(function, values[:split], scatter_by_mask(values[split:], nonzero))
        dense = [zero_of(aval_of(x)) if t is None else t for x, t, s in zip(results, found, smooth, strict=True) if s]
        return [*results, *dense], [*out_batched, *filter_by_mask(out_batched, smooth)]

    operands = [*primals, *filter_by_mask(tangents, nonzero)]
    consts = len(both.consts)
    if consts:
        operands = [*both.consts, *operands]
        whole = moved_rule

        def moved_rule(size: int, batched: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            return whole(size, batched[consts:], values[consts:])

    results = custom_vmap_call.bind_positional(
        operands, (name, move_constants_to_inputs(both), rule.batched(moved_rule))
    )
    return results[:count], scatter_by_mask(results[count:], smooth)


def _custom_vmap_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, rule: Rule, name: str
) -> tuple[list[Any], list[Any]]:
    # Values are the rule's; the user says nothing of transposing it, so derivatives are those of the function.
    assert jit_call.linearize is not None
    _, moved = jit_call.linearize(primals, tangents, name=name, jaxpr=call, compiler_options=None)
    return custom_vmap_call.bind_positional(primals, (name, call, rule)), moved


def _custom_vmap_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, call: ClosedJaxpr, rule: Rule, name: str
) -> tuple[list[Any], list[int | None]]:
    batched = [i is not None for i in axes]
    values = [x if i is None else with_axis(x, i, mapped.size) for x, i in zip(operands, axes, strict=True)]
    results, where = rule.function(mapped.size, batched, values)
    for x, b, aval in zip(results, where, call.out_avals, strict=True):
        shape = (mapped.size, *aval.shape) if b else aval.shape
        found = aval_of(x)
        if found.shape != shape or found.dtype != aval.dtype:
            raise ValueError(
                f"the custom vmap rule {rule} of {name} returned {found.str_short()} "
                f"{'as batched' if b else 'as not batched'}; the result of {name} is {aval.str_short()}, so "
                f"{aval.update(shape=shape).str_short()} was expected"
            )
    results = [cast_weak_type(x, a) for x, a in zip(results, call.out_avals, strict=True)]
    return results, [0 if b else None for b in where]


def _custom_vmap_transpose(
    cotangents: Sequence[Any], *operands: Any, call: ClosedJaxpr, name: str, **_: Any
) -> list[Any]:
    return _transpose_inline(cotangents, *operands, call_jaxpr=call, name=name)


custom_vmap_call = Primitive(
    "custom_vmap_call",
    ("name", "call", "rule"),
    abstract=_custom_vmap_results,
    emit=_custom_vmap_emit,
    effects=_custom_vmap_effects,
    jvp=_custom_vmap_jvp,
    linearize=_custom_vmap_linearize,
    transpose=_custom_vmap_transpose,
    batch=_custom_vmap_batch,
    multiple_results=True,
    memoised=False,
    unprinted={"name": NEVER_PRINTED},
)


def _linear_results(*avals: ShapedArray, callee: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """The results of a linear function whose transpose is given."""
    return _results_of_jaxpr(*avals, call_jaxpr=callee)


def _linear_emit(builder: FunctionBuilder, *values: Value, callee: ClosedJaxpr, **_: Any) -> list[Value]:
    return _emit_inline(builder, *values, call_jaxpr=callee)


def _linear_effects(*, callee: ClosedJaxpr, **_: Any) -> Effects:
    return callee.effects


def _linear_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, callee: ClosedJaxpr, transpose: Rule, num_res: int
) -> tuple[list[Any], list[Any]]:
    if any(t is not None for t in tangents[:num_res]):
        raise NotImplementedError(
            "linear_call cannot be differentiated with respect to its residual_args, only its linear_args; write the "
            "derivative with custom_jvp"
        )
    parameters = (callee, transpose, num_res)
    residuals = primals[:num_res]
    linear = zip(primals[num_res:], tangents[num_res:], strict=True)
    moved = [zero_of(aval_of(x)) if t is None else t for x, t in linear]
    return linear_call.bind_positional(primals, parameters), linear_call.bind_positional(
        [*residuals, *moved], parameters
    )


def _linear_transpose(
    cotangents: Sequence[Any], *operands: Any, callee: ClosedJaxpr, transpose: Rule, num_res: int
) -> list[Any]:
    given_cotangents = [zeros(a) if c is None else c for c, a in zip(cotangents, callee.out_avals, strict=True)]
    transposed, consts = transpose.function()
    back = Rule(lambda: (callee, []), "transpose")
    residuals = [*consts, *operands[:num_res]]
    if consts:
        skipped = len(consts)
        back = Rule(lambda: (_ignoring(callee, skipped, transposed), []), "transpose")
    found = linear_call.bind_positional([*residuals, *given_cotangents], (transposed, back, len(residuals)))
    return [None] * num_res + [
        c if type(x) is UndefinedPrimal else None for c, x in zip(found, operands[num_res:], strict=True)
    ]


def _ignoring(callee: ClosedJaxpr, count: int, other: ClosedJaxpr) -> ClosedJaxpr:
    """Return `callee` with `count` more leading inputs, those of `other`, that it makes no use of."""
    jaxpr = callee.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=[*other.jaxpr.invars[:count], *jaxpr.invars]), [])


def _linear_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, callee: ClosedJaxpr, transpose: Rule,
    num_res: int,
) -> tuple[list[Any], list[int | None]]:
    size, count = mapped.size, len(callee.out_avals)
    residual_axes = tuple(axes[:num_res])
    moved = [with_axis(x, i, size) for x, i in zip(operands[num_res:], axes[num_res:], strict=True)]

    def with_all_axes(closed: ClosedJaxpr, leading: Sequence[int | None]) -> tuple[ClosedJaxpr, list[Any]]:
        places = (*leading, *[0] * (len(closed.in_avals) - len(leading)))
        batched, _ = batch_jaxpr(closed, mapped, places, (True,) * len(closed.out_avals))
        return move_constants_to_inputs(batched), list(batched.consts)

    def transposed() -> tuple[ClosedJaxpr, list[Any]]:
        closed, consts = transpose.function()
        batched, more = with_all_axes(closed, [*[None] * len(consts), *residual_axes])
        return batched, [*more, *consts]

    batched, consts = with_all_axes(callee, residual_axes)
    operands = [*consts, *operands[:num_res], *moved]
    if consts:
        skipped, inner = len(consts), transposed

        def transposed() -> tuple[ClosedJaxpr, list[Any]]:
            closed, more = inner()
            jaxpr, place = closed.jaxpr, len(more)
            invars = [*jaxpr.invars[:place], *batched.jaxpr.invars[:skipped], *jaxpr.invars[place:]]
            return ClosedJaxpr(jaxpr.replace(invars=invars), []), more

    rule = transpose.batched(transposed)
    return linear_call.bind_positional(operands, (batched, rule, num_res + len(consts))), [0] * count


linear_call = Primitive(
    "linear_call",
    ("callee", "transpose", "num_res"),
    abstract=_linear_results,
    emit=_linear_emit,
    effects=_linear_effects,
    jvp=_linear_jvp,
    transpose=_linear_transpose,
    batch=_linear_batch,
    multiple_results=True,
    memoised=False,
)
