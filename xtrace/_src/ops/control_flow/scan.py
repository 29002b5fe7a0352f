"""`scan`: a loop over the leading axis of arrays, with a carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from xtrace._late_imports import late_modules
from xtrace._src.algebra.families import add_cotangents
from xtrace._src.algebra.vector_space import move_axis, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of, physical_aval
from xtrace._src.core.callables import describe_leaf_paths, positional_names
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.positions import call_at
from xtrace._src.core.high_types.high_values import call_on_lowered, has_high_values, with_lowered_results
from xtrace._src.core.jaxprs.effects import Effects, ordered_effects
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic, largest, to_count, to_size
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.tangents import UndefinedPrimal, cotangent_avals, tangent_aval
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.calls.calls import evaluate_as_program
from xtrace._src.ops.control_flow import bodies
from xtrace._src.ops.control_flow.scan_parts import (
    Loop,
    Source,
    Split,
    choose_unroll,
    find_forwarding,
    regroup_jaxpr,
    run_in_python,
    split_scan,
    until_stable,
)
from xtrace._src.ops.control_flow.scanned_elements import lengthen, read_element, read_group, store_results
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.runtime.transfer import to_array
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis, insert_axis, remove_axis
from xtrace._src.transforms.discharge import discharge_jaxpr, find_references
from xtrace._src.transforms.effect_tokens import get_tokens, with_tokens
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import (
    analyze_unknowns,
    batch_jaxpr,
    cast_weak_type,
    filter_by_mask,
    find_fixpoint,
    find_mapped_carry,
    jvp_jaxpr,
    linearize_jaxpr,
    merge_by_mask,
    move_constants_to_inputs,
    or_masks,
    partial_evaluate_jaxpr,
    scatter_by_mask,
    stage_to_jaxpr,
    transpose_jaxpr,
)
from xtrace._src.transforms.lower import emit_call, emit_jaxpr, is_unreduced, occurs_again
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.core.pytrees import pytree_differences

_Carry = TypeVar("_Carry")
_Outputs = TypeVar("_Outputs")
_PARAMETERS = ("jaxpr", "length", "reverse", "unroll", "num_consts", "num_carry")


def bind_scan(closed: ClosedJaxpr, loop: Loop, operands: Sequence[Any]) -> list[Any]:
    """Bind a scan of `closed`, which has no constvars."""
    return bind_with_references(scan_p, operands, (closed, *loop), closed.effects)


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, jaxpr: ClosedJaxpr, **details: Any
) -> tuple[list[Any], list[Any]]:
    """Turn constant references into the last parts of the carry, and elements of scanned ones into results."""
    loop = Loop(**details)
    references = find_references(keys)
    fixed = [i for i in references if i < loop.num_consts]
    kept = [i for i in range(loop.num_consts) if keys[i] is None]
    consts, carry, xs = loop.split(operands)
    carried = loop._replace(num_consts=len(kept), num_carry=loop.num_carry + len(fixed))
    body = _carry_references(jaxpr, tuple(kept), tuple(fixed), loop)
    results = bind_scan(body, carried, [*[consts[i] for i in kept], *carry, *[consts[i] for i in fixed], *xs])
    first, count = loop.num_carry + len(fixed), len(jaxpr.out_avals)
    arrays = iter([*results[loop.num_carry : first], *results[len(fixed) + count :]])
    updates = [None if key is None else next(arrays) for key in keys]
    return updates, [*results[: loop.num_carry], *results[first : len(fixed) + count]]


@memoize_by_owner
def _carry_references(closed: ClosedJaxpr, kept: tuple[int, ...], fixed: tuple[int, ...], loop: Loop) -> ClosedJaxpr:
    """Return a body without references: the constants `fixed` become the last parts of its carry.

    The final elements of scanned references are its last results.
    """
    pure = discharge_jaxpr(closed)
    _, carry, xs = loop.split(pure.jaxpr.invars)
    inputs, outputs = pure.jaxpr.invars, pure.jaxpr.outvars
    count, results = loop.num_carry, len(closed.out_avals)
    last = results + len(fixed)
    invars = [*[inputs[i] for i in kept], *carry, *[inputs[i] for i in fixed], *xs]
    outvars = [*outputs[:count], *outputs[results:last], *outputs[count:results], *outputs[last:]]
    return ClosedJaxpr(pure.jaxpr.replace(invars=invars, outvars=outvars), pure.consts)


def run_scan(closed: ClosedJaxpr, loop: Loop, operands: Sequence[Any]) -> list[Any]:
    """Bind a user's scan; carries and elements that the body returns unchanged are taken out of the loop."""
    forwarded = find_forwarding(closed, loop)
    if forwarded is None:
        return bind_scan(closed, loop, operands)
    consts, carry, xs = loop.split(operands)
    varying = filter_by_mask(carry, [not f for f in forwarded.fixed])
    fixed = filter_by_mask(carry, forwarded.fixed)
    results = iter(bind_scan(forwarded.body, forwarded.loop, [*fixed, *consts, *varying, *xs]))
    last = [to_array(x) if f else next(results) for x, f in zip(carry, forwarded.fixed, strict=True)]
    return [*last, *[next(results) if i is None else to_array(xs[i]) for i in forwarded.elements]]


