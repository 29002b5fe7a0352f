"""`cond` and `switch`: a call of one of several functions, selected by an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, move_axis, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like, short_repr
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.high_types.high_values import call_on_lowered, has_high_values, with_lowered_results
from xtrace._src.core.jaxprs.effects import IO_EFFECTS, NO_EFFECTS, Effects, ordered_effects
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Literal, Var, scalar_literal
from xtrace._src.core.primitive import ListPrimitive, Primitive, no_rule
from xtrace._src.core.pytrees import key_paths, pytree, pytree_differences
from xtrace._src.core.sentinels import UNSPECIFIED
from xtrace._src.core.settings import config
from xtrace._src.core.tables import memoize, memoize_by_owner
from xtrace._src.core.tangents import UndefinedPrimal, is_differentiable
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.ops.control_flow.bodies import Body, describe_type_differences, flatten_argument, same_type, stage_body
from xtrace._src.ops.elementwise.comparisons import eq, ne
from xtrace._src.ops.elementwise.selection import clamp, select_n
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.runtime.transfer import to_array
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.dead_code import eliminate_dead_code
from xtrace._src.transforms.discharge import discharge_jaxpr, split_results
from xtrace._src.transforms.effect_tokens import TOKEN, get_tokens, with_tokens
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import (
    PartitionedJaxpr,
    analyze_unknowns,
    batch_jaxpr,
    filter_by_mask,
    jvp_jaxpr,
    linearize_jaxpr,
    merge_by_mask,
    move_constants_to_inputs,
    partial_evaluate_jaxpr,
    scatter_by_mask,
    stage_to_jaxpr,
    transpose_jaxpr,
)
from xtrace._src.transforms.lower import emit_jaxpr
from xtrace._src.transforms.scopes import call_in_scopes

_Branches = tuple[ClosedJaxpr, ...]

# Programs are cached by their branches, so equal calls must return identical derived branches.
_per_branches = memoize(1024)


def _abstract(index: ShapedArray, *avals: ShapedArray, branches: _Branches, **_: Any) -> list[ShapedArray]:
    """Call the branch that the index selects."""
    if index.shape or index.dtype != dtypes.int32:
        raise TypeError(f"cond: the branch index must be a scalar of dtype int32, got {index.str_short(True)}")
    first = branches[0]
    for number, branch in enumerate(branches):
        sides = ("takes", branch.in_avals, avals), ("returns", branch.out_avals, first.out_avals)
        for what, given, expected in sides:
            if len(given) != len(expected) or not all(map(same_type, given, expected)):
                raise TypeError(f"cond: branch {number} {what} {given}; expected {list(expected)}")
    return first.out_avals


def _emit(
    builder: FunctionBuilder, index: Value, *operands: Value, branches: _Branches, branches_platforms: Any
) -> list[Value]:
    results = builder.results
    if branches_platforms is not None:
        branches = (branches[_platform_number(builder.platform, branches_platforms)],)
    if len(branches) == 1:
        return emit_jaxpr(builder, branches[0].jaxpr, operands)
    effects = ordered_effects(_effects(branches=branches))
    regions = []
    for number, branch in enumerate(branches):
        region = builder.region([], f"branch_{number}_fun")
        outputs = emit_jaxpr(region, branch.jaxpr, operands)
        regions.append((region, [*get_tokens(region, effects), *outputs]))
    types = [*[TOKEN] * len(effects), *results]
    return with_tokens(builder, effects, builder.op_with_regions("stablehlo.case", [index], regions, types))


def _effects(*, branches: _Branches, **_: object) -> Effects:
    return NO_EFFECTS.union(*[b.effects for b in branches])


def bind_cond(
    branches: Sequence[ClosedJaxpr], index: ArrayLike, operands: Sequence[Any], platforms: object
) -> list[Any]:
    """Bind a cond of `branches`; their constants become operands. platforms: `branches_platforms`."""
    if any(b.consts for b in branches):
        called = [move_constants_to_inputs(b) if b.consts else b for b in branches]
        branches, consts = _share_constants(called, [b.consts for b in branches])
        operands = [*consts, *operands]
    return bind_with_references(
        cond_p, (index, *operands), (tuple(branches), platforms), _effects(branches=tuple(branches))
    )


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, branches: _Branches, branches_platforms: Any
) -> tuple[list[Any], list[Any]]:
    index, *values = operands
    return split_results(keys, bind_cond([discharge_jaxpr(b) for b in branches], index, values, branches_platforms))


def _share_constants(
    branches: Sequence[ClosedJaxpr], consts: Sequence[Sequence[Any]]
) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Return branches with the distinct constants of all branches as leading inputs, and these constants."""
    distinct = list({id(x): x for of_branch in consts for x in of_branch}.values())
    places = {id(x): i for i, x in enumerate(distinct)}
    avals = tuple([aval_of(x) for x in distinct])
    extended = []
    for branch, own in zip(branches, consts, strict=True):
        taken = tuple([places[id(x)] for x in own])
        extended.append(branch if taken == tuple(range(len(distinct))) else _extend_inputs(branch, avals, taken))
    return extended, distinct


