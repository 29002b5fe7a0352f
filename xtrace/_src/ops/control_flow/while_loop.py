"""`while_loop` and `fori_loop`: repeat a function while a predicate holds, or for each integer in a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xtrace._src.algebra.monoids import OR, write_reduction
from xtrace._src.algebra.vector_space import convert_to, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, physical_aval
from xtrace._src.core.callables import positional_names
from xtrace._src.core.errors import ConcretizationTypeError
from xtrace._src.core.high_types.high_values import call_on_lowered, has_high_values, with_lowered_results
from xtrace._src.core.jaxprs.effects import IO_EFFECTS, NO_EFFECTS, Effects, has_side_effects, ordered_effects
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, scalar_literal
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic, largest
from xtrace._src.core.tables import memoize, memoize_by_owner
from xtrace._src.core.tangents import tangent_aval
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.control_flow import bodies
from xtrace._src.ops.control_flow.scan import run_scan
from xtrace._src.ops.control_flow.scan_parts import Loop, choose_unroll
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.runtime.transfer import to_array
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.dead_code import eliminate_dead_code
from xtrace._src.transforms.discharge import discharge_jaxpr
from xtrace._src.transforms.effect_tokens import get_tokens, with_tokens
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import (
    PartitionedJaxpr,
    analyze_unknowns,
    batch_jaxpr,
    filter_by_mask,
    find_fixpoint,
    find_mapped_carry,
    find_mapped_results,
    jvp_jaxpr,
    move_constants_to_inputs,
    or_masks,
    partial_evaluate_jaxpr,
    scatter_by_mask,
    stage_to_jaxpr,
)
from xtrace._src.transforms.linearize import KnownResults
from xtrace._src.transforms.lower import emit_jaxpr, is_unreduced

_Carry = TypeVar("_Carry")
_PARAMETERS = ("cond_nconsts", "cond_jaxpr", "body_nconsts", "body_jaxpr")


class WhileLoop(NamedTuple):
    """The functions of a loop, and the number of constants that each takes before the carry."""

    cond_nconsts: int
    cond_jaxpr: ClosedJaxpr
    body_nconsts: int
    body_jaxpr: ClosedJaxpr

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split one value for each operand into the predicate's constants, the body's constants, and the carry."""
        consts = self.cond_nconsts + self.body_nconsts
        return list(values[: self.cond_nconsts]), list(values[self.cond_nconsts : consts]), list(values[consts:])

    @property
    def predicate(self) -> ShapedArray:
        """The type of the predicate: a scalar, or with mapped axes one element for each index."""
        return self.cond_jaxpr.out_avals[0]


def bind_while(
    loop: WhileLoop, cond_consts: Sequence[Any], body_consts: Sequence[Any], carry: Sequence[Any]
) -> list[Any]:
    """Bind a loop; the constants of its jaxprs become operands."""
    cond_consts, body_consts = [*loop.cond_jaxpr.consts, *cond_consts], [*loop.body_jaxpr.consts, *body_consts]
    parameters = (
        len(cond_consts), move_constants_to_inputs(loop.cond_jaxpr), len(body_consts),
        move_constants_to_inputs(loop.body_jaxpr),
    )
    effects = loop.cond_jaxpr.effects | loop.body_jaxpr.effects
    return bind_with_references(while_p, [*cond_consts, *body_consts, *carry], parameters, effects)


def _discharge(keys: Sequence[Any], operands: Sequence[Any], **parameters: Any) -> tuple[list[Any], list[Any]]:
    """Turn references into the first parts of the carry; both functions may read one."""
    loop = WhileLoop(**parameters)
    distinct = {id(key): i for i, key in enumerate(keys) if key is not None}
    numbers = {key: number for number, key in enumerate(distinct)}
    arrays = [operands[i] for i in distinct.values()]
    types = tuple([aval_of(x) for x in arrays])
    *functions, carry = zip(loop.split(keys), loop.split(operands), strict=True)
    consts = [[x for key, x in zip(*each, strict=True) if key is None] for each in functions]
    places = [tuple([None if key is None else numbers[id(key)] for key in own]) for own, _ in functions]
    cond = _carry_references(loop.cond_jaxpr, places[0], types, False)
    body = _carry_references(loop.body_jaxpr, places[1], types, True)
    pure = WhileLoop(len(consts[0]), cond, len(consts[1]), body)
    results = bind_while(pure, consts[0], consts[1], [*arrays, *carry[1]])
    return [None if key is None else results[numbers[id(key)]] for key in keys], results[len(arrays) :]


