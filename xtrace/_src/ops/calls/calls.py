"""The call of a jitted function in a program: one equation, one private function of the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.positions import extend_scope_path
from xtrace._src.core.jaxprs.effects import Effects
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.sentinels import UNSPECIFIED, Unspecified
from xtrace._src.core.settings.compiler_choices import Inline
from xtrace._src.core.shardings.memory_layout import Layout
from xtrace._src.core.shardings.shardings import NamedSharding, insert_entry
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.core.trace import current_trace
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.ops.shardings.layout_constraints import batch_layout
from xtrace._src.ops.shardings.sharding_constraints import constrain_all, emit_constraint
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.discharge import discharge_call
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import (
    analyze_unknowns,
    batch_jaxpr,
    filter_by_mask,
    infer_result_types,
    jvp_jaxpr,
    linearize_jaxpr,
    merge_by_mask,
    move_constants_to_inputs,
    partial_evaluate_jaxpr,
    scatter_by_mask,
    transpose_jaxpr,
)
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.lower import emit_call, emit_jaxpr
from xtrace._src.transforms.scopes import call_in_scopes
from xtrace._src.transforms.stage import StagingTrace

_Row = tuple[Any, ...]


class Place(NamedTuple):
    """The sharding and the layout that `jit` was given for one operand or result."""

    sharding: Any = UNSPECIFIED
    layout: Any = None


_ANYWHERE = Place()


class Places(NamedTuple):
    """The shardings and layouts that `jit` was given for operands and results, and the mesh in force at the call.

    An empty row, and a mesh of None, mean that none was given. Layouts have no effect inside of a program.
    """

    in_shardings: _Row = ()
    out_shardings: _Row = ()
    ctx_mesh: Any = None
    in_layouts: _Row = ()
    out_layouts: _Row = ()

    @staticmethod
    def of(operands: Sequence[Place], results: Sequence[Place], ctx_mesh: Any) -> Places:
        """Return the places of operands and results; a row without any sharding or layout becomes empty."""
        rows = [_shorten([getattr(p, part) for p in side]) for part in Place._fields for side in (operands, results)]
        return Places(rows[0], rows[1], ctx_mesh, *rows[2:])

    @staticmethod
    def from_parameters(parameters: Mapping[str, Any]) -> Places:
        """Return the places in the parameters of an equation."""
        return Places(**{name: parameters[name] for name in Places._fields if name in parameters})

    def expand(self, jaxpr: ClosedJaxpr) -> tuple[list[Place], list[Place]]:
        """Return one place for each operand and one for each result of `jaxpr`."""
        ins, outs = len(jaxpr.in_avals), len(jaxpr.out_avals)
        return _pair(self.in_shardings, self.in_layouts, ins), _pair(self.out_shardings, self.out_layouts, outs)

    def extend_to(self, jaxpr: ClosedJaxpr) -> Places:
        """Return the places of a call of `jaxpr`, which has further operands first and further results last."""
        count = max(len(self.in_shardings), len(self.in_layouts)), max(len(self.out_shardings), len(self.out_layouts))
        ins = [_ANYWHERE] * (len(jaxpr.in_avals) - count[0]) + _pair(self.in_shardings, self.in_layouts, count[0])
        outs = _pair(self.out_shardings, self.out_layouts, count[1])
        return Places.of(ins, outs + [_ANYWHERE] * (len(jaxpr.out_avals) - count[1]), self.ctx_mesh)


NO_PLACES = Places()


def _pair(shardings: _Row, layouts: _Row, count: int) -> list[Place]:
    return list(map(Place, shardings or (UNSPECIFIED,) * count, layouts or (None,) * count))


def _shorten(row: Sequence[Any]) -> _Row:
    return () if all(x is UNSPECIFIED or x is None for x in row) else tuple(row)


def constrain_row(values: Sequence[Any], row: _Row) -> list[Any]:
    """Return values constrained to the shardings in a row of `Places`."""
    return constrain_all(values, [None if s is UNSPECIFIED else s for s in row])


def make_call_rules(parameter: str, description: str) -> dict[str, Any]:
    """Return the rules on types and effects of an operation that calls the jaxpr in a parameter."""

    def abstract(*avals: ShapedArray, **parameters: Any) -> list[ShapedArray]:
        return infer_result_types(parameters[parameter], avals)

    def effects(**parameters: Any) -> Effects:
        called: ClosedJaxpr = parameters[parameter]
        return called.effects

    abstract.__doc__ = description
    return {"abstract": abstract, "effects": effects, "multiple_results": True, "memoised": False}


def _emit(
    builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, name: str, inline: bool | Inline = False,
    in_shardings: _Row = (), out_shardings: _Row = (), **_: Any,
) -> list[Value]:
    operands = _emit_constraints(builder, values, in_shardings)
    return _emit_constraints(builder, _emit_body(builder, operands, jaxpr, name, inline), out_shardings)


def _emit_constraints(builder: FunctionBuilder, values: Sequence[Value], row: _Row) -> list[Value]:
    pairs = zip(values, row or (UNSPECIFIED,) * len(values), strict=True)
    return [x if isinstance(s, Unspecified) else emit_constraint(builder, x, s) for x, s in pairs]


def _emit_body(
    builder: FunctionBuilder, values: Sequence[Value], jaxpr: ClosedJaxpr, name: str, inline: bool | Inline
) -> list[Value]:
    if builder.place is not None:
        source, path = builder.place
        builder.place = (source, extend_scope_path(path.removesuffix("jit").removesuffix("/"), f"jit({name})"))
    if inline is Inline.JAX_LATE:
        return emit_jaxpr(builder, jaxpr.jaxpr, values)
    mark = f" {{mhlo.frontend_attributes = {{inlineable = \"{inline.value}\"}}}}" if isinstance(inline, Inline) else ""
    return emit_call(builder, jaxpr.jaxpr, name, values, attributes=mark)


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any,
    inline: bool | Inline, **rest: Any,
) -> tuple[list[Any], list[Any]]:
    places = Places.from_parameters(rest)
    return discharge_call(
        lambda closed, values: bind_jit(closed, values, name, compiler_options, inline, places.extend_to(closed)),
        keys, operands, jaxpr,
    )


def bind_jit(
    closed: ClosedJaxpr, operands: Sequence[Any], name: str, options: object = None, inline: bool | Inline = False,
    places: Places = NO_PLACES,
) -> list[Any]:
    """Bind a call of `closed`; its constants become operands."""
    if closed.consts:
        closed, operands = move_constants_to_inputs(closed), [*closed.consts, *operands]
        places = places.extend_to(closed)
    parameters = (name, closed, (), False, options, inline, *places)
    return bind_with_references(jit_call, operands, parameters, closed.effects)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr, compiler_options: Any,
    inline: bool | Inline = False, **rest: Any,
) -> tuple[list[Any], list[Any]]:
    given, places = tuple([t is not None for t in tangents]), Places.from_parameters(rest)
    both, nonzero = jvp_jaxpr(jaxpr, given)
    ins, outs = places.expand(jaxpr)
    places = Places.of([*ins, *filter_by_mask(ins, given)], [*outs, *filter_by_mask(outs, nonzero)], places.ctx_mesh)
    operands = [*primals, *[t for t in tangents if t is not None]]
    results = bind_jit(both, operands, name, compiler_options, inline, places)
    count = len(nonzero)
    return results[:count], scatter_by_mask(results[count:], nonzero)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, jaxpr: ClosedJaxpr,
    compiler_options: object, inline: bool | Inline = False, **rest: object,
) -> tuple[list[Any], list[Any]]:
    given, places = tuple([t is not None for t in tangents]), Places.from_parameters(rest)
    parts = linearize_jaxpr(jaxpr, given)
    ins, outs = places.expand(jaxpr)
    results = bind_jit(parts.known, primals, name, compiler_options, inline, places.extend_to(parts.known))
    operands = [*parts.gather(primals, results), *[t for t in tangents if t is not None]]
    if inline is True:
        # The linear equations are inlined on the tape.
        moved = call_in_scopes(evaluate, parts.unknown.jaxpr, parts.unknown.consts, operands)
    else:
        places = Places.of(filter_by_mask(ins, given), filter_by_mask(outs, parts.unknown_results), places.ctx_mesh)
        moved = bind_jit(parts.unknown, operands, name, compiler_options, inline, places.extend_to(parts.unknown))
    return results[: len(parts.unknown_results)], scatter_by_mask(moved, parts.unknown_results)


def _partial_evaluate(
    unknown: tuple[bool, ...], *, name: str, jaxpr: ClosedJaxpr, compiler_options: object = None,
    inline: bool | Inline = False, **rest: object,
) -> Callable[[Sequence[Any]], list[Any]] | None:
    works, pending = analyze_unknowns(jaxpr, unknown)
    if not works and all(pending):
        return None
    parts = partial_evaluate_jaxpr(jaxpr, unknown)
    places = Places.from_parameters(rest)
    ins, outs = places.expand(jaxpr)
    known, late = [not u for u in unknown], parts.unknown_results
    first = Places.of(filter_by_mask(ins, known), filter_by_mask(outs, [not n for n in late]), places.ctx_mesh)
    second = Places.of(filter_by_mask(ins, unknown), filter_by_mask(outs, late), places.ctx_mesh)

    def compute(operands: Sequence[Any]) -> list[Any]:
        given = filter_by_mask(operands, known)
        results = bind_jit(parts.known, given, name, compiler_options, inline, first.extend_to(parts.known))
        rest = [*parts.gather(given, results), *filter_by_mask(operands, unknown)]
        moved = bind_jit(
            parts.unknown, rest, name, compiler_options, inline, second.extend_to(parts.unknown)
        ) if any(late) else []
        return merge_by_mask(results, moved, parts.unknown_results)

    return compute


def _transpose(
    cotangents: Sequence[Any], *operands: Array | UndefinedPrimal, name: str, jaxpr: ClosedJaxpr,
    compiler_options: object, inline: bool | Inline = False, **rest: object,
) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    transposed, has_cotangent = transpose_jaxpr(jaxpr, linear, nonzero)
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    given = [*known, *[c for c in cotangents if c is not None]]
    places = Places.from_parameters(rest)
    ins, outs = places.expand(jaxpr)
    back = filter_by_mask(filter_by_mask(ins, linear), has_cotangent)
    ins = [*filter_by_mask(ins, [not x for x in linear]), *filter_by_mask(outs, nonzero)]
    results = bind_jit(transposed, given, name, compiler_options, inline, Places.of(ins, back, places.ctx_mesh))
    return scatter_by_mask(scatter_by_mask(results, has_cotangent), linear)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, jaxpr: ClosedJaxpr,
    compiler_options: Any, inline: bool | Inline = False, **rest: Any,
) -> tuple[list[Any], tuple[int | None, ...]]:
    batched, out_axes = batch_jaxpr(jaxpr, mapped, tuple(axes))
    places = Places.from_parameters(rest)
    ins, outs = places.expand(jaxpr)
    places = Places.of(
        [_with_axis(mapped, p, a.ndim, i) for p, a, i in zip(ins, jaxpr.in_avals, axes, strict=True)],
        [_with_axis(mapped, p, a.ndim, i) for p, a, i in zip(outs, jaxpr.out_avals, out_axes, strict=True)],
        places.ctx_mesh,
    )
    return bind_jit(batched, operands, name, compiler_options, inline, places), out_axes


def _with_axis(mapped: MappedAxis, place: Place, ndim: int, axis: int | None) -> Place:
    """Return the place of values with the mapped axis at `axis`."""
    if axis is None or place is _ANYWHERE:
        return place
    sharding, layout = place
    if isinstance(sharding, NamedSharding):
        name = mapped.spmd_name if mapped.split is None else mapped.split.spec[0]
        sharding = insert_entry(sharding, ndim, axis, name)
    return Place(sharding, batch_layout(layout, axis) if isinstance(layout, Layout) else layout)


class _JitCall(ListPrimitive):
    """The call of a jitted function; its parameters in a row have one entry for each operand or result, or none."""

    def expand_parameters(self, named: dict[str, Any]) -> dict[str, Any]:
        """Fill the empty rows, which programs that add operands or results extend."""
        counts = {"in": len(named["jaxpr"].in_avals), "out": len(named["jaxpr"].out_avals)}
        counts["donated"] = counts["in"]
        full = {row: (default,) * counts[row.partition("_")[0]] for row, default in _DEFAULTS.items()}
        return named | {row: named[row] or entries for row, entries in full.items()}

    def pack_parameters(self, named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Empty the rows of defaults, and put the parameters in order."""
        return super().pack_parameters(_empty_rows(named))

    def bind(self, *operands: object, **parameters: object) -> list[Any]:
        """Apply the operation to operands."""
        return super().bind(*operands, **_empty_rows(parameters))