@memoize_by_owner
def _extend_inputs(closed: ClosedJaxpr, avals: tuple[ShapedArray, ...], places: tuple[int, ...]) -> ClosedJaxpr:
    """Return `closed` with leading inputs of the types `avals`; input i of `closed` becomes input ``places[i]``."""
    jaxpr = closed.jaxpr
    inputs = [Var(a) for a in avals]
    for place, variable in zip(places, jaxpr.invars, strict=False):
        inputs[place] = variable
    return ClosedJaxpr(jaxpr.replace(invars=[*inputs, *jaxpr.invars[len(places) :]]), closed.consts)


def _union_flags(flags: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    """Return, for each position, whether any branch's flag is set."""
    return tuple(map(any, zip(*flags, strict=True)))


@_per_branches
def _jvp_branches(branches: _Branches, given: tuple[bool, ...]) -> tuple[list[ClosedJaxpr], tuple[bool, ...]]:
    """Return the jvp of each branch, all with one mask of nonzero tangents, and that mask."""
    nonzero = _union_flags([jvp_jaxpr(b, given)[1] for b in branches])
    return [jvp_jaxpr(b, given, nonzero)[0] for b in branches], nonzero


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, branches: _Branches, branches_platforms: Any
) -> tuple[list[Any], list[Any]]:
    given = tuple([t is not None for t in tangents[1:]])
    both, nonzero = _jvp_branches(branches, given)
    results = bind_cond(both, primals[0], [*primals[1:], *filter_by_mask(tangents[1:], given)], branches_platforms)
    count = len(nonzero)
    return results[:count], scatter_by_mask(results[count:], nonzero)


def _name_residuals(parts: Sequence[PartitionedJaxpr]) -> list[list[Any]]:
    """Return the sources of each branch's residuals.

    A source is ("input", i), ("output", i) for a result, or ("new", type, number) for an additional output. Branches
    share additional outputs: each type has as many as the branch that needs most. A result that is a residual in only
    some branches takes an additional output that is free.
    """
    count = parts[0].results
    sources = [list(dict.fromkeys(part.residuals)) for part in parts]
    fresh = [[s for s in own if s[0] == "output" and s[1] >= count] for own in sources]
    counts = [Counter([p.known.out_avals[i] for _, i in own]) for p, own in zip(parts, fresh, strict=True)]
    places: list[list[Any]] = []
    for part, own, new in zip(parts, sources, fresh, strict=True):
        taken: Counter[ShapedArray] = Counter()
        names: dict[tuple[str, int], Any] = {}
        for source in [*new, *own]:
            if source in names:
                continue
            names[source] = source
            if source[0] == "output" and (source in new or not all(source in other for other in sources)):
                aval = part.known.out_avals[source[1]]
                if any(c[aval] > taken[aval] for c in counts):
                    names[source] = ("new", aval, taken[aval])
                    taken[aval] += 1
        places.append([names[source] for source in part.residuals])
    return places


