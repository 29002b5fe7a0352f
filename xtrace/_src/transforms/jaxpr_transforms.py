"""Transformations of closed jaxprs: each evaluates the jaxpr under a trace, and stages the result.

The results are remembered with the jaxpr, so their compiled programs are found again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from xtrace._src.algebra.vector_space import convert_to, zeros
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.source import PositionHolder, Scopes, call_at, drop_scopes, user_position
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, DebugInfo, Jaxpr, Var
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.tangents import UndefinedPrimal, cotangent_avals, tangent_aval
from xtrace._src.transforms.backward import backward
from xtrace._src.transforms.batch import MappedAxis, batch
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jvp import jvp
from xtrace._src.transforms.linearize import KnownResults, LinearMap, linearize, partial_evaluate
from xtrace._src.transforms.scopes import scope
from xtrace._src.transforms.stage import stage

_Flag = TypeVar("_Flag")
_Result = TypeVar("_Result")


def stage_to_jaxpr(
    function: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], info: DebugInfo | None
) -> ClosedJaxpr:
    """Return the jaxpr of ``function(*tracers)``; concrete values in it become constants."""
    info = info or DebugInfo("a transformation", "<jaxpr>", None, None)
    # The equation that holds the jaxpr has the outer scopes; the equations inside must not repeat them.
    jaxpr, consts = call_at(PositionHolder(drop_scopes(user_position())), stage, function, in_avals, info)
    return ClosedJaxpr(jaxpr, consts)


def infer_result_types(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the results of `closed`; TypeError if it does not take operands of the types `avals`."""
    expected = closed.in_avals
    if [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in expected]:
        raise TypeError(f"the jaxpr takes {expected}, it was called with {list(avals)}")
    return closed.out_avals


def move_constants_to_inputs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return `closed` with its constvars as leading inputs, for a call equation; one object for one jaxpr."""
    # A jaxpr whose remembered result is itself would never be freed, so this case is not remembered.
    return _move_constants(closed) if closed.jaxpr.constvars else closed


@memoize_by_owner
def _move_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(closed.jaxpr.with_constants_as_inputs(), [])


def cast_weak_type(value: Any, aval: ShapedArray) -> Any:
    """Return `value`, which has the shape and dtype of `aval`, with the weak type of `aval`."""
    return value if aval_of(value).weak_type == aval.weak_type else convert_to(value, aval.dtype, aval.weak_type)


def _instantiate_zeros(
    tangents: Sequence[Any], avals: Sequence[ShapedArray], wanted: Sequence[bool] | None
) -> list[Any]:
    """Return the tangents in the types of `avals`, with zeros where `wanted` is True; unchanged if `wanted` is None."""
    if wanted is None:
        return list(tangents)
    instantiated = []
    for tangent, aval, always in zip(tangents, avals, wanted, strict=True):
        if tangent is None and always:
            tangent = zeros(tangent_aval(aval))
        if tangent is not None:
            # A transposed function of integers has integer cotangents.
            tangent = cast_weak_type(tangent, aval if aval_of(tangent).dtype == aval.dtype else tangent_aval(aval))
        instantiated.append(tangent)
    return instantiated


def filter_by_mask(values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """Return the `values` where the mask `wanted` is True."""
    return [x for x, w in zip(values, wanted, strict=True) if w]


def scatter_by_mask(values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """Return a list with the `values` where the mask `wanted` is True, in order, and None elsewhere."""
    remaining = iter(values)
    return [next(remaining) if w else None for w in wanted]


@memoize_by_owner
def jvp_jaxpr(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], always: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the jaxpr from inputs and nonzero tangents to results and nonzero tangents, and a flag for each result.

    The flags say which results have a tangent. `always` marks results that get a tangent even if it is zero; tangents
    then have the types of the results.
    """
    jaxpr, count = closed.jaxpr, len(closed.in_avals)
    out_nonzero: list[bool] = []

    def both(*values: object) -> list[Any]:
        tangents = scatter_by_mask(values[count:], nonzero)
        results, moved = jvp(lambda *args: evaluate(jaxpr, closed.consts, args), values[:count], tangents)
        moved = _instantiate_zeros(moved, closed.out_avals, always)
        out_nonzero[:] = [t is not None for t in moved]
        return [*results, *filter_by_mask(moved, out_nonzero)]

    transformed = stage_to_jaxpr(
        both, [*closed.in_avals, *map(tangent_aval, filter_by_mask(closed.in_avals, nonzero))], jaxpr.debug_info
    )
    return transformed, tuple(out_nonzero)