def _abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, **details: Any) -> list[ShapedArray]:
    """Return the carry after the last step, and the steps' other results, stacked along a leading axis."""
    loop = Loop(length, **details)
    consts, carry, xs = loop.split(avals)
    if any(a.ndim == 0 or a.shape[0] != length for a in xs):
        raise TypeError(f"scan: operands that are scanned over must have the leading axis size {length}, got {xs}")
    steps = [remove_axis(a, 0) for a in xs]
    expected = jaxpr.in_avals
    if len(avals) != len(expected) or not all(map(bodies.same_type, [*consts, *carry, *steps], expected)):
        raise TypeError(f"scan: the jaxpr takes {expected}, its operands have the types {[*consts, *carry, *steps]}")
    out = jaxpr.out_avals
    if not all(map(bodies.same_type, carry, out)):
        raise TypeError(f"scan: the jaxpr takes the carry {carry} and returns {out[: loop.num_carry]}")
    return [*out[: loop.num_carry], *[insert_axis(a, 0, length) for a in out[loop.num_carry :]]]


def _effects(*, jaxpr: ClosedJaxpr, **_: object) -> Effects:
    return jaxpr.effects


_INDEX = ShapedArray((), dtypes.int32)


class _Steps:
    """Writes the steps of a scan: inline, or as calls of one function if there are several."""

    def __init__(self, jaxpr: Jaxpr, loop: Loop, consts: list[Value], called: bool) -> None:
        self.jaxpr, self.loop, self.consts, self.called = jaxpr, loop, consts, called

    def write(self, builder: FunctionBuilder, carry: list[Value], xs: list[Value]) -> tuple[list[Value], list[Value]]:
        """Write one step; return the carry and the step's results."""
        jaxpr = self.jaxpr
        rows = [x.bitcast(v.aval) for x, v in zip(xs, jaxpr.invars[len(jaxpr.invars) - len(xs) :], strict=True)]
        values = [*self.consts, *carry, *rows]
        # The scope separates the body from the loop's own operations in profiles, as in JAX.
        scope = builder.scope
        builder.scope = builder.path("closed_call")
        if self.called:
            builder.name_next("")
            outputs = emit_call(builder, jaxpr, "scan_body", values, "func.call")
        else:
            outputs = emit_jaxpr(builder, jaxpr, values)
        builder.scope = scope
        return outputs[: self.loop.num_carry], outputs[self.loop.num_carry :]

    def write_group(
        self, builder: FunctionBuilder, count: int, start: Value, carry: list[Value], xs: list[Value], ys: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Write `count` steps on the elements from `start` on; return the carry, and `ys` with the results stored."""
        place = builder.place
        builder.name_next("jit(dynamic_index_in_dim)/dynamic_slice")
        groups = [read_group(builder, x, start, count) for x in xs]
        results: list[list[Value]] = []
        for i in reversed(range(count)) if self.loop.reverse else range(count):
            rows = [read_element(builder, g, x.aval, i) for g, x in zip(groups, xs, strict=True)]
            carry, outputs = self.write(builder, carry, rows)
            results.append(outputs)
        if self.loop.reverse:
            results.reverse()
        columns = zip(*results, strict=True) if results else [[] for _ in ys]
        builder.name_next("jit(dynamic_update_index_in_dim)/dynamic_update_slice")
        stacked = [store_results(builder, y, start, list(parts)) for y, parts in zip(ys, columns, strict=True)]
        builder.place = place
        return carry, stacked


def _emit(builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, **details: Any) -> list[Value]:
    loop = Loop(**details)
    consts, carry, xs = loop.split(values)
    # Slices of arrays of extended dtypes are read and written in their physical type.
    xs = [x.to_physical() for x in xs]
    # XLA refuses a loop that reads an array without elements, even if it has no steps.
    missing = largest(1 - loop.length, 0) if is_symbolic(loop.length) else 0
    if missing != 0:
        xs = [lengthen(builder, x, missing) for x in xs]
    ys = []
    stacked_avals = [physical_aval(a) for a in builder.results[loop.num_carry :]]
    for aval in stacked_avals:
        # Broadcast at run time, so that the executable holds no constant of this size.
        if missing != 0:
            aval = aval.update(shape=(aval.shape[0] + missing, *aval.shape[1:]))
        zero = builder.constant(0, aval.update(shape=()))
        ys.append(builder.keep_terms(builder.broadcast(zero, aval.shape).bitcast(aval)))
    if not loop.length:
        return [*carry, *ys]
    if builder.place is not None:
        # Profiles show the while loop that the scan becomes, as in JAX.
        position, name = builder.place
        builder.place = position, f"{name.removesuffix('scan')}while"
    # A symbolic number of steps is not unrolled, since it may be no multiple of `unroll`.
    is_counted = not is_symbolic(loop.length)
    unroll = min(loop.unroll, loop.length) if is_counted else 1
    trips, rest = divmod(loop.length, unroll)
    # Of a reversed loop, the remaining steps are in front of the groups.
    first = rest if loop.reverse else 0
    steps = _Steps(jaxpr.jaxpr, loop, consts, unroll > 1 or occurs_again(builder, jaxpr.jaxpr))
    if not is_counted or trips > 1:
        carry, ys = _emit_loop(builder, steps, trips, unroll, first, carry, xs, ys)
        if rest:
            ys = [builder.keep_terms(y.bitcast(v)) for y, v in zip(ys, stacked_avals, strict=True)]
    elif trips:
        carry, ys = steps.write_group(builder, unroll, builder.constant(first, _INDEX), carry, xs, ys)
    if rest:
        at = 0 if loop.reverse else loop.length - rest
        carry, ys = steps.write_group(builder, rest, builder.constant(at, _INDEX), carry, xs, ys)
    if missing != 0:
        ys = [builder.slice(y, [(0, n) for n in v.shape]) for y, v in zip(ys, stacked_avals, strict=True)]
    return [*carry, *ys]


def _emit_loop(
    builder: FunctionBuilder, steps: _Steps, trips: int, unroll: int, first: int, carry: list[Value],
    xs: list[Value], ys: list[Value],
) -> tuple[list[Value], list[Value]]:
    """Write a loop of `trips` groups of `unroll` steps from `first` on; return the carry, and `ys` with the results."""
    loop, consts = steps.loop, steps.consts
    effects = ordered_effects(steps.jaxpr.effects)
    terms = [x for x in (*consts, *xs) if is_unreduced(x)]
    state = [*get_tokens(builder, effects), builder.constant(0, _INDEX), *carry, *ys, *terms]
    avals = [v.aval for v in state]
    condition = builder.region(avals, "cond")
    i, bound = condition.arguments[len(effects)], condition.constant(trips, _INDEX)
    condition.name_next("lt")
    holds = condition.compare("LT", i, bound)
    body = builder.region(avals, "body")
    i, *values_of_step = with_tokens(body, effects, body.arguments)
    carried, stacked = _halves(values_of_step, loop.num_carry)
    stacked, within = _halves(stacked, len(ys))
    inner = dict(zip([x.name for x in terms], within, strict=True))
    steps.consts = [body.keep_terms(inner.get(x.name, x)) for x in consts]
    scanned = [body.keep_terms(inner.get(x.name, x)) for x in xs]
    start = i
    if loop.reverse:
        last = body.constant(trips - 1, _INDEX)
        body.name_next("sub")
        start = body.elementwise("subtract", last, i)
    if unroll > 1:
        start = body.elementwise("multiply", start, body.constant(unroll, _INDEX))
    if first:
        start = body.elementwise("add", start, body.constant(first, _INDEX))
    carried, stacked = steps.write_group(body, unroll, start, carried, scanned, stacked)
    one = body.constant(1, _INDEX)
    body.name_next("add")
    after = body.elementwise("add", i, one)
    results = [*get_tokens(body, effects), after, *carried, *stacked, *within]
    done = with_tokens(builder, effects, builder.while_loop(state, (condition, holds), (body, results)))
    steps.consts = consts
    return _halves(done[1 : len(done) - len(terms)], loop.num_carry)


def _halves(values: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    return list(values[:count]), list(values[count:])


def _force_carry(flags: Sequence[bool], loop: Loop, results: int) -> tuple[bool, ...]:
    """Return the flags that the body's results must have at least: the input flags of the carry, and False."""
    return (*loop.split(flags)[1], *(False,) * (results - loop.num_carry))


def _initial_tangents(loop: Loop, avals: Sequence[ShapedArray], tangents: Sequence[Any], moving: Any) -> list[Any]:
    """Return the operands' tangents, with zeros instantiated where the flag in `moving` is set."""
    return [
        zeros(tangent_aval(a)) if moves and t is None else t
        for a, t, moves in zip(avals, tangents, moving, strict=True)
    ]


class _Forward(NamedTuple):
    body: ClosedJaxpr
    consts: list[Any]
    loop: Loop
    moving: tuple[bool, ...]
    nonzero: tuple[bool, ...]


@memoize_by_owner
def _jvp_body(closed: ClosedJaxpr, given: tuple[bool, ...], loop: Loop) -> _Forward:
    """Return the body of the scan over primals and tangents."""
    results = len(closed.out_avals)
    # A carry has a tangent if its initial value has one, or if a step adds one.
    moving, _ = until_stable(lambda flags: jvp_jaxpr(closed, flags, _force_carry(flags, loop, results))[1], given, loop)
    both, nonzero = jvp_jaxpr(closed, moving, _force_carry(moving, loop, results))
    jaxpr, extra = bodies.open_jaxpr(both)
    count, n = len(closed.in_avals), len(extra)
    values = loop.split(jaxpr.invars[n : n + count])
    moved = loop.split(scatter_by_mask(jaxpr.invars[n + count :], moving))
    groups = [[*v, *[t for t in m if t is not None]] for v, m in zip(values, moved, strict=True)]
    groups[0] = [*jaxpr.invars[:n], *groups[0]]
    out, moved_out = jaxpr.outvars[:results], scatter_by_mask(jaxpr.outvars[results:], nonzero)
    carry, ys = _halves(out, loop.num_carry)
    carry_moved, ys_moved = _halves(moved_out, loop.num_carry)
    outputs = [x for x in [*carry, *carry_moved, *ys, *ys_moved] if x is not None]
    new = loop._replace(num_consts=len(groups[0]), num_carry=len(groups[1]))
    return _Forward(regroup_jaxpr(groups, outputs, jaxpr), extra, new, moving, nonzero)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **details: Any
) -> tuple[list[Any], list[Any]]:
    loop = Loop(**details)
    both = _jvp_body(jaxpr, tuple([t is not None for t in tangents]), loop)
    moved = loop.split(_initial_tangents(loop, jaxpr.in_avals, tangents, both.moving))
    groups = [[*v, *[t for t in m if t is not None]] for v, m in zip(loop.split(primals), moved, strict=True)]
    outputs = iter(bind_scan(both.body, both.loop, [*both.consts, *groups[0], *groups[1], *groups[2]]))
    carry_nonzero, ys_nonzero = _halves(both.nonzero, loop.num_carry)
    carry = [next(outputs) for _ in carry_nonzero]
    carry_moved = [next(outputs) if n else None for n in carry_nonzero]
    ys = [next(outputs) for _ in ys_nonzero]
    return [*carry, *ys], [*carry_moved, *[next(outputs) if n else None for n in ys_nonzero]]