class _Split:
    """The known and the linear branches of partitioned branches, with one list of residuals for all branches.

    Branches share outputs for residuals of one type; a branch without such a residual returns zeros.
    """

    __slots__ = ("known", "linear", "nonzero", "residuals", "count")

    def __init__(self, parts: Sequence[PartitionedJaxpr]) -> None:
        first = parts[0]
        self.nonzero, self.count = first.unknown_results, first.results
        count = first.results
        numbered = _name_residuals(parts)
        slots = dict.fromkeys(name for names in numbered for name in names)
        new = [name for name in slots if name[0] == "new"]
        self.residuals = [("output", count + new.index(n)) if n[0] == "new" else n for n in slots]
        in_avals, out_avals = first.known.in_avals, first.known.out_avals
        types = [n[1] if n[0] == "new" else (in_avals if n[0] == "input" else out_avals)[n[1]] for n in slots]
        moved = first.unknown.in_avals[len(first.residuals) :]
        self.known, self.linear = [], []
        for part, names_of_part in zip(parts, numbered, strict=True):
            sources = {n: i for n, (_, i) in zip(names_of_part, part.residuals, strict=True) if n[0] == "new"}

            def known(*values: ArrayLike, part: PartitionedJaxpr = part, sources: Any = sources) -> list[Any]:
                outputs = evaluate(part.known.jaxpr, part.known.consts, values)
                return [*outputs[:count], *[outputs[sources[n]] if n in sources else zeros(n[1]) for n in new]]

            def linear(*values: Array, part: PartitionedJaxpr = part, names: Any = names_of_part) -> list[Any]:
                by_slot = dict(zip(slots, values, strict=False))
                given_residuals = [by_slot[n] for n in names]
                return evaluate(part.unknown.jaxpr, part.unknown.consts, [*given_residuals, *values[len(slots) :]])

            self.known.append(stage_to_jaxpr(known, in_avals, part.known.jaxpr.debug_info))
            self.linear.append(stage_to_jaxpr(linear, [*types, *moved], part.unknown.jaxpr.debug_info))

    def apply(self, index: Array, operands: Sequence[Any], moved: Sequence[Any], platforms: object) -> tuple[Any, Any]:
        """Bind the known and the linear cond, and return the results of both."""
        results = bind_cond(self.known, index, operands, platforms)
        if not any(self.nonzero):
            return results[: self.count], []
        residuals = [operands[i] if kind == "input" else results[i] for kind, i in self.residuals]
        return results[: self.count], bind_cond(self.linear, index, [*residuals, *moved], platforms)


@_per_branches
def _linearize_branches(branches: _Branches, given: tuple[bool, ...]) -> _Split:
    nonzero = _union_flags([linearize_jaxpr(b, given).unknown_results for b in branches])
    return _Split([linearize_jaxpr(b, given, nonzero) for b in branches])


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, branches: _Branches, branches_platforms: object
) -> tuple[list[Any], list[Any]]:
    index, *operands = primals
    given = tuple([t is not None for t in tangents[1:]])
    parts = _linearize_branches(branches, given)
    results, moved = parts.apply(index, operands, filter_by_mask(tangents[1:], given), branches_platforms)
    return results, scatter_by_mask(moved, parts.nonzero)


@_per_branches
def _partially_evaluate_branches(branches: _Branches, unknown: tuple[bool, ...]) -> _Split | None:
    """Return the known and unknown branches; None if all results and all work are unknown."""
    analyses = [analyze_unknowns(b, unknown) for b in branches]
    if not any(works for works, _ in analyses) and all(_union_flags([pending for _, pending in analyses])):
        return None
    pending = _union_flags([partial_evaluate_jaxpr(b, unknown).unknown_results for b in branches])
    return _Split([partial_evaluate_jaxpr(b, unknown, pending) for b in branches])


def _partial_evaluate(
    unknown: tuple[bool, ...], *, branches: _Branches, branches_platforms: object
) -> Callable[[Sequence[Any]], list[Any]] | None:
    parts = None if unknown[0] else _partially_evaluate_branches(branches, unknown[1:])
    if parts is None:
        return None

    def compute(operands: Sequence[Any]) -> list[Any]:
        given = filter_by_mask(operands, [not u for u in unknown])
        known, rest = parts.apply(given[0], given[1:], filter_by_mask(operands, unknown), branches_platforms)
        return merge_by_mask(known, rest, parts.nonzero)

    return compute