@memoize_by_owner
def _carry_references(
    closed: ClosedJaxpr, places: tuple[int | None, ...], types: tuple[ShapedArray, ...], is_body: bool
) -> ClosedJaxpr:
    """Return a function of the loop with references replaced by arrays of `types` at the beginning of the carry.

    places: for each constant of the function, the number of its reference, or None if it is no reference. is_body: the
    body also returns the arrays; the predicate must not write to references.
    """
    pure, count = discharge_jaxpr(closed), len(closed.out_avals)
    fixed = [a for a, place in zip(closed.in_avals, places, strict=False) if place is None]
    own = [place for place in places if place is not None]
    if not is_body and pure.jaxpr.outvars[count:] != _references(pure, places):
        raise ValueError("while_loop: cond_fun writes to a reference; only body_fun may, since it runs in every step")

    def step(*values: Any) -> list[Any]:
        consts, arrays = iter(values[: len(fixed)]), list(values[len(fixed) : len(fixed) + len(types)])
        given = [next(consts) if place is None else arrays[place] for place in places]
        results = evaluate(pure.jaxpr, pure.consts, [*given, *values[len(fixed) + len(types) :]])
        for place, array in zip(own, results[count:], strict=True):
            arrays[place] = array
        return [*arrays, *results[:count]] if is_body else results[:count]

    return stage_to_jaxpr(step, [*fixed, *types, *closed.in_avals[len(places) :]], closed.jaxpr.debug_info)


def _references(pure: ClosedJaxpr, places: tuple[int | None, ...]) -> list[Var]:
    return [v for v, place in zip(pure.jaxpr.invars, places, strict=False) if place is not None]


@memoize_by_owner
def _hoist_unchanged_carry(
    body: ClosedJaxpr, cond: ClosedJaxpr, consts: int, own: int
) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple[bool, ...]]:
    """Return the functions with the unchanged carry turned into constants of the body, and the mask of that carry.

    A carry counts as unchanged if the body returns its input and the predicate does not read it.
    """
    carry = body.jaxpr.invars[consts:]
    read = eliminate_dead_code(cond.jaxpr)[1][own:]
    fixed = tuple([v is x and not r for v, x, r in zip(carry, body.jaxpr.outvars, read, strict=True)])
    if not any(fixed):
        return body, cond, fixed
    varying = [not f for f in fixed]
    inputs = [*filter_by_mask(carry, fixed), *body.jaxpr.invars[:consts], *filter_by_mask(carry, varying)]
    predicate = cond.jaxpr.replace(invars=[*cond.jaxpr.invars[:own], *filter_by_mask(cond.jaxpr.invars[own:], varying)])
    step = body.jaxpr.replace(invars=inputs, outvars=filter_by_mask(body.jaxpr.outvars, varying))
    return ClosedJaxpr(step, []), ClosedJaxpr(predicate, []), fixed


def _run_while(
    loop: WhileLoop, cond_consts: Sequence[Any], body_consts: Sequence[Any], carry: Sequence[Any]
) -> list[Any]:
    """Bind a user's loop; a carry that the body returns unchanged is taken out of the loop."""
    body, cond, fixed = _hoist_unchanged_carry(loop.body_jaxpr, loop.cond_jaxpr, len(body_consts), len(cond_consts))
    body_consts = [*filter_by_mask(carry, fixed), *body_consts]
    new = WhileLoop(len(cond_consts), cond, len(body_consts), body)
    results = iter(bind_while(new, cond_consts, body_consts, filter_by_mask(carry, [not f for f in fixed])))
    return [to_array(x) if f else next(results) for x, f in zip(carry, fixed, strict=True)]


