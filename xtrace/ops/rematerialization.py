"""Rematerialization: a function whose intermediate values are computed again when its derivative needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace.core import pytree
from xtrace.core.avals import ShapedArray
from xtrace.core.effects import Effects
from xtrace.core.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace.core.primitive import Primitive, primitive
from xtrace.core.source import replay
from xtrace.core.tangents import Linear, tangent_aval
from xtrace.core.trace import current_trace
from xtrace.ops.calls import jit_call
from xtrace.stablehlo.builder import FunctionBuilder, Value
from xtrace.transforms.batch import MappedAxis
from xtrace.transforms.closed import (
    as_called,
    batch_jaxpr,
    chosen,
    jvp_jaxpr,
    linearize_jaxpr,
    result_types,
    spread,
    staged,
    transpose_jaxpr,
)
from xtrace.transforms.dce import eliminate_dead_code
from xtrace.transforms.evaluate import evaluate, per_jaxpr
from xtrace.transforms.linearize import Tape
from xtrace.transforms.lower import emit_equations
from xtrace.transforms.stage import StagingTrace

# Whether the compiler must not find out that an operand is one it has computed with before: for all, or for each.
_Barrier = bool | tuple[bool, ...]


def _abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """The results of the function on the operands."""
    return result_types(jaxpr, avals)


def _emit(
    builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, prevent_cse: _Barrier, differentiated: bool, **_: Any
) -> list[Value]:
    operands = list(values)
    hidden = [i for i, flag in enumerate(_flags(prevent_cse, len(operands))) if flag] if differentiated else []
    if hidden:
        names, types = ", ".join(operands[i].name for i in hidden), ", ".join(operands[i].type for i in hidden)
        text = f"stablehlo.optimization_barrier {names} : {types}"
        for i, value in zip(hidden, builder.line_of_many(text, [operands[i].aval for i in hidden]), strict=True):
            operands[i] = value
    scope = builder.scope
    builder.scope = f"{scope}/{'rematted_computation' if differentiated else 'checkpoint'}"
    found = emit_equations(builder, jaxpr.jaxpr, dict(zip(jaxpr.jaxpr.invars, operands, strict=True)))
    builder.scope = scope
    return found


def _effects(*, jaxpr: ClosedJaxpr, **_: Any) -> Effects:
    return jaxpr.effects


def _flags(prevent_cse: _Barrier, count: int) -> tuple[bool, ...]:
    return (prevent_cse,) * count if isinstance(prevent_cse, bool) else prevent_cse


def _moved(prevent_cse: _Barrier, count: int, kept: Sequence[int], added: int) -> _Barrier:
    """Return the flags of the operands that are `kept` of `count`, and of as many `added` ones."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    return (*[prevent_cse[i] for i in kept], *(True,) * added)


def _bind(
    closed: ClosedJaxpr, operands: Sequence[Any], prevent_cse: _Barrier, differentiated: bool, policy: Any
) -> list[Any]:
    """Bind the function, whose constants become operands."""
    if closed.consts:
        if not isinstance(prevent_cse, bool):
            prevent_cse = (*(True,) * len(closed.consts), *prevent_cse)
        closed, operands = as_called(closed), [*closed.consts, *operands]
    return remat_call.apply(operands, (closed, prevent_cse, differentiated, policy))  # type: ignore[no-any-return]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, prevent_cse: _Barrier,
    differentiated: bool, policy: Any,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    given = tuple([t is not None for t in tangents])
    both, nonzero = jvp_jaxpr(jaxpr, given)
    flags = _moved(prevent_cse, len(primals), range(len(primals)), sum(given))
    results = _bind(both, [*primals, *chosen(tangents, given)], flags, differentiated, policy)
    count = len(nonzero)
    return results[:count], spread(results[count:], nonzero)