@memoize_by_owner
def _select_results(closed: ClosedJaxpr, wanted: tuple[bool, ...]) -> ClosedJaxpr:
    """Return `closed` with the `wanted` results only."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(jaxpr.replace(outvars=filter_by_mask(jaxpr.outvars, wanted)), closed.consts)


@memoize_by_owner
def _eliminate_dead_code(closed: ClosedJaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(eliminate_dead_code(closed.jaxpr)[0], closed.consts)


@_per_branches
def _transpose_branches(
    branches: _Branches, linear: tuple[bool, ...], nonzero: tuple[bool, ...]
) -> tuple[list[ClosedJaxpr], tuple[bool, ...]]:
    """Return the transposed branches, all with one mask of nonzero cotangents, and that mask."""
    has_cotangent = _union_flags([transpose_jaxpr(b, linear, nonzero)[1] for b in branches])
    transposed = [_select_results(transpose_jaxpr(b, linear, nonzero, True)[0], has_cotangent) for b in branches]
    return [_eliminate_dead_code(b) for b in transposed], has_cotangent


def _transpose(
    cotangents: Sequence[Any], index: Array, *operands: Array | UndefinedPrimal, branches: _Branches,
    branches_platforms: object,
) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    transposed, has_cotangent = _transpose_branches(branches, linear, nonzero)
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    results = bind_cond(transposed, index, [*known, *[c for c in cotangents if c is not None]], branches_platforms)
    return [None, *scatter_by_mask(scatter_by_mask(results, has_cotangent), linear)]


@_per_branches
def _batch_branches(
    branches: _Branches, mapped: MappedAxis, axes: tuple[int | None, ...], everywhere: bool
) -> tuple[list[ClosedJaxpr], tuple[bool, ...]]:
    """Return the batched branches, all with one mask of mapped results, at axis 0, and that mask."""
    if everywhere:
        moved = (True,) * len(branches[0].out_avals)
    else:
        moved = _union_flags([[i is not None for i in batch_jaxpr(b, mapped, axes)[1]] for b in branches])
    return [batch_jaxpr(b, mapped, axes, moved)[0] for b in branches], moved


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, branches: _Branches,
    branches_platforms: Any,
) -> tuple[list[Any], Sequence[int | None]]:
    index, *rest = operands
    if axes[0] is not None:
        return _batch_with_mapped_index(mapped, move_axis(index, axes[0], 0), rest, axes[1:], branches)
    batched, moved = _batch_branches(branches, mapped, tuple(axes[1:]), False)
    return bind_cond(batched, index, rest, branches_platforms), [0 if m else None for m in moved]


def _batch_with_mapped_index(
    mapped: MappedAxis, index: Array, operands: Sequence[Any], axes: Sequence[int | None], branches: _Branches
) -> tuple[list[Any], Sequence[int | None]]:
    """Compute all branches for the whole batch and select among their results."""
    if not IO_EFFECTS.isdisjoint(_effects(branches=branches)):
        raise NotImplementedError(
            "IO effect not supported in vmap-of-cond: with a mapped predicate or index all branches are computed, and "
            "an io_callback would be called for examples that select another branch. Use debug.callback if that is "
            "fine, or lax.map instead of vmap"
        )
    differentiable = [current_trace.get() is not base_trace and is_differentiable(aval_of(x)) for x in operands]
    operands = [
        mapped.place(x, i) if i is not None or smooth else x
        for x, i, smooth in zip(operands, axes, differentiable, strict=True)
    ]
    places = tuple([0 if i is not None or smooth else None for i, smooth in zip(axes, differentiable, strict=True)])
    batched, _ = _batch_branches(branches, mapped, places, True)
    results_of_branches = []
    for number, branch in enumerate(batched):
        given = [
            _stop_gradient_unless_selected(x, index, number) if smooth else x
            for x, smooth in zip(operands, differentiable, strict=True)
        ]
        results_of_branches.append(call_in_scopes(evaluate, branch.jaxpr, branch.consts, given))
    selected = [select_n(_broadcast_index(index, cases[0]), *cases) for cases in zip(*results_of_branches, strict=True)]
    return selected, (0,) * len(selected)


def _stop_gradient_unless_selected(x: Array, index: Array, number: int) -> Array:
    """Return `x` with derivative zero for the examples that do not select branch `number`.

    For these the branch's derivative may be infinite or NaN, and its product with a zero cotangent is NaN.
    """
    return select_n(_broadcast_index(eq(index, _index(number)), x), stop_gradient(x), x)


def _broadcast_index(index: Array, example: Array) -> Array:
    """Return the vector `index` broadcast along the leading axis of `example` to its shape."""
    return broadcast_in_dim(index, aval_of(example).shape, (0,))


cond_p = ListPrimitive(
    "cond", ("branches", "branches_platforms"), abstract=_abstract, emit=_emit, effects=_effects, jvp=_jvp,
    linearize=_linearize, partial_evaluate=_partial_evaluate, transpose=_transpose, batch=_batch, discharge=_discharge,
    multiple_results=True, memoised=False,
)



def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: object,
    operand: object = UNSPECIFIED,
) -> Any:
    """Return ``true_fun(*operands)`` if a condition holds, else ``false_fun(*operands)``; only one is computed.

    Under `vmap` with a mapped condition both are computed.

    Args:
        pred: the condition, a scalar; a number counts as true if it is not zero.
        true_fun: a function of the operands.
        false_fun: a function of the operands, with results of the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: the only operand, in an older form of the call.

    Returns:
        The result of the function, a pytree of arrays.

    Raises:
        TypeError: the condition is no scalar, a function is not callable, or the results differ in structure or type.

    Example:
        >>> lax.cond(True, jnp.sin, jnp.cos, 0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        # The older signature, cond(pred, true_operand, true_fun, false_operand, false_fun).
        on_true, on_false, both = false_fun, operands[1], (true_fun, operands[0])
        return cond(pred, lambda x, _: on_true(x), lambda _, y: on_false(y), *both)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError(
            f"cond: true_fun and false_fun must be callable, got {short_repr(true_fun)} and {short_repr(false_fun)}"
        )
    operands = _operands(operands, operand)
    _check_predicate(pred)
    if config.disable_jit.value and not isinstance(pred, Tracer):
        return true_fun(*operands) if pred else false_fun(*operands)
    if _is_known(pred):
        index: Any = _index(int(bool(pred)))
    else:
        index = pred if dtypes.is_boolean(aval_of(pred).dtype) else ne(pred, aval_of(pred).dtype.type(0))
        index = convert_to(index, np.dtype(np.int32))
    return _bind_functions("cond", index, [false_fun, true_fun], ["false_fun", "true_fun"], operands)


def _operands(operands: tuple[Any, ...], operand: object) -> tuple[Any, ...]:
    if operand is UNSPECIFIED:
        return operands
    if operands:
        raise TypeError(
            f"{called_function()}: if the 'operand' keyword is passed then no positional operands can be passed, got "
            f"operand={short_repr(operand)} and {len(operands)} positional operands"
        )
    return (operand,)


def _check_predicate(pred: ArrayLike | None) -> None:
    if pred is None:
        raise TypeError("cond predicate is None")
    if not is_array_like(pred):
        raise TypeError(f"cond: Pred must be a scalar, got {short_repr(pred)} of type {type(pred)}")
    aval = aval_of(pred)
    if aval.shape:
        raise TypeError(
            f"cond: Pred must be a scalar, got an array of shape {aval.shape}. To select element by element, use "
            "xtrace.numpy.where or lax.select; to select for each example, vmap a function of one example"
        )
    if dtypes.is_complex(aval.dtype) or isinstance(aval.dtype, dtypes.ExtendedDType):
        raise TypeError(f"cond: Pred type must be either boolean or number, got {aval.dtype.name}")


def _is_known(value: object) -> bool:
    """Return whether to read a scalar in Python now; an eager call does not wait for a result of the device."""
    if isinstance(value, Tracer):
        return False
    return current_trace.get() is not base_trace or isinstance(value, (bool, int, float, np.generic, np.ndarray))


def _index(number: int) -> Literal:
    return scalar_literal(number, np.dtype(np.int32))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = UNSPECIFIED) -> Any:
    """Return the result of one of several functions; only that one is computed.

    Under `vmap` with a mapped index all are computed.

    Args:
        index: an integer scalar, clamped to the range of `branches`.
        branches: functions of the operands, with results of one structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: the only operand, in an older form of the call.

    Returns:
        The result of ``branches[index](*operands)``, a pytree of arrays.

    Raises:
        TypeError: the index is no integer scalar, a branch is not callable, or the results differ in structure or type.
        ValueError: there is no branch.

    Example:
        >>> lax.switch(1, [jnp.sin, jnp.cos], 0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if not hasattr(branches, "__iter__") or not all(map(callable, functions := list(branches))):
        raise TypeError(f"switch: branches argument should be a sequence of callables, got {short_repr(branches)}")
    operands = _operands(operands, operand)
    if index is None or not is_array_like(index):
        raise TypeError(f"switch: Index type must be an integer, got {short_repr(index)} of type {type(index)}")
    aval = aval_of(index)
    if aval.shape:
        raise TypeError(
            f"switch: Branch index must be scalar, got an array of shape {aval.shape}; to select for each example, "
            "vmap a function of one example"
        )
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"switch: Index type must be an integer, got {aval.dtype.name}; cond takes booleans")
    if not functions:
        raise ValueError("switch: Empty branch sequence; give at least one function")
    if len(functions) == 1:
        return functions[0](*operands)
    if config.disable_jit.value and not isinstance(index, Tracer):
        return functions[min(max(int(index), 0), len(functions) - 1)](*operands)
    last = len(functions) - 1
    if _is_known(index):
        number: Any = _index(min(max(int(index), -1), last + 1))
    else:
        number = convert_to(index, np.dtype(np.int32))
    names = [f"branch {i}" for i in range(len(functions))]
    return _bind_functions("switch", clamp(_index(0), number, _index(last)), functions, names, operands)


def _bind_functions(
    function: str, index: Any, functions: Sequence[Callable[..., Any]], names: Sequence[str],
    operands: tuple[Any, ...], platforms: Any = None,
) -> Any:
    """Stage functions as branches and bind a cond of them; `names` are the functions' names in messages."""
    if has_high_values(operands):
        inner = [with_lowered_results(f) for f in functions]
        return call_on_lowered(lambda *args: _bind_functions(function, index, inner, names, args, platforms), operands)
    leaves, in_tree, avals = flatten_argument("operands", operands, function=function)
    # The branches of a cond are [false_fun, true_fun]; true_fun is traced first, and its constants come first.
    order = slice(None, None, -1) if function == "cond" else slice(None)
    bodies = [stage_body(function, f, in_tree, avals) for f in functions[order]][order]
    _check_agreement(function, bodies, names)
    branches = [b.jaxpr for b in bodies]
    branches, consts = _share_constants(branches[order], [b.consts for b in bodies[order]])
    branches = branches[order]
    values = [*consts, *leaves]
    forwarded = _find_forwarded(tuple(branches))
    kept = tuple([i is None for i in forwarded])
    if not all(kept):
        branches = [_select_results(b, kept) for b in branches]
    computed = iter(bind_cond(branches, index, values, platforms))
    results = [next(computed) if i is None else to_array(values[i]) for i in forwarded]
    return pytree.tree_unflatten(bodies[0].out_tree, results)