def _abstract(*avals: ShapedArray, **parameters: Any) -> list[ShapedArray]:
    """Return the carry after the last step."""
    loop = WhileLoop(**parameters)
    cond_consts, body_consts, carry = loop.split(avals)
    for what, given, closed in (
        ("cond_jaxpr", [*cond_consts, *carry], loop.cond_jaxpr),
        ("body_jaxpr", [*body_consts, *carry], loop.body_jaxpr),
    ):
        if len(given) != len(closed.in_avals) or not all(map(bodies.same_type, given, closed.in_avals)):
            raise TypeError(f"while: {what} takes {closed.in_avals}, its operands have the types {given}")
    out = loop.body_jaxpr.out_avals
    if len(out) != len(carry) or not all(map(bodies.same_type, carry, out)):
        raise TypeError(f"while: body_jaxpr takes the carry {carry} and returns {out}")
    predicate = loop.predicate
    if predicate.dtype != dtypes.bool_ or any(a.shape[: predicate.ndim] != predicate.shape for a in carry):
        raise TypeError(f"while: cond_jaxpr must return a boolean scalar, it returns {predicate.str_short(True)}")
    return out


def _emit(builder: FunctionBuilder, *values: Value, **parameters: Any) -> list[Value]:
    loop = WhileLoop(**parameters)
    cond_consts, body_consts, carry = loop.split(values)
    effects = ordered_effects(_effects(cond_jaxpr=loop.cond_jaxpr, body_jaxpr=loop.body_jaxpr))

    def predicate(inner: FunctionBuilder, values: Sequence[Value]) -> Value:
        return emit_jaxpr(inner, loop.cond_jaxpr.jaxpr, [*cond_consts, *values])[0]

    # StableHLO's condition region cannot thread tokens, so a predicate with effects is computed before the loop and at
    # the end of each step.
    ahead = has_side_effects(loop.cond_jaxpr.effects)
    before = [predicate(builder, carry)] if ahead else []
    terms = [x for x in body_consts if is_unreduced(x)]
    state = [*get_tokens(builder, effects), *before, *carry, *terms]
    avals = [v.aval for v in state]
    condition, body = builder.region(avals, "cond"), builder.region(avals, "body")
    first = len(effects)
    last = len(state) - len(terms)
    holds = condition.arguments[first] if ahead else predicate(condition, condition.arguments[first:last])
    axes = range(loop.predicate.ndim)
    if axes:
        holds = write_reduction(condition, OR, holds, axes, loop.predicate.update(shape=()))
    given = with_tokens(body, effects, body.arguments)
    known, given = given[: len(before)], given[len(before) :]
    given, within = given[: len(carry)], given[len(carry) :]
    inner = dict(zip([x.name for x in terms], within, strict=True))
    inner_consts: list[Any] = [inner.get(x.name, x) for x in body_consts]
    after = emit_jaxpr(body, loop.body_jaxpr.jaxpr, [*inner_consts, *given])
    if axes:
        body.scope, around = f"{body.scope}_pred", body.scope
        going = known[0] if known else predicate(body, given)
        body.scope = around
        shapes = [physical_aval(x.aval).shape for x in after]
        after = [
            body.select(body.broadcast(going, shape, axes) if shape != going.aval.shape else going, x, y)
            for shape, x, y in zip(shapes, after, given, strict=True)
        ]
    if ahead:
        after = [predicate(body, after), *after]
    results = [*get_tokens(body, effects), *after, *within]
    done = with_tokens(builder, effects, builder.while_loop(state, (condition, holds), (body, results)))
    return done[len(before) : len(done) - len(terms)]


def _effects(*, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **_: object) -> Effects:
    return cond_jaxpr.effects | body_jaxpr.effects


class _Forward(NamedTuple):
    cond: ClosedJaxpr
    body: ClosedJaxpr
    body_consts: list[Any]
    nonzero: tuple[bool, ...]