class _Split(NamedTuple):
    """A function in two parts.

    known: from inputs to results, followed by what the policy saves; None where that is nothing. linear: from the
    inputs at `inputs`, what was saved, and the nonzero tangents, to the nonzero tangents of the results; it computes
    what it needs again.
    """

    known: ClosedJaxpr | None
    linear: ClosedJaxpr
    nonzero: tuple[bool, ...]
    inputs: tuple[int, ...]


@per_jaxpr
def _split(closed: ClosedJaxpr, given: tuple[bool, ...], policy: Any) -> _Split:
    parts = linearize_jaxpr(closed, given)
    # Policies look at each operation, also at those inside of called functions.
    known = parts.known if policy is None else _inlined(parts.known)
    jaxpr, count = known.jaxpr, len(parts.nonzero)
    residuals = [(jaxpr.invars if kind == "input" else jaxpr.outvars)[i] for kind, i in parts.residuals]
    needed: set[Atom] = set(residuals)
    saveable = {v for e in jaxpr.eqns if policy is not None and _is_saved(policy, e) for v in e.outvars}
    again = []
    for equation in reversed(jaxpr.eqns):
        if any(v in needed and v not in saveable for v in equation.outvars):
            again.append(equation)
            needed.update(equation.invars)
    made = {v for e in again for v in e.outvars}
    saved = [v for e in jaxpr.eqns for v in e.outvars if v in saveable and v in needed and v not in made]
    inputs = tuple([i for i, v in enumerate(jaxpr.invars) if v in needed])
    constants = [(v, x) for v, x in zip(jaxpr.constvars, known.consts, strict=True) if v in needed]
    recomputed = Jaxpr(
        [v for v, _ in constants], [*[jaxpr.invars[i] for i in inputs], *saved], residuals, again[::-1],
    )  # fmt: skip
    split = len(recomputed.invars)

    def linear(*values: Any) -> list[Any]:
        found = evaluate(recomputed, [x for _, x in constants], values[:split])
        return evaluate(parts.linear.jaxpr, parts.linear.consts, [*found, *values[split:]])

    moved = [tangent_aval(a) for a in chosen(closed.in_avals, given)]
    whole = jaxpr.replace(outvars=[*jaxpr.outvars[:count], *saved])
    linear_jaxpr = staged(linear, [*recomputed.in_avals, *moved], parts.linear.jaxpr.debug_info)
    whole_closed = ClosedJaxpr(eliminate_dead_code(whole)[0], known.consts) if saved else None
    return _Split(whole_closed, linear_jaxpr, parts.nonzero, inputs)