@_per_branches
def _find_forwarded(branches: _Branches) -> list[int | None]:
    """Return, for each result, the position of the operand that every branch returns for it, or None."""
    places = []
    for branch in branches:
        inputs: dict[Any, int] = {v: i for i, v in enumerate(branch.jaxpr.invars)}
        places.append([inputs.get(x) if isinstance(x, Var) else None for x in branch.jaxpr.outvars])
    return [i if all(i == j for j in rest) else None for i, *rest in zip(*places, strict=True)]


def _check_agreement(function: str, bodies: Sequence[Body], names: Sequence[str]) -> None:
    """Raise TypeError, with the branches' names and paths of leaves, if results differ in structure or type."""
    order = [len(bodies) - 1, *range(len(bodies) - 1)] if function == "cond" else range(len(bodies))
    first, *others = order
    for other in others:
        one, two = bodies[first], bodies[other]
        head = "\n".join(f"{names[i]} is {_describe(bodies[i])}" for i in (first, other))
        revise = f"Revise {names[first]} and/or {names[other]} so that "
        if one.out_tree != two.out_tree:
            raise TypeError(
                f"{function} branch outputs must have the same pytree structure, but they differ:\n\n{head}\n\n"
                f"{names[first]} against {names[other]}, they differ "
                f"{pytree_differences.treedef_difference(one.out_tree, two.out_tree)}.\n\n{revise}they have the same "
                "pytree structure."
            )
        paths = pytree.leaf_paths(one.out_tree)
        faults = []
        for path, a, b in zip(paths, one.out_avals, two.out_avals, strict=True):
            if not same_type(a, b):
                wrong = describe_type_differences(a, b)
                where = f" at path {key_paths.keystr(path)}" if path else ""
                faults.append(
                    f"the output of {names[first]}{where} has type {a.str_short()} but the corresponding output "
                    f"of {names[other]} has type {b.str_short()}, so the {' and the '.join(wrong)} do not match"
                )
        if faults:
            listed = pytree_differences.list_faults(faults)
            raise TypeError(
                f"{function} branches must have equal output types but they differ.\n\n{head}\n\n{listed}\n\n"
                f"{revise}all output types match."
            )