def _bind_split(
    parts: Split, loop: Loop, operands: Sequence[Any], moved: Sequence[Sequence[Any]]
) -> tuple[list[Any], list[Any]]:
    """Bind the known scan on `operands`, in the layout `loop`, and the linear scan; return the results of both.

    moved: the linear constants, carry and elements of the linear scan.
    """
    values: dict[str, Sequence[Any]] = {"operand": operands, "extra": parts.extra}

    def get_values(sources: Sequence[Source]) -> list[Any]:
        return [values[kind][i] for kind, i in sources]

    if parts.hoisted.jaxpr.outvars:
        fixed = [*parts.extra[: parts.known_extra], *[operands[i] for i in parts.fixed]]
        values["hoisted"] = evaluate_as_program(parts.hoisted, fixed, "scan_invariants")
    _, carry, xs = loop.split(operands)
    results = bind_scan(parts.known, parts.known_loop, [*get_values(parts.known_consts), *carry, *xs])
    values["result"] = results
    linear = [*get_values(parts.linear_consts), *moved[0], *moved[1], *get_values(parts.stacked), *moved[2]]
    return results[: parts.results], bind_scan(parts.linear, parts.linear_loop, linear)


@memoize_by_owner
def _linearize_body(
    closed: ClosedJaxpr, given: tuple[bool, ...], loop: Loop
) -> tuple[Split, tuple[bool, ...], tuple[bool, ...]]:
    """Return the known and the linear scan, and the masks of inputs and of results with tangents."""
    results = len(closed.out_avals)
    moving, nonzero = until_stable(
        lambda flags: linearize_jaxpr(closed, flags, _force_carry(flags, loop, results)).unknown_results, given, loop
    )
    parts = linearize_jaxpr(closed, moving, _force_carry(moving, loop, results))
    consts, carry, _ = loop.split(moving)
    moved_loop = loop._replace(num_consts=sum(consts), num_carry=sum(carry))
    return split_scan(parts, loop, moved_loop), moving, nonzero


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **details: Any
) -> tuple[list[Any], list[Any]]:
    loop = Loop(**details)
    parts, moving, nonzero = _linearize_body(jaxpr, tuple([t is not None for t in tangents]), loop)
    groups = loop.split(_initial_tangents(loop, jaxpr.in_avals, tangents, moving))
    results, moved = _bind_split(parts, loop, primals, [[t for t in group if t is not None] for group in groups])
    return results, scatter_by_mask(moved, nonzero)