@memoize_by_owner
def _jvp_body(body: ClosedJaxpr, cond: ClosedJaxpr, given: tuple[bool, ...], consts: int) -> _Forward:
    """Return the functions of the loop over primals and tangents.

    given: the mask of the body's constants and carry with tangents. A carry has a tangent if its initial value has one
    or a step adds one.
    """
    constant, carry = given[:consts], given[consts:]

    def jvp_step(carry: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        both, nonzero = jvp_jaxpr(body, (*constant, *carry), carry)
        return both, or_masks(carry, nonzero)

    both, carry = find_fixpoint(jvp_step, carry)
    jaxpr, extra = bodies.open_jaxpr(both)
    n, count = len(extra), len(given)
    values, moved = jaxpr.invars[n : n + count], jaxpr.invars[n + count :]
    split = sum(constant)
    inputs = [*jaxpr.invars[:n], *values[:consts], *moved[:split], *values[consts:], *moved[split:]]
    cond_jaxpr = cond.jaxpr.replace(invars=[*cond.jaxpr.invars, *[Var(v.aval) for v in moved[split:]]])
    return _Forward(ClosedJaxpr(cond_jaxpr, []), ClosedJaxpr(jaxpr.replace(invars=inputs), []), extra, carry)


def _bind_jvp(
    loop: WhileLoop, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]] | tuple[None, None]:
    """Return the results of the loop and their tangents; a pair of None if all tangents are zero."""
    _, constant, carry = loop.split(tangents)
    given = tuple([t is not None for t in [*constant, *carry]])
    both = _jvp_body(loop.body_jaxpr, loop.cond_jaxpr, given, loop.body_nconsts)
    if not any(both.nonzero):
        return None, None
    avals = loop.body_jaxpr.in_avals[loop.body_nconsts :]
    started = [
        zeros(tangent_aval(a)) if n and t is None else t for a, t, n in zip(avals, carry, both.nonzero, strict=True)
    ]
    cond_consts, body_consts, values = loop.split(primals)
    body_consts = [*both.body_consts, *body_consts, *[t for t in constant if t is not None]]
    new = WhileLoop(len(cond_consts), both.cond, len(body_consts), both.body)
    results = bind_while(new, cond_consts, body_consts, [*values, *[t for t in started if t is not None]])
    count = len(both.nonzero)
    return results[:count], scatter_by_mask(results[count:], both.nonzero)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[list[Any], list[Any]]:
    results, moved = _bind_jvp(WhileLoop(**parameters), primals, tangents)
    if results is None or moved is None:
        results = while_p.bind_positional(primals, tuple(parameters.values()))
        return results, [None] * len(results)
    return results, moved


class _KnownLoop(NamedTuple):
    """The loop over the known carry; `unknown` is the mask of the unknown carry."""

    cond: ClosedJaxpr
    body: ClosedJaxpr
    unknown: tuple[bool, ...]


@memoize_by_owner
def _find_known_loop(
    body: ClosedJaxpr, cond: ClosedJaxpr, flags: tuple[bool, ...], own: int, consts: int
) -> _KnownLoop | None:
    """Return the loop over the known carry; None if the trip count or the whole carry is unknown.

    flags: the mask of unknown operands of the loop.
    """
    of_body, carry = flags[own : own + consts], flags[own + consts :]
    works, pending = analyze_unknowns(body, (*of_body, *carry))
    if all(a or b for a, b in zip(carry, pending, strict=True)) and not works:
        return None

    def evaluate_step(carry: tuple[bool, ...]) -> tuple[PartitionedJaxpr, tuple[bool, ...]]:
        # A carry that becomes unknown in a step is unknown in all steps.
        parts = partial_evaluate_jaxpr(body, (*of_body, *carry), carry)
        return parts, parts.unknown_results

    parts, carry = find_fixpoint(evaluate_step, carry)
    of_cond = (*flags[:own], *carry)
    if all(carry) or any(analyze_unknowns(cond, of_cond)[1]):
        return None
    step = parts.known.jaxpr
    predicate = cond.jaxpr.replace(invars=filter_by_mask(cond.jaxpr.invars, [not u for u in of_cond]))
    reduced, _ = eliminate_dead_code(step.replace(outvars=step.outvars[: parts.results]))
    return _KnownLoop(ClosedJaxpr(predicate, []), ClosedJaxpr(reduced, parts.known.consts), carry)


def _partial_evaluate(unknown: tuple[bool, ...], **parameters: Any) -> KnownResults | None:
    loop = WhileLoop(**parameters)
    part = _find_known_loop(loop.body_jaxpr, loop.cond_jaxpr, unknown, loop.cond_nconsts, loop.body_nconsts)
    if part is None:
        return None

    def compute(operands: Sequence[Any]) -> list[Any]:
        of_cond, of_body, _ = [
            filter_by_mask(x, [not u for u in flags])
            for x, flags in zip(loop.split(operands), loop.split(unknown), strict=True)
        ]
        carry = filter_by_mask(loop.split(operands)[2], [not u for u in part.unknown])
        return bind_while(WhileLoop(len(of_cond), part.cond, len(of_body), part.body), of_cond, of_body, carry)

    # The trip count is unknown while tracing, so no per-step residuals are saved.
    return KnownResults(compute, part.unknown)