class PartitionedJaxpr(NamedTuple):
    """The two parts of a jaxpr that was linearized or partially evaluated.

    known: maps the known inputs to the known results and new residuals. unknown: maps all residuals and the unknown
    inputs to the unknown results; `unknown_results` has a flag for each result. residuals: the source of each residual:
    ("input", i), or ("output", i) of `known`. results: the number of results among the outputs of `known`.

    After linearization the primals are the known values, and the nonzero tangents the unknown ones.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    unknown_results: tuple[bool, ...]
    residuals: tuple[tuple[str, int], ...]
    results: int

    def gather(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the residuals, from the inputs and outputs of `known`."""
        return [inputs[i] if kind == "input" else outputs[i] for kind, i in self.residuals]


@memoize_by_owner
def linearize_jaxpr(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], always: tuple[bool, ...] | None = None
) -> PartitionedJaxpr:
    """Split `closed` into the function itself, with residuals, and the linear map of its nonzero tangents.

    `always` marks results that get a tangent even if it is zero; tangents then have the types of the results.
    """
    jaxpr = closed.jaxpr
    maps: list[LinearMap] = []
    counts: list[int] = []

    def known(*values: Any) -> list[Any]:
        results, linear = linearize(
            lambda *args: evaluate(jaxpr, closed.consts, args), values, nonzero, _info(jaxpr, "linearize")
        )
        # The residuals are tracers and end with the trace, so the map is kept without them.
        maps.append(LinearMap(linear.jaxpr, [], linear.nonzero))
        counts.append(len(linear.consts))
        return [*results, *linear.consts]

    known_jaxpr, residuals = _drop_forwarded(
        stage_to_jaxpr(known, closed.in_avals, jaxpr.debug_info), len(jaxpr.outvars)
    )
    linear = maps[0]
    tangents = filter_by_mask(closed.in_avals, nonzero)

    def tangent_part(*values: object) -> list[Any]:
        split = counts[0]
        moved = scatter_by_mask(evaluate(linear.jaxpr, values[:split], values[split:]), linear.nonzero)
        return [t for t in _instantiate_zeros(moved, closed.out_avals, always) if t is not None]

    avals = [v.aval for v in linear.jaxpr.constvars]
    linear_jaxpr = stage_to_jaxpr(tangent_part, [*avals, *map(tangent_aval, tangents)], _info(jaxpr, "linearize"))
    out_nonzero = tuple(linear.nonzero) if always is None else or_masks(linear.nonzero, always)
    return PartitionedJaxpr(known_jaxpr, linear_jaxpr, out_nonzero, residuals, len(jaxpr.outvars))


@memoize_by_owner
def partial_evaluate_jaxpr(
    closed: ClosedJaxpr, unknown: tuple[bool, ...], always: tuple[bool, ...] | None = None
) -> PartitionedJaxpr:
    """Split `closed` into the equations that depend on no `unknown` input, and the others.

    `always` marks results that the second part returns even if they are known.
    """
    jaxpr = closed.jaxpr
    always = always or (False,) * len(jaxpr.outvars)
    maps: list[LinearMap] = []
    types = scatter_by_mask(filter_by_mask(closed.in_avals, unknown), unknown)

    def known(*values: Any) -> list[Any]:
        info = _info(jaxpr, "partial evaluation")
        results, rest = partial_evaluate(
            lambda *args: evaluate(jaxpr, closed.consts, args), values, types, always, info
        )
        # The residuals are tracers and end with the trace, so the map is kept without them.
        maps.append(LinearMap(rest.jaxpr, [], rest.nonzero))
        return [*results, *rest.consts]

    whole = stage_to_jaxpr(known, filter_by_mask(closed.in_avals, [not u for u in unknown]), jaxpr.debug_info)
    rest = maps[0]
    count = rest.nonzero.count(False)
    known_jaxpr, residuals = _drop_forwarded(whole, count)
    opened = rest.jaxpr.with_constants_as_inputs()
    return PartitionedJaxpr(known_jaxpr, ClosedJaxpr(opened, []), tuple(rest.nonzero), residuals, count)