def _inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return `closed` with the equations of called functions in the place of the calls."""
    jaxpr = closed.jaxpr
    if not any(e.primitive is jit_call for e in jaxpr.eqns):
        return closed
    return staged(lambda *values: _evaluate_inlined(jaxpr, closed.consts, values), jaxpr.in_avals, jaxpr.debug_info)


def _evaluate_inlined(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    trace = current_trace.get()
    values: dict[Var, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    for equation in jaxpr.eqns:
        operands = [x if isinstance(x, Literal) else values[x] for x in equation.invars]
        if equation.primitive is jit_call:
            called = equation.params["jaxpr"]
            results = _evaluate_inlined(called.jaxpr, called.consts, operands)
        else:
            result = replay(equation, trace.process, equation.primitive, operands, equation.parameters)
            results = result if equation.primitive.multiple_results else [result]
        values.update(zip(equation.outvars, results, strict=True))
    return [x if isinstance(x, Literal) else values[x] for x in jaxpr.outvars]


class SaveableType:
    """What a policy may answer for a value that is kept; True is the same."""

    def __repr__(self) -> str:
        return "Saveable"


class RecomputeType:
    """What a policy may answer for a value that is computed again; False is the same."""

    def __repr__(self) -> str:
        return "Recompute"


class Offloadable(NamedTuple):
    """What a policy may answer for a value that is kept in another memory; where there is none, it stays on device."""

    src: str
    dst: str


Saveable, Recompute = SaveableType(), RecomputeType()


def _is_saved(policy: Callable[..., Any], equation: JaxprEqn) -> bool:
    verdict = policy(equation.primitive, *[x.aval for x in equation.invars], **equation.params)
    return isinstance(verdict, (SaveableType, Offloadable)) or (
        not isinstance(verdict, RecomputeType) and bool(verdict)
    )


def _computed(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Return the results of `closed`: recorded in place in a jaxpr, as one program outside of one."""
    enclosing = current_trace.get().enclosing()
    if any(isinstance(t, StagingTrace) and not isinstance(t, Tape) for t in enclosing):
        return evaluate(closed.jaxpr, closed.consts, operands)
    called = as_called(closed) if closed.consts else closed
    return jit_call.apply(  # type: ignore[no-any-return]
        [*closed.consts, *operands], ("checkpoint", called, (), False, None)
    )


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, prevent_cse: _Barrier,
    differentiated: bool, policy: Any,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    given = tuple([t is not None for t in tangents])
    parts = _split(jaxpr, given, policy)
    results = _computed(jaxpr if parts.known is None else parts.known, primals)
    count = len(parts.nonzero)
    if not any(parts.nonzero):
        return results[:count], [None] * count
    operands = [*[primals[i] for i in parts.inputs], *results[count:], *chosen(tangents, given)]
    flags = _moved(prevent_cse, len(primals), parts.inputs, len(operands) - len(parts.inputs))
    return results[:count], spread(_bind(parts.linear, operands, flags, True, policy), parts.nonzero)


def _transpose(
    cotangents: Sequence[Any], *operands: Any, jaxpr: ClosedJaxpr, prevent_cse: _Barrier, differentiated: bool,
    policy: Any,
) -> list[Any]:  # fmt: skip
    linear = tuple([type(x) is Linear for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    transposed, found = transpose_jaxpr(jaxpr, linear, nonzero)
    known = [i for i, x in enumerate(operands) if type(x) is not Linear]
    given = [c for c in cotangents if c is not None]
    flags = _moved(prevent_cse, len(operands), known, len(given))
    results = _bind(transposed, [*[operands[i] for i in known], *given], flags, differentiated, policy)
    return spread(spread(results, found), linear)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, jaxpr: ClosedJaxpr,
    prevent_cse: _Barrier, differentiated: bool, policy: Any,
) -> tuple[list[Any], tuple[int | None, ...]]:  # fmt: skip
    batched, out_axes = batch_jaxpr(jaxpr, mapped, tuple(axes))
    return _bind(batched, operands, prevent_cse, differentiated, policy), out_axes


remat_call = Primitive(
    "remat2",
    ("jaxpr", "prevent_cse", "differentiated", "policy"),
    abstract=_abstract,
    emit=_emit,
    effects=_effects,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    memoised=False,
    # The policy is shown, None included, as the other parameters are.
    unprinted={"policy": ()},
)


def _name_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> tuple[Any, Any]:
    return checkpoint_name.apply(primals, (name,)), tangents[0]


def _name_batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, name: str) -> tuple[Any, int]:
    return checkpoint_name.apply(operands, (name,)), axes[0]


def _name_abstract(x: ShapedArray, *, name: str) -> ShapedArray:
    """The value, as it is."""
    return x


@primitive(
    "name",
    ("name",),
    abstract=_name_abstract,
    emit=lambda builder, x, *, name: x,
    jvp=_name_jvp,
    batch=_name_batch,
)
def checkpoint_name(x: Any, name: str) -> Any:
    """Return the tree of arrays `x` as it is, its values named for the policies of `checkpoint`.

    TypeError if `name` is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name must be a string, got {name!r}")
    leaves, tree = pytree.tree_flatten(x)
    return pytree.tree_unflatten(tree, [checkpoint_name.apply((leaf,), (name,)) for leaf in leaves])