_DEFAULTS = {
    "donated_invars": False, "in_shardings": UNSPECIFIED, "out_shardings": UNSPECIFIED,
    "in_layouts": None, "out_layouts": None,
}


def _empty_rows(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with an empty row for each row that has defaults only."""
    rows = {row: tuple(named[row]) for row in _DEFAULTS if named.get(row)}
    return {**named, **{row: () for row, entries in rows.items() if all(x is _DEFAULTS[row] for x in entries)}}


jit_call = _JitCall(
    "jit", ("name", "jaxpr", "donated_invars", "keep_unused", "compiler_options", "inline", *Places._fields),
    emit=_emit, jvp=_jvp, linearize=_linearize, partial_evaluate=_partial_evaluate, transpose=_transpose, batch=_batch,
    discharge=_discharge,
    unprinted={
        "donated_invars": (), "keep_unused": False, "inline": False, "in_shardings": (), "out_shardings": (),
        "in_layouts": (), "out_layouts": (),
    },
    **make_call_rules("jaxpr", "Call a jitted function."),
)


def make_jit_rules(name: str, parameter: str, description: str, **own: Any) -> dict[str, Any]:
    """Return the rules of an operation that calls the jaxpr in a parameter as a jitted function called `name`.

    own: rules in the place of those of jitted functions.
    """

    def rename(kind: str) -> Callable[..., Any]:
        rule = getattr(jit_call, kind)

        def apply(*arguments: Any, **parameters: Any) -> Any:
            closed = close_jaxpr(parameters[parameter])
            return rule(*arguments, name=name, jaxpr=closed, compiler_options=None, inline=False)

        return apply

    kinds = ("emit", "jvp", "linearize", "partial_evaluate", "transpose", "batch", "discharge")
    return make_call_rules(parameter, description) | {kind: rename(kind) for kind in kinds} | own


def close_jaxpr(jaxpr: Any) -> ClosedJaxpr:
    """Return an open or closed jaxpr, as users' calls hold them, as a closed one."""
    return ClosedJaxpr(jaxpr, []) if isinstance(jaxpr, Jaxpr) else jaxpr


def evaluate_as_program(closed: ClosedJaxpr, operands: Sequence[Any], name: str) -> list[Any]:
    """Return the results of `closed`: inlined while a jaxpr is staged, otherwise from one program called `name`."""
    enclosing = current_trace.get().enclosing()
    if any(isinstance(t, StagingTrace) and not isinstance(t, Tape) for t in enclosing):
        return call_in_scopes(evaluate, closed.jaxpr, closed.consts, operands)
    return bind_jit(closed, operands, name)