@memoize_by_owner
def _split_body(
    closed: ClosedJaxpr, unknown: tuple[bool, ...], loop: Loop
) -> tuple[Split, Loop, tuple[bool, ...], tuple[bool, ...]] | None:
    """Return the known and the unknown scan, the known scan's loop, and the masks of unknown inputs and results.

    None if all results and all work are unknown.
    """
    # A carry that starts known but becomes unknown in a step is unknown in all steps.
    flags, pending = until_stable(lambda flags: analyze_unknowns(closed, flags)[1], unknown, loop)
    if all(pending) and not analyze_unknowns(closed, flags)[0]:
        return None
    results = len(closed.out_avals)
    unknown, pending = until_stable(
        lambda flags: partial_evaluate_jaxpr(closed, flags, _force_carry(flags, loop, results)).unknown_results,
        unknown, loop,
    )
    consts, carry, _ = loop.split(unknown)
    parts = partial_evaluate_jaxpr(closed, unknown, _force_carry(unknown, loop, results))
    known_loop = loop._replace(num_consts=consts.count(False), num_carry=carry.count(False))
    moved_loop = loop._replace(num_consts=sum(consts), num_carry=sum(carry))
    return split_scan(parts, known_loop, moved_loop), known_loop, unknown, pending


def _partial_evaluate(
    unknown: tuple[bool, ...], *, jaxpr: ClosedJaxpr, **details: Any
) -> Callable[[Sequence[Any]], list[Any]] | None:
    loop = Loop(**details)
    split = _split_body(jaxpr, unknown, loop)
    if split is None:
        return None
    parts, known_loop, flags, pending = split
    known = [not u for u in flags]

    def compute(operands: Sequence[Any]) -> list[Any]:
        moved = [filter_by_mask(x, w) for x, w in zip(loop.split(operands), loop.split(flags), strict=True)]
        return merge_by_mask(*_bind_split(parts, known_loop, filter_by_mask(operands, known), moved), pending)

    return compute