@memoize_by_owner
def analyze_unknowns(closed: ClosedJaxpr, unknown: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...]]:
    """Return whether an equation reads known inputs only, and for each result whether it depends on `unknown` inputs.

    Equations that read no input do not count. The flags are an upper bound: if an operation that holds jaxprs is split,
    some of its results may be known after all.
    """
    jaxpr = closed.jaxpr
    pending: set[Atom] = set(filter_by_mask(jaxpr.invars, unknown))
    given = {*jaxpr.constvars, *jaxpr.invars} - pending
    works = False
    for equation in jaxpr.eqns:
        flags = tuple([x in pending for x in equation.invars])
        if any(flags):
            rule = equation.primitive.partial_evaluate
            parts = rule(flags, **equation.params) if rule is not None else None
            if isinstance(parts, KnownResults):
                # The second part repeats the whole equation, so computing its known results early saves nothing.
                pending.update(filter_by_mask(equation.outvars, parts.unknown))
            else:
                works = works or parts is not None
                pending.update(equation.outvars)
        else:
            works = works or any(x in given for x in equation.invars)
    return works, tuple([x in pending for x in jaxpr.outvars])


def or_masks(one: Sequence[bool], other: Sequence[bool]) -> tuple[bool, ...]:
    """Return the elementwise disjunction of two masks."""
    return tuple([a or b for a, b in zip(one, other, strict=True)])


def find_fixpoint(
    step: Callable[[tuple[_Flag, ...]], tuple[_Result, Sequence[_Flag]]], carry: Sequence[_Flag]
) -> tuple[_Result, tuple[_Flag, ...]]:
    """Repeat a step until it leaves the flags of a loop's carry unchanged; return its last result, and the flags.

    ``step(carry)`` returns its result and the flags after it, which include the flags of `carry`.
    """
    before = tuple(carry)
    while True:
        result, after = step(before)
        if tuple(after) == before:
            return result, before
        before = tuple(after)