def _describe(body: Body) -> str:
    return str(body.jaxpr.jaxpr.debug_info).removesuffix(" for cond").removesuffix(" for switch")


def _platform_number(platform: str, platforms: Sequence[Any]) -> int:
    """Return the position of the entry of `platforms`, tuples of names or None for all others, for `platform`."""
    for number, names in enumerate(platforms):
        if names is None or platform in names:
            return number
    listed = ", ".join(name for names in platforms for name in names)
    raise NotImplementedError(
        f"platform_dependent: the functions are for {listed}, but the program is compiled for {platform}; give "
        f"{platform}= or default="
    )


def _emit_platform_index(builder: FunctionBuilder, *, platforms: Sequence[Any]) -> Value:
    return builder.constant(_platform_number(builder.platform, platforms), builder.results[0])


def _platform_index_abstract(**_: object) -> ShapedArray:
    """Return the position of the entry of `platforms` for the program's platform."""
    return ShapedArray((), np.dtype(np.int32))


platform_index_p = Primitive(
    "platform_index", ("platforms",), abstract=_platform_index_abstract, emit=_emit_platform_index,
    jvp=no_rule("platform_index has no operands to differentiate by"),
    batch=no_rule("platform_index has no operands to map over"),
)


def platform_dependent(*args: Any, default: Callable[..., Any] | None = None, **per_platform: Any) -> Any:
    """Call the function for the program's platform.

    Args:
        args: the arguments, trees of arrays.
        default: the function for other platforms.
        per_platform: functions by platform: ``cpu``, ``cuda``, ``rocm``, ``tpu``.

    Returns:
        The result, a tree of arrays of one structure and types for all platforms.

    Raises:
        NotImplementedError: the program is compiled for a platform without a function.
        TypeError: the results differ in structure or types.

    Example:
        >>> lax.platform_dependent(1.0, cpu=jnp.sin, default=jnp.cos)
        Array(0.84147096, dtype=float32, weak_type=True)
    """
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: write cuda= or rocm= for GPUs, not gpu=")
    for name, function in [*per_platform.items(), *([("default", default)] if default is not None else [])]:
        if not callable(function):
            raise TypeError(
                f"platform_dependent: the {abbreviate(name)} branch must be a callable, got {short_repr(function)}"
            )
    if not per_platform and default is None:
        raise TypeError("platform_dependent: give a function for a platform, such as cpu=, or default=")
    grouped: dict[int, list[str]] = {}
    for name, function in per_platform.items():
        grouped.setdefault(id(function), []).append(name)
    functions = {id(function): function for function in per_platform.values()}
    platforms: tuple[Any, ...] = tuple(map(tuple, grouped.values()))
    branches = [functions[number] for number in grouped]
    if default is not None:
        platforms, branches = (*platforms, None), [*branches, default]
    names = [f"the function for {'default' if p is None else ', '.join(p)}" for p in platforms]
    index = platform_index_p.bind_positional((), (platforms,))
    return _bind_functions("platform_dependent", index, branches, names, args, platforms)