def _transpose(_: object, *__: Array, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **___: object) -> Any:
    infos = [closed.jaxpr.debug_info for closed in (cond_jaxpr, body_jaxpr)]
    which = "fori_loop" if infos[0] is not None and infos[0].transformation == "fori_loop" else "while_loop"
    place = f" at {infos[1].place}" if infos[1] is not None and infos[1].file is not None else ""
    body = f"{infos[1].function}{place}" if infos[1] is not None else "<jaxpr>"
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop "
        f"values, because the number of steps to go back over is unknown. The loop is the {which} whose body_fun is "
        f"{body}. Try using lax.scan, or using fori_loop with static start/stop, or give the function "
        "around the loop a derivative with custom_vjp; jvp and jacfwd work."
    )


@memoize_by_owner
def _batch_functions(
    body: ClosedJaxpr, cond: ClosedJaxpr, mapped: MappedAxis, axes: tuple[int | None, ...], own: int, consts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """Return the batched predicate and body, and the mask of the mapped carry, at axis 0."""
    predicate = cond.out_avals[0]
    flags = tuple([i is not None for i in axes])
    # Dependence finds most mapped carries without batching; batching finds the others.
    carried = find_mapped_carry(body, flags[own:], consts, flags[own + consts :])
    if any(find_mapped_results(cond, (*flags[:own], *carried))):
        carried = [True] * len(carried)

    def batch_step(carried: tuple[bool, ...]) -> tuple[tuple[ClosedJaxpr, ClosedJaxpr], list[bool]]:
        places = tuple([0 if c else None for c in carried])
        always = (bool(predicate.shape) and any(carried),)
        new_cond, (where,) = batch_jaxpr(cond, mapped, (*axes[:own], *places), always)
        if where is not None and not IO_EFFECTS.isdisjoint(cond.effects | body.effects):
            raise NotImplementedError(
                "IO effects not supported in while_loop with batched predicate: an io_callback would go on being "
                "called for examples whose loop has ended. Use debug.callback if that is fine, or lax.map instead of "
                "vmap"
            )
        # With a mapped predicate, examples end at different steps, so the whole carry is mapped.
        if where is not None and not all(carried):
            return (new_cond, body), [True] * len(carried)
        new_body, out_axes = batch_jaxpr(body, mapped, (*axes[own : own + consts], *places), carried)
        return (new_cond, new_body), [i is not None for i in out_axes]

    (new_cond, new_body), stable = find_fixpoint(batch_step, carried)
    return new_cond, new_body, list(stable)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], list[int | None]]:
    loop = WhileLoop(**parameters)
    cond, body, carried = _batch_functions(
        loop.body_jaxpr, loop.cond_jaxpr, mapped, tuple(axes), loop.cond_nconsts, loop.body_nconsts
    )
    cond_consts, body_consts, carry = loop.split(operands)
    where = loop.split(axes)[2]
    carry = [mapped.place(x, i) if c else x for x, i, c in zip(carry, where, carried, strict=True)]
    new = WhileLoop(loop.cond_nconsts, cond, loop.body_nconsts, body)
    return bind_while(new, cond_consts, body_consts, carry), [0 if c else None for c in carried]