class _TransposedScan(NamedTuple):
    """The reverse scan of cotangents, and `before`, a scan that computes the known carry of each step, or None.

    linear: the mask of the body's linear operands. given: the mask of results with nonzero cotangents. nonzero: the
    mask of operands with nonzero cotangents.
    """

    before: ClosedJaxpr | None
    before_loop: Loop
    body: ClosedJaxpr
    consts: list[Any]
    loop: Loop
    linear: tuple[bool, ...]
    given: tuple[bool, ...]
    nonzero: tuple[bool, ...]


def _find_dependent_outputs(jaxpr: Jaxpr, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Return the mask of outputs that depend on the inputs marked by `flags`."""
    dependent: set[Atom] = set(filter_by_mask(jaxpr.invars, flags))
    for equation in jaxpr.eqns:
        if any(x in dependent for x in equation.invars):
            dependent.update(equation.outvars)
    return tuple([x in dependent for x in jaxpr.outvars])


@memoize_by_owner
def _transpose_body(
    closed: ClosedJaxpr, operands_linear: tuple[bool, ...], given: tuple[bool, ...], loop: Loop
) -> _TransposedScan:
    """Return the reverse scan for linear operands; `given` is the mask of results with nonzero cotangents."""
    linear, _ = until_stable(lambda flags: _find_dependent_outputs(closed.jaxpr, flags), operands_linear, loop)
    carry_linear = tuple(loop.split(linear)[1])
    initial, ys_given = _halves(given, loop.num_carry)

    def transpose_step(carry_given: tuple[bool, ...]) -> tuple[tuple[ClosedJaxpr, tuple[bool, ...]], tuple[bool, ...]]:
        transposed, has_cotangent = transpose_jaxpr(closed, linear, (*carry_given, *ys_given))
        after = or_masks(carry_given, loop.split(scatter_by_mask(has_cotangent, linear))[1])
        return (transposed, has_cotangent), tuple([bool(x) for x in after])

    (transposed, has_cotangent), carry_given = find_fixpoint(
        transpose_step, [g and x for g, x in zip(initial, carry_linear, strict=True)]
    )
    nonzero = tuple([bool(x) for x in scatter_by_mask(has_cotangent, linear)])
    found_consts = loop.split(nonzero)[0]
    jaxpr, extra = bodies.open_jaxpr(transposed)
    in_avals = closed.in_avals
    kinds = loop.split(in_avals)
    known = loop.split([not x for x in linear])
    fixed, carried, scanned = [filter_by_mask(k, w) for k, w in zip(kinds, known, strict=True)]
    accumulated = cotangent_avals(filter_by_mask(kinds[0], found_consts))
    # The cotangent of a result has the result's type, which need not be weak where the initial value's type is.
    ends = [b if g else a for a, b, g in zip(kinds[1], closed.out_avals, initial, strict=False)]
    carry_avals = cotangent_avals(ends)
    moved = filter_by_mask(carry_avals, carry_given)
    ys = cotangent_avals(filter_by_mask(closed.out_avals[loop.num_carry :], ys_given))
    extra_avals = list(map(aval_of, extra))
    makers = {v: equation for equation in jaxpr.eqns for v in equation.outvars}

    def body(*values: Any) -> list[Any]:
        rest = iter(values)
        extras, own, sums, cotangents, own_carry, own_xs, cotangents_ys = (
            [next(rest) for _ in group] for group in (extra_avals, fixed, accumulated, moved, carried, scanned, ys)
        )
        results = evaluate(jaxpr, [], [*extras, *own, *own_carry, *own_xs, *cotangents, *cotangents_ys])
        consts, carry, xs = loop.split(scatter_by_mask(results, nonzero))
        sums = [
            call_at(makers[v], add_cotangents, s, c) if v in makers else add_cotangents(s, c)
            for v, s, c in zip(jaxpr.outvars, sums, [c for c in consts if c is not None], strict=False)
        ]
        after = [
            zeros(a) if c is None else cast_weak_type(c, a)
            for a, c, g in zip(carry_avals, carry, carry_given, strict=True) if g
        ]
        return [*sums, *after, *[c for c in xs if c is not None]]

    groups = [[*extra_avals, *fixed], [*accumulated, *moved], [*carried, *scanned, *ys]]
    backward = stage_to_jaxpr(body, [a for group in groups for a in group], closed.jaxpr.debug_info)
    body_jaxpr, more = bodies.open_jaxpr(backward)
    before = None
    before_loop = loop._replace(num_consts=len(fixed), num_carry=len(carried))
    if carried:
        inputs = [filter_by_mask(v, w) for v, w in zip(loop.split(closed.jaxpr.invars), known, strict=True)]
        outputs = filter_by_mask(closed.jaxpr.outvars[: loop.num_carry], known[1])
        before = regroup_jaxpr(inputs, [*outputs, *inputs[1]], closed.jaxpr)
    new = loop._replace(reverse=not loop.reverse, num_consts=len(more) + len(groups[0]), num_carry=len(groups[1]))
    return _TransposedScan(
        before, before_loop, ClosedJaxpr(body_jaxpr, []), [*more, *extra], new, linear, (*carry_given, *ys_given),
        nonzero,
    )


def _transpose(cotangents: Sequence[Any], *operands: Any, jaxpr: ClosedJaxpr, **details: Any) -> list[Any]:
    loop = Loop(**details)
    operands_linear = tuple([type(x) is UndefinedPrimal for x in operands])
    parts = _transpose_body(jaxpr, operands_linear, tuple([c is not None for c in cotangents]), loop)
    fixed, carried, scanned = [
        filter_by_mask(v, [not x for x in w])
        for v, w in zip(loop.split(operands), loop.split(parts.linear), strict=True)
    ]
    if parts.before is not None:
        carried = bind_scan(parts.before, parts.before_loop, [*fixed, *carried, *scanned])[len(carried) :]
    consts_found, _, xs_found = loop.split(parts.nonzero)
    avals = loop.split(cotangent_avals(jaxpr.in_avals))
    sums = [zeros(a) for a in filter_by_mask(avals[0], consts_found)]
    carry_given, ys_given = _halves(parts.given, loop.num_carry)
    moved = [zeros(a) if c is None else c for a, c, g in zip(avals[1], cotangents, carry_given, strict=False) if g]
    ys = filter_by_mask(cotangents[loop.num_carry :], ys_given)
    outputs = iter(bind_scan(parts.body, parts.loop, [*parts.consts, *fixed, *sums, *moved, *carried, *scanned, *ys]))
    groups = [[next(outputs) if f else None for f in flags] for flags in (consts_found, carry_given, xs_found)]
    # A zero operand that is linear only inside the loop needs no cotangent.
    return [c if x else None for c, x in zip([c for g in groups for c in g], operands_linear, strict=True)]


@memoize_by_owner
def _batch_body(
    closed: ClosedJaxpr, mapped: MappedAxis, axes: tuple[int | None, ...], loop: Loop
) -> tuple[ClosedJaxpr, tuple[int | None, ...], list[bool]]:
    """Return the batched body, the mapped axis of each result, and the mask of mapped carries."""
    consts, carry, xs = loop.split(axes)
    # Dependence finds most mapped carries without batching; batching finds the others.
    carried = find_mapped_carry(closed, [i is not None for i in axes], len(consts), [i is not None for i in carry])
    results = len(closed.out_avals)

    def batch_step(carried: tuple[bool, ...]) -> tuple[tuple[ClosedJaxpr, tuple[int | None, ...]], list[bool]]:
        always = (*carried, *(False,) * (results - loop.num_carry))
        inner = (*consts, *[0 if c else None for c in carried], *[None if i is None else 0 for i in xs])
        batched, places = batch_jaxpr(closed, mapped, inner, always)
        return (batched, places), [i is not None for i in places[: loop.num_carry]]

    (batched, places), stable = find_fixpoint(batch_step, carried)
    return batched, places, list(stable)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, jaxpr: ClosedJaxpr, **details: Any
) -> tuple[list[Any], list[int | None]]:
    loop = Loop(**details)
    batched, places, carried = _batch_body(jaxpr, mapped, tuple(axes), loop)
    extra = batched.consts
    values, where = loop.split(operands), loop.split(axes)
    carry = [mapped.place(x, i) if c else x for x, i, c in zip(values[1], where[1], carried, strict=True)]
    xs = [x if i is None else move_axis(x, i, 1) for x, i in zip(values[2], where[2], strict=True)]
    new = loop._replace(num_consts=loop.num_consts + len(extra))
    results = bind_scan(move_constants_to_inputs(batched), new, [*extra, *values[0], *carry, *xs])
    carry_places, ys_places = _halves(places, loop.num_carry)
    return results, [*carry_places, *[None if i is None else 1 for i in ys_places]]


scan_p = ListPrimitive(
    "scan", _PARAMETERS, abstract=_abstract, emit=_emit, effects=_effects, jvp=_jvp, linearize=_linearize,
    partial_evaluate=_partial_evaluate, transpose=_transpose, batch=_batch, discharge=_discharge,
    multiple_results=True, memoised=False,
)


def scan(
    f: Callable[[Any, Any], tuple[_Carry, _Outputs]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False,
) -> tuple[_Carry, _Outputs]:
    """Call a function on each element in turn with a carry; return the final carry and the stacked results.

    The function is traced once, runs as one compiled loop, and is differentiable in both modes.

    Args:
        f: the function ``carry, y = f(carry, x)``.
        init: the carry before the first step, a pytree. Each step must return a carry of the same structure, shapes and
            dtypes.
        xs: a pytree of arrays whose leading axes have one size; None for `length` steps with ``x = None``.
        length: the number of steps; optional with `xs`.
        reverse: whether the steps go from the last element to the first one; each result stays at the index of its
            element.
        unroll: the number of steps in one iteration of the compiled loop; True for all.
        _split_transpose: ignored, accepted as in JAX.

    Returns:
        A pair of the final carry and the results, stacked along a new leading axis.

    Raises:
        TypeError: the carry changes its type, or a result is no array.
        ValueError: the sizes do not agree.

    Example:
        >>> lax.scan(lambda total, x: (total + x, total), 0.0, jnp.array([1.0, 2.0, 3.0]))
        (Array(6., dtype=float32), Array([0., 1., 3.], dtype=float32, weak_type=True))
    """
    bodies.check_function("f", f)
    if has_high_values((init, xs)):
        return call_on_lowered(lambda c, x: scan(with_lowered_results(f), c, x, length, reverse, unroll), (init, xs))
    carry, carry_tree, carry_avals = bodies.flatten_argument("init", init)
    elements, xs_tree, xs_avals = bodies.flatten_argument("xs", xs)
    size = find_length(length, xs_tree, xs_avals)
    steps = choose_unroll(unroll, size)
    if config.disable_jit.value:
        return run_in_python(f, init, elements, xs_tree, size, bool(reverse))
    in_tree = pytree.treedef_tuple([carry_tree, xs_tree])
    inner = [remove_axis(a, 0) for a in xs_avals]
    body = bodies.stage_body("scan", f, in_tree, [*carry_avals, *inner])
    out_tree = _split_result_tree(body)
    if out_tree[0] == carry_tree:
        promoted = bodies.promote_carry(carry, carry_avals, body.out_avals[: len(carry)])
        if promoted is not None:
            carry, carry_avals = promoted, list(map(aval_of, promoted))
            body = bodies.stage_body("scan", f, in_tree, [*carry_avals, *inner])
            out_tree = _split_result_tree(body)
    name = positional_names(f, 2)[0]
    bodies.check_carry(name, carry_tree, carry_avals, out_tree[0], body.out_avals[: out_tree[0].num_leaves])
    loop = Loop(size, bool(reverse), steps, len(body.consts), len(carry))
    results = run_scan(body.jaxpr, loop, [*body.consts, *carry, *elements])
    # The pair is a tuple or a list, as the body's is.
    return pytree.tree_unflatten(body.out_tree, results)  # type: ignore[no-any-return]


def find_length(length: Any, xs_tree: Any, avals: Sequence[ShapedArray]) -> int:
    """Return the trip count; ValueError if `length` and the leading axes disagree."""

    def paths() -> list[str]:
        return describe_leaf_paths(["xs"], [xs_tree])

    for position, aval in enumerate(avals):
        if not aval.shape:
            raise ValueError(
                f"{called_function()} got value with no leading axis to scan over: {paths()[position]} has type "
                f"{aval.str_short(True)}. Close over values that are the same in every step"
            )
    for path, aval in zip(paths(), avals, strict=True) if any(a.is_placed for a in avals) else ():
        own = aval.explicit_sharding
        if own is not None and own.spec[0] is not None:
            raise ValueError(
                f"{called_function()}: 0th dimension of all xs should be replicated. Got {own.spec} of {path}: each "
                "step reads a whole slice. Write xtrace.reshard(x, spec) with None for this dimension first"
            )
    sizes = sorted({a.shape[0] for a in avals})
    if len(sizes) > 1:
        lines = [f"  * {path} has leading axis size {a.shape[0]}" for path, a in zip(paths(), avals, strict=True)]
        raise ValueError(
            f"{called_function()} got values with different leading axis sizes: {', '.join(map(str, sizes))}.\n"
            + "\n".join(lines)
            + "\nCut or pad them to one length, or close over values that are the same in every step."
        )
    if length is None:
        if not sizes:
            raise ValueError(f"{called_function()} got no values to scan over and `length` not provided; give length=")
        return sizes[0]
    if isinstance(length, Tracer):
        raise explain.concretization(length, f"{called_function()} as its length, which must be known while tracing")
    try:
        number = to_size(to_count(length))
    except TypeError:
        raise TypeError(
            f"{called_function()}: length must be an integer known while tracing, got {abbreviate(length)}. "
            "fori_loop takes a traced number of steps"
        ) from None
    if sizes and sizes[0] != number:
        raise ValueError(
            f"{called_function()} got `length` argument of {number} which disagrees with leading axis sizes {sizes}: "
            f"{paths()[0]} has type {avals[0].str_short(True)}"
        )
    if number < 0:
        raise ValueError(f"{called_function()}: length must not be negative, got {number}")
    return number  # type: ignore[no-any-return]


def _split_result_tree(body: bodies.Body) -> list[PyTreeDef]:
    """Return the trees of the carry and of a step's other results; TypeError unless the body returned a pair."""
    children, data = body.out_tree.children(), body.out_tree.node_data()
    if data is None or not issubclass(data[0], (tuple, list)) or len(children) != 2:
        shown = pytree_differences.describe_leaves(body.out_tree, [a.str_short(True) for a in body.out_avals])
        raise TypeError(
            f"scan body output must be a pair, got {shown}. Return (carry, y), with None for y if there is nothing to "
            "stack"
        )
    return children