@memoize_by_owner
def find_mapped_results(closed: ClosedJaxpr, mapped: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return for each result whether it is certainly mapped if the `mapped` inputs are.

    The flags are a lower bound: an operation with jaxprs, several results or effects may have results without the
    mapped axis, as a counter, or a sum over that axis, and so may one with rules of users. Batching says which.
    """
    jaxpr = closed.jaxpr
    certain: set[Atom] = set(filter_by_mask(jaxpr.invars, mapped))
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        uncertain = primitive.multiple_results or primitive.is_users or equation.effects
        if not uncertain and any(x in certain for x in equation.invars):
            certain.update(equation.outvars)
    return tuple([x in certain for x in jaxpr.outvars])


def find_mapped_carry(body: ClosedJaxpr, flags: Sequence[bool], first: int, carry: Sequence[bool]) -> list[bool]:
    """Return for each part of a loop's carry whether it is mapped at the start, or certainly becomes so in a step.

    flags: for each input of the body, whether it is mapped; the carry's inputs begin at `first`.
    """

    def step(mapped: tuple[bool, ...]) -> tuple[None, tuple[bool, ...]]:
        outputs = find_mapped_results(body, (*flags[:first], *mapped, *flags[first + len(mapped) :]))
        return None, or_masks(mapped, outputs[: len(mapped)])

    return list(find_fixpoint(step, carry)[1])


def merge_by_mask(known: Sequence[Any], rest: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """Return one list of the values of `known` and `rest`, in order: from `rest` where the mask `flags` is True."""
    sources = iter(known), iter(rest)
    return [next(sources[flag]) for flag in flags]


def _info(jaxpr: Jaxpr, transformation: str) -> DebugInfo:
    info = jaxpr.debug_info
    if info is None:
        return DebugInfo(transformation, "<jaxpr>", None, None)
    return DebugInfo(transformation, info.function, info.file, info.line)


def _drop_forwarded(whole: ClosedJaxpr, count: int) -> tuple[ClosedJaxpr, tuple[tuple[str, int], ...]]:
    """Return `whole` without the residuals that are also inputs or results, and the source of each residual.

    The residuals are the outputs after the first `count`.
    """
    jaxpr = whole.jaxpr
    inputs = {v: i for i, v in enumerate(jaxpr.invars)}
    outvars = list(jaxpr.outvars[:count])
    outputs = {v: i for i, v in enumerate(outvars) if isinstance(v, Var)}
    sources: list[tuple[str, int]] = []
    for atom in jaxpr.outvars[count:]:
        if isinstance(atom, Var) and atom in inputs:
            sources.append(("input", inputs[atom]))
        elif isinstance(atom, Var):
            if atom not in outputs:
                outputs[atom] = len(outvars)
                outvars.append(atom)
            sources.append(("output", outputs[atom]))
        else:
            sources.append(("output", len(outvars)))
            outvars.append(atom)
    return ClosedJaxpr(jaxpr.replace(outvars=outvars), whole.consts), tuple(sources)


@memoize_by_owner
def transpose_jaxpr(
    closed: ClosedJaxpr, linear: tuple[bool, ...], nonzero: tuple[bool, ...], always: bool = False,
    known_scopes: Scopes = (),
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the jaxpr from known inputs and nonzero cotangents to the cotangents of the `linear` inputs.

    The second result says of each linear input whether it has a cotangent; with `always`, all have one. known_scopes:
    the scopes of equations that depend on known inputs only.
    """
    jaxpr = closed.jaxpr
    known = filter_by_mask(closed.in_avals, [not x for x in linear])
    wanted = cotangent_avals(filter_by_mask(closed.in_avals, linear))
    out_nonzero: list[bool] = []

    def transposed(*values: object) -> list[Any]:
        rest, unknown = iter(values[: len(known)]), iter(wanted)
        operands = [UndefinedPrimal(next(unknown)) if x else next(rest) for x in linear]
        given, consts, split = scatter_by_mask(values[len(known) :], nonzero), closed.consts, jaxpr
        if known_scopes or _has_calls_to_split(closed, linear):
            with scope(*known_scopes):
                split, consts = _split_of_calls(closed, operands, linear)
            operands = [UndefinedPrimal(a) for a in wanted]
        results = backward(split, consts, operands, given)
        results = results if split is not jaxpr else filter_by_mask(results, linear)
        results = _instantiate_zeros(results, wanted, [True] * len(wanted) if always else None)
        out_nonzero[:] = [c is not None for c in results]
        return filter_by_mask(results, out_nonzero)

    cotangents = cotangent_avals(filter_by_mask(closed.out_avals, nonzero))
    return stage_to_jaxpr(transposed, [*known, *cotangents], _info(jaxpr, "transpose")), tuple(out_nonzero)


@memoize_by_owner
def _has_calls_to_split(closed: ClosedJaxpr, linear: tuple[bool, ...]) -> bool:
    """Whether an operation that holds jaxprs can be split into equations that depend on no linear input, and others."""
    pending: set[Atom] = set(filter_by_mask(closed.jaxpr.invars, linear))
    for equation in closed.jaxpr.eqns:
        flags = tuple([x in pending for x in equation.invars])
        if not any(flags):
            continue
        rule = equation.primitive.partial_evaluate
        if rule is not None and not all(flags) and rule(flags, **equation.params) is not None:
            return True
        pending.update(equation.outvars)
    return False


def _split_of_calls(closed: ClosedJaxpr, operands: Sequence[Any], linear: Sequence[bool]) -> tuple[Jaxpr, list[Any]]:
    """Evaluate the equations that depend on known operands only; return the jaxpr of the others, and its constants."""
    types = [a if x else None for a, x in zip(closed.in_avals, linear, strict=True)]
    known, always = filter_by_mask(operands, [not x for x in linear]), [True] * len(closed.out_avals)
    info = _info(closed.jaxpr, "transpose")
    _, rest = partial_evaluate(lambda *args: evaluate(closed.jaxpr, closed.consts, args), known, types, always, info)
    return rest.jaxpr, rest.consts


@memoize_by_owner
def batch_jaxpr(
    closed: ClosedJaxpr, mapped: MappedAxis, axes: tuple[int | None, ...], always: tuple[bool, ...] | None = None,
    in_avals: tuple[ShapedArray, ...] | None = None,
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """Return the jaxpr for inputs that are mapped at `axes`, and the position of the mapped axis in each result.

    With `always`, this position is 0, and the marked results are broadcast along the axis if they lack it. in_avals:
    the types of the inputs with the mapped axis; None if they follow from the jaxpr.
    """
    jaxpr = closed.jaxpr
    out_axes: list[int | None] = []

    def mapped_function(*values: object) -> list[Any]:
        results, places = batch(lambda *args: evaluate(jaxpr, closed.consts, args), mapped, values, axes)
        if always is not None:
            results = [
                mapped.place(x, i) if wanted or i is not None else x
                for x, i, wanted in zip(results, places, always, strict=True)
            ]
            places = [0 if wanted or i is not None else None for i, wanted in zip(places, always, strict=True)]
        out_axes[:] = places
        return results

    avals = [a if i is None else mapped.stack(a, i) for a, i in zip(closed.in_avals, axes, strict=True)]
    return stage_to_jaxpr(mapped_function, in_avals or avals, jaxpr.debug_info), tuple(out_axes)