while_p = ListPrimitive(
    "while", _PARAMETERS, holds_jaxprs=True, abstract=_abstract, emit=_emit, effects=_effects, jvp=_jvp,
    discharge=_discharge, partial_evaluate=_partial_evaluate, transpose=_transpose, batch=_batch,
    multiple_results=True, memoised=False,
)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], _Carry], init_val: Any) -> _Carry:
    """Repeat ``value = body_fun(value)`` while ``cond_fun(value)`` holds, and return the value.

    The loop has forward-mode derivatives only; for reverse mode use `scan`, or `fori_loop` with known bounds.

    Args:
        cond_fun: a function of the value that returns a boolean scalar.
        body_fun: a function of the value that returns a value of the same structure, shapes and dtypes.
        init_val: the value before the first step, a pytree of arrays.

    Returns:
        The value after the last step.

    Raises:
        TypeError: a function is not callable, the predicate is no boolean scalar, or the value changes its type.

    Example:
        >>> lax.while_loop(lambda x: x < 10, lambda x: 2 * x, 1)
        Array(16, dtype=int32, weak_type=True)
    """
    bodies.check_function("cond_fun", cond_fun)
    bodies.check_function("body_fun", body_fun)
    if has_high_values(init_val):
        lowered = with_lowered_results(cond_fun), with_lowered_results(body_fun)
        return call_on_lowered(lambda x: while_loop(*lowered, x), (init_val,))
    if config.disable_jit.value:
        try:
            start = pytree.tree_map(to_array, init_val)
            return _run_in_python(cond_fun, body_fun, start)  # type: ignore[no-any-return]
        except ConcretizationTypeError:  # under another trace without values
            pass
    values, tree, avals = bodies.flatten_argument("init_val", init_val)
    in_tree = pytree.treedef_tuple([tree])

    def stage_functions() -> tuple[bodies.Body, bodies.Body]:
        cond = bodies.stage_body("while_cond", cond_fun, in_tree, avals)
        _check_predicate(cond)
        return cond, bodies.stage_body("while_loop", body_fun, in_tree, avals)

    cond, body = stage_functions()
    if body.out_tree == tree:
        promoted = bodies.promote_carry(values, avals, body.out_avals)
        if promoted is not None:
            values, avals = promoted, list(map(aval_of, promoted))
            cond, body = stage_functions()
    bodies.check_carry(positional_names(body_fun, 1)[0], tree, avals, body.out_tree, body.out_avals)
    loop = WhileLoop(len(cond.consts), cond.jaxpr, len(body.consts), body.jaxpr)
    return pytree.tree_unflatten(tree, _run_while(loop, cond.consts, body.consts, values))  # type: ignore[no-any-return]


def _check_predicate(cond: bodies.Body) -> None:
    if not pytree.is_one_leaf(cond.out_tree):
        raise TypeError(f"while_loop: cond_fun must return a boolean scalar, but got pytree {cond.out_tree}.")
    aval = cond.out_avals[0]
    if aval.shape or aval.dtype != dtypes.bool_:
        advice = "Reduce it with any() or all()" if aval.shape else "Compare it with something, such as value != 0"
        raise TypeError(
            f"while_loop: cond_fun must return a boolean scalar, but got output type {aval.str_short(True)}. {advice}."
        )


def _run_in_python(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], _Carry], value: _Carry) -> _Carry:
    while cond_fun(value):
        value = body_fun(value)
    return value


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], _Carry], init_val: Any, *, unroll: int | bool | None = None
) -> _Carry:
    """Repeat ``value = body_fun(i, value)`` for i = lower, …, upper - 1, and return the value.

    If both bounds are known while tracing, the loop is a `scan`, else a `while_loop`.

    Args:
        lower: the first integer.
        upper: the integer after the last one.
        body_fun: a function of the integer and the value that returns a value of the same structure, shapes and dtypes.
        init_val: the value before the first step, a pytree of arrays.
        unroll: the number of steps in one iteration of the compiled loop, for known bounds only; True for all.

    Returns:
        The value after the last step.

    Raises:
        TypeError: `body_fun` is not callable, a bound is no integer scalar, or the value changes its type.
        ValueError: `unroll` is given for bounds that are unknown while tracing.

    Example:
        >>> lax.fori_loop(0, 3, lambda i, x: x + i, 10)
        Array(13, dtype=int32, weak_type=True)
    """
    bodies.check_function("body_fun", body_fun)
    if has_high_values(init_val):
        run = lambda x: fori_loop(lower, upper, with_lowered_results(body_fun), x, unroll=unroll)  # noqa: E731
        return call_on_lowered(run, (init_val,))
    lower, upper, known = _bounds(lower, upper)
    if unroll is not None and not known:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
    if config.disable_jit.value and known:
        value: _Carry = init_val
        for i in range(lower, upper):
            value = body_fun(i, value)
        return value
    values, tree, avals = bodies.flatten_argument("init_val", init_val)
    count = aval_of(lower)
    in_tree = pytree.treedef_tuple([pytree.tree_structure(0), tree])
    body = bodies.stage_body("fori_loop", body_fun, in_tree, [count, *avals])
    if body.out_tree == tree:
        promoted = bodies.promote_carry(values, avals, body.out_avals)
        if promoted is not None:
            values, avals = promoted, list(map(aval_of, promoted))
            body = bodies.stage_body("fori_loop", body_fun, in_tree, [count, *avals])
    bodies.check_carry(positional_names(body_fun, 2)[1], tree, avals, body.out_tree, body.out_avals)
    number = len(body.consts)
    if known:
        steps = largest(upper - lower, 0)
        at_once = choose_unroll(1 if unroll is None else unroll, steps)
        loop = Loop(steps, False, at_once, number, len(avals) + 1)
        results = run_scan(_add_counter(body.jaxpr, number, None), loop, [*body.consts, lower, *values])[1:]
    else:
        bound = aval_of(upper)
        jaxpr = _add_counter(body.jaxpr, number, bound)
        counted = WhileLoop(0, _compare_counter(count, bound, tuple(avals)), number, jaxpr)
        results = _run_while(counted, [], body.consts, [lower, upper, *values])[2:]
    return pytree.tree_unflatten(tree, results)  # type: ignore[no-any-return]


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any, bool]:
    """Return the bounds in one dtype, and whether both are static; static bounds become ints, truncated towards 0."""
    avals = []
    for name, value in (("lower", lower), ("upper", upper)):
        try:
            aval = aval_of(value)
        except TypeError as error:
            raise TypeError(f"fori_loop: {name}: {error}") from None
        if aval.shape or not (dtypes.is_integer(aval.dtype) or dtypes.is_floating(aval.dtype)):
            raise TypeError(f"fori_loop: {name} must be an integer or float scalar, got {aval.str_short(True)}")
        avals.append(aval)
    mixed = dtypes.is_integer(avals[0].dtype) != dtypes.is_integer(avals[1].dtype)
    if avals[0].dtype != avals[1].dtype and (mixed or not (avals[0].weak_type or avals[1].weak_type)):
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{avals[0].dtype.name} and {avals[1].dtype.name}; give both as integers"
        )
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        lower, upper = [x if is_symbolic(x) else int(x) for x in (lower, upper)]
        return lower, upper, True
    dtype = avals[avals[0].weak_type].dtype
    return _as_bound(lower, avals[0], dtype), _as_bound(upper, avals[1], dtype), False


def _as_bound(value: object, aval: ShapedArray, dtype: np.dtype[Any]) -> Any:
    if aval.dtype == dtype:
        return value
    return scalar_literal(value, dtype) if type(value) in (int, float) else convert_to(value, dtype)


@memoize_by_owner
def _add_counter(closed: ClosedJaxpr, consts: int, bound: ShapedArray | None) -> ClosedJaxpr:
    """Return the body with the counter, and the bound if it is traced, at the beginning of the carry."""
    jaxpr = closed.jaxpr
    constants, counter, values = jaxpr.invars[:consts], jaxpr.invars[consts], jaxpr.invars[consts + 1 :]
    after = Var(counter.aval)
    one = Literal(dtypes.scalar_type_of(counter.aval.dtype)(1), counter.aval)
    count = JaxprEqn([counter, one], [after], add, (), NO_EFFECTS, None)
    passed = [Var(bound)] if bound is not None else []
    return ClosedJaxpr(
        jaxpr.replace(
            invars=[*constants, counter, *passed, *values], outvars=[after, *passed, *jaxpr.outvars],
            eqns=[count, *jaxpr.eqns],
        ),
        [],
    )


@memoize(1024)
def _compare_counter(counter: ShapedArray, bound: ShapedArray, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """Return the predicate counter < bound of a counted loop."""
    inputs = [Var(counter), Var(bound), *map(Var, avals)]
    holds = Var(lt.infer_types((counter, bound), ()))
    compared = JaxprEqn([*inputs[:2]], [holds], lt, (), NO_EFFECTS, None)
    info = DebugInfo("fori_loop", "cond", None, None)
    return ClosedJaxpr(Jaxpr([], inputs, [holds], [compared], NO_EFFECTS, info), [])
