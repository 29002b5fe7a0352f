"""The primitive of `shard_map`: a computation on each device's shards of arrays."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import reshape
from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import Effects, named_axis
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.shardings.mesh import (
    AbstractMesh,
    AxisType,
    BaseMesh,
    context_abstract_mesh,
    override_abstract_mesh,
)
from xtrace._src.core.shardings.partition_spec import PartitionSpec, full_entries, get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding, count_parts, explicit_part
from xtrace._src.core.shardings.sums import NO_SUMS, Sums
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.core.trace import ManualAxisTrace, current_trace, use_trace
from xtrace._src.ops.collectives.collectives import psum, scale
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.discharge import discharge_jaxpr, split_results
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
from xtrace._src.transforms.lower import emit_equations

_Specs = tuple[PartitionSpec, ...]


@contextlib.contextmanager
def manual_axes_in_scope(mesh: BaseMesh, axes: frozenset[Any], check_vma: bool) -> Iterator[None]:
    """Bring manual mesh axes into scope for the block, with their names and the mesh in force."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(override_abstract_mesh(_inner_mesh(mesh, axes)))
        for name, size in mesh.shape_tuple:
            if name in axes:
                stack.enter_context(use_trace(ManualAxisTrace(current_trace.get(), name, size, check_vma)))
        yield


def _inner_mesh(mesh: BaseMesh, axes: frozenset[Any]) -> AbstractMesh:
    """Return the mesh in force inside of a mapped function: the outer one with `axes` manual."""
    outer = context_abstract_mesh()
    base = outer if outer.shape_tuple == mesh.shape_tuple else mesh.abstract_mesh
    return base.update_axis_types(dict.fromkeys(axes, AxisType.Manual))


def named_axes(spec: PartitionSpec) -> frozenset[Any]:
    """Return the mesh axes of a specification."""
    return frozenset([axis for entry in spec for axis in get_entry_axes(entry)])


def count_shards(mesh: BaseMesh, spec: PartitionSpec, ndim: int) -> Shape:
    """Return the number of shards of an array along each dimension."""
    return tuple([count_parts(entry, mesh) for entry in full_entries(spec, ndim)])


def shard_aval(
    aval: ShapedArray, mesh: BaseMesh, spec: PartitionSpec, manual: frozenset[Any], check_vma: bool
) -> ShapedArray:
    """Return the type of the shards of an array of type `aval`; it keeps the sharding over axes that are not manual."""
    shape = tuple([n // k for n, k in zip(aval.shape, count_shards(mesh, spec, aval.ndim), strict=True)])
    varying = aval.varying | named_axes(spec) if check_vma else frozenset()
    own = aval.explicit_sharding
    if own is not None:
        own = explicit_part(NamedSharding(_inner_mesh(mesh, manual), own.spec), aval.ndim)
    sums = Sums(spec.unreduced & manual, spec.reduced & manual) if check_vma else NO_SUMS
    return aval.update(shape=shape, varying=varying, sharding=own, manual_sums=aval.manual_sums.join(sums))


def unshard_aval(aval: ShapedArray, mesh: BaseMesh, spec: PartitionSpec, manual: frozenset[Any]) -> ShapedArray:
    """Return the type of an array with shards of type `aval`."""
    shape = tuple([n * k for n, k in zip(aval.shape, count_shards(mesh, spec, aval.ndim), strict=True)])
    own = aval.explicit_sharding
    if own is not None:
        pairs = zip(full_entries(spec, aval.ndim), own.spec, strict=True)
        entries = [get_entry_axes(outer) + get_entry_axes(inner) for outer, inner in pairs]
        spec = spec.update(partitions=tuple(entries))
    return aval.update(
        shape=shape, varying=aval.varying - manual, sharding=explicit_part(NamedSharding(mesh, spec), len(shape)),
        manual_sums=aval.manual_sums.without(manual),
    )


def _abstract(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: BaseMesh, newly_manual_axes: frozenset[Any], out_specs: _Specs,
    **_: object,
) -> list[ShapedArray]:
    """Return the concatenated results of a function of the shards of arrays."""
    return [unshard_aval(a, mesh, s, newly_manual_axes) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]


def _effects(*, jaxpr: ClosedJaxpr, newly_manual_axes: frozenset[Any], **_: object) -> Effects:
    return jaxpr.effects - {named_axis(axis) for axis in newly_manual_axes}


def _emit(
    builder: FunctionBuilder, *values: Value, jaxpr: ClosedJaxpr, mesh: BaseMesh, newly_manual_axes: frozenset[Any],
    in_specs: _Specs, out_specs: _Specs, **_: object,
) -> list[Value]:
    module = builder.module
    ordered = [e for e in jaxpr.effects if e.ordered]
    if ordered:
        raise ValueError(
            f"shard_map: the mapped function has ordered effects ({ordered[0]}), and devices that run it at the same "
            "time have no order; leave ordered=True out of its callbacks, or make these calls outside of it"
        )
    results = list(builder.results)
    axes = [name for name in mesh.axis_names if name in newly_manual_axes]
    outer_mesh, outer_indices = module.manual_mesh, module.axis_indices
    partial = len(axes) < len(mesh.axis_names)
    free = frozenset(range(64)) if partial else frozenset()
    operands, specs, avals = list(values), list(in_specs), [v.aval for v in jaxpr.jaxpr.invars]
    if partial:
        # A partially manual computation has no partition_id: an array of all indices gives each device its own.
        for axis in axes:
            index = ShapedArray((mesh.shape[axis],), "int32")
            operands.append(builder.iota(index, 0))
            specs.append(PartitionSpec(axis))
            avals.append(index.update(shape=(1,)))
    inner = builder.region(avals)
    count = len(jaxpr.jaxpr.invars)
    module.manual_mesh = mesh
    scalar = ShapedArray((), "int32")
    module.axis_indices = {
        axis: inner.cast("reshape", x, scalar) for axis, x in zip(axes, inner.arguments[count:], strict=False)
    }
    try:
        known: dict[Atom, Value] = dict(zip(jaxpr.jaxpr.invars, inner.arguments, strict=False))
        returned = emit_equations(inner, jaxpr.jaxpr, known)
    finally:
        module.manual_mesh, module.axis_indices = outer_mesh, outer_indices
    places = (
        [module.meshes.sharding(NamedSharding(mesh, s), physical_aval(x.aval).ndim, free)
         for x, s in zip(operands, specs, strict=True)],
        [module.meshes.sharding(NamedSharding(mesh, s), physical_aval(a).ndim, free)
         for a, s in zip(results, out_specs, strict=True)],
    )
    return builder.manual_computation(operands, results, inner, returned, places, axes)


def bind_shard_map(
    closed: ClosedJaxpr, operands: Sequence[Any], in_specs: Sequence[PartitionSpec], out_specs: Sequence[PartitionSpec],
    mesh: BaseMesh, newly_manual_axes: frozenset[Any], check_vma: bool,
) -> list[Any]:
    """Bind the computation of `closed` on shards; its constants become replicated operands."""
    if closed.consts:
        in_specs = [*[PartitionSpec()] * len(closed.consts), *in_specs]
        closed, operands = move_constants_to_inputs(closed), [*closed.consts, *operands]
    parameters = (check_vma, tuple(in_specs), closed, mesh, newly_manual_axes, tuple(out_specs))
    return bind_with_references(shard_map_p, operands, parameters, closed.effects)


def _discharge(
    keys: Sequence[Any], operands: Sequence[Any], *, check_vma: bool, in_specs: _Specs, jaxpr: ClosedJaxpr,
    mesh: BaseMesh, newly_manual_axes: frozenset[Any], out_specs: _Specs,
) -> tuple[list[Any], list[Any]]:
    details = mesh, newly_manual_axes, check_vma
    with manual_axes_in_scope(*details):
        pure = discharge_jaxpr(jaxpr)
    # The final arrays of references have the specifications of their initial arrays.
    last = [spec for spec, key in zip(in_specs, keys, strict=True) if key is not None]
    return split_results(keys, bind_shard_map(pure, operands, in_specs, [*out_specs, *last], *details))


def _residual_spec(aval: ShapedArray, mesh: BaseMesh, manual: frozenset[Any], check_vma: bool) -> PartitionSpec:
    """Return the specification of a residual, which concatenates its shards along the first dimension."""
    sums = aval.manual_sums.within(manual)
    known = sums.unreduced | sums.reduced
    axes = tuple([
        a for a in mesh.axis_names if a in manual and (not check_vma or a in aval.varying) and a not in known
    ])
    return PartitionSpec(*[axes] if axes else [], **sums._asdict())


def _reshape_scalars(closed: ClosedJaxpr, first: int) -> ClosedJaxpr:
    """Return `closed` with scalars among the results from `first` on reshaped to one element, to be concatenated."""
    if all(a.shape for a in closed.out_avals[first:]):
        return closed

    def function(*values: Any) -> list[Any]:
        results = evaluate(closed.jaxpr, closed.consts, values)
        return [reshape(x, (1,)) if i >= first and not aval_of(x).shape else x for i, x in enumerate(results)]

    return stage_to_jaxpr(function, closed.in_avals, closed.jaxpr.debug_info)


def add_leading_dimensions(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """Return `closed` with a leading dimension of size 1 added to each of its first `count` results."""

    def function(*values: Any) -> list[Any]:
        results = evaluate(closed.jaxpr, closed.consts, values)
        return [reshape(x, (1, *aval_of(x).shape)) if i < count else x for i, x in enumerate(results)]

    return stage_to_jaxpr(function, closed.in_avals, closed.jaxpr.debug_info) if count else closed


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, check_vma: bool, in_specs: _Specs,
    jaxpr: ClosedJaxpr, mesh: BaseMesh, newly_manual_axes: frozenset[Any], out_specs: _Specs,
) -> tuple[list[Any], list[Any]]:
    given = tuple([t is not None for t in tangents])
    with manual_axes_in_scope(mesh, newly_manual_axes, check_vma):
        both, nonzero = jvp_jaxpr(jaxpr, given)
    results = bind_shard_map(
        both, [*primals, *[t for t in tangents if t is not None]], [*in_specs, *filter_by_mask(in_specs, given)],
        [*out_specs, *filter_by_mask(out_specs, nonzero)], mesh, newly_manual_axes, check_vma,
    )
    count = len(nonzero)
    return results[:count], scatter_by_mask(results[count:], nonzero)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, check_vma: bool, in_specs: _Specs,
    jaxpr: ClosedJaxpr, mesh: BaseMesh, newly_manual_axes: frozenset[Any], out_specs: _Specs,
) -> tuple[list[Any], list[Any]]:
    given = tuple([t is not None for t in tangents])
    details = mesh, newly_manual_axes, check_vma
    with manual_axes_in_scope(*details):
        parts = linearize_jaxpr(jaxpr, given)
        count = len(out_specs)
        residuals = [_residual_spec(a, *details) for a in parts.known.out_avals[count:]]
        known = _reshape_scalars(parts.known, count)
        linear, specs = _linear_part(parts, in_specs, [*out_specs, *residuals])
    results = bind_shard_map(known, primals, in_specs, [*out_specs, *residuals], *details)
    operands = [*parts.gather(primals, results), *[t for t in tangents if t is not None]]
    moved = bind_shard_map(
        linear, operands, [*specs, *filter_by_mask(in_specs, given)],
        filter_by_mask(out_specs, parts.unknown_results), *details,
    )
    return results[:count], scatter_by_mask(moved, parts.unknown_results)


def _linear_part(
    parts: PartitionedJaxpr, in_specs: Sequence[PartitionSpec], out_specs: Sequence[PartitionSpec]
) -> tuple[ClosedJaxpr, list[PartitionSpec]]:
    """Return the linear part of a partitioned jaxpr, and the specifications of its residuals."""
    specs = [in_specs[i] if kind == "input" else out_specs[i] for kind, i in parts.residuals]
    new = [kind == "output" and i >= parts.results for kind, i in parts.residuals]
    linear = parts.unknown
    if not any(n and not a.shape for n, a in zip(new, linear.in_avals, strict=False)):
        return linear, specs
    avals = [
        a.update(shape=(1,)) if i < len(new) and new[i] and not a.shape else a for i, a in enumerate(linear.in_avals)
    ]

    def function(*values: Any) -> list[Any]:
        given = [
            reshape(x, a.shape) if aval_of(x).shape != a.shape else x
            for x, a in zip(values, linear.in_avals, strict=True)
        ]
        return evaluate(linear.jaxpr, linear.consts, given)

    return stage_to_jaxpr(function, avals, linear.jaxpr.debug_info), specs


def _partial_evaluate(
    unknown: tuple[bool, ...], *, check_vma: bool, in_specs: _Specs, jaxpr: ClosedJaxpr, mesh: BaseMesh,
    newly_manual_axes: frozenset[Any], out_specs: _Specs,
) -> Callable[[Sequence[Any]], list[Any]] | None:
    details = mesh, newly_manual_axes, check_vma
    works, pending = analyze_unknowns(jaxpr, unknown)
    if all(pending) and not works:
        return None
    with manual_axes_in_scope(*details):
        parts = partial_evaluate_jaxpr(jaxpr, unknown)
        if all(parts.unknown_results) and all(e.primitive is reshape for e in parts.known.jaxpr.eqns):
            # The known part only reshapes scalar residuals, which an earlier split has added.
            return None
        count = parts.results
        residuals = [_residual_spec(a, *details) for a in parts.known.out_avals[count:]]
        known = _reshape_scalars(parts.known, count)
        known_in = filter_by_mask(in_specs, [not u for u in unknown])
        known_out = [*filter_by_mask(out_specs, [not n for n in parts.unknown_results]), *residuals]
        linear, specs = _linear_part(parts, known_in, known_out)

    def compute(operands: Sequence[Any]) -> list[Any]:
        given = filter_by_mask(operands, [not u for u in unknown])
        results = bind_shard_map(known, given, known_in, known_out, *details)
        rest = [*parts.gather(given, results), *filter_by_mask(operands, unknown)]
        moved = bind_shard_map(
            linear, rest, [*specs, *filter_by_mask(in_specs, unknown)],
            filter_by_mask(out_specs, parts.unknown_results),
            *details,
        ) if any(parts.unknown_results) else []
        return merge_by_mask(results[:count], moved, parts.unknown_results)

    return compute


def _transpose(
    cotangents: Sequence[Any], *operands: Array | UndefinedPrimal, check_vma: bool, in_specs: _Specs,
    jaxpr: ClosedJaxpr, mesh: BaseMesh, newly_manual_axes: frozenset[Any], out_specs: _Specs,
) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    nonzero = tuple([c is not None for c in cotangents])
    details = mesh, newly_manual_axes, check_vma
    with manual_axes_in_scope(*details):
        transposed, has_cotangent = transpose_jaxpr(jaxpr, linear, nonzero)
        wanted = [s.to_ct_spec() for s in filter_by_mask(filter_by_mask(in_specs, linear), has_cotangent)]
        cotangent_specs = [s.to_ct_spec() for s in filter_by_mask(out_specs, nonzero)]
        given = [*filter_by_mask(in_specs, [not x for x in linear]), *cotangent_specs]
        if not check_vma:
            transposed = _sum_replicated(transposed, mesh, newly_manual_axes, linear.count(False), given, wanted)
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    results = bind_shard_map(transposed, [*known, *[c for c in cotangents if c is not None]], given, wanted, *details)
    return scatter_by_mask(scatter_by_mask(results, has_cotangent), linear)


def _sum_replicated(
    closed: ClosedJaxpr, mesh: BaseMesh, manual: frozenset[Any], known: int, in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
) -> ClosedJaxpr:
    """Return a transposed jaxpr with sums over the axes along which arrays are replicated.

    Each device gets the full cotangent of a replicated result, and takes an equal share of it. The devices' cotangents
    of a replicated operand are summed.
    """

    def function(*values: Any) -> list[Any]:
        shares = [
            scale(x, 1 / math.prod([mesh.shape[a] for a in manual - named_axes(s)]))
            if i >= known and manual - named_axes(s) else x
            for i, (x, s) in enumerate(zip(values, in_specs, strict=True))
        ]
        results = evaluate(closed.jaxpr, closed.consts, shares)
        return [
            psum(x, tuple(sorted(manual - named_axes(s), key=str))) if manual - named_axes(s) else x
            for x, s in zip(results, out_specs, strict=True)
        ]

    return stage_to_jaxpr(function, closed.in_avals, closed.jaxpr.debug_info)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, check_vma: bool, in_specs: _Specs,
    jaxpr: ClosedJaxpr, mesh: BaseMesh, newly_manual_axes: frozenset[Any], out_specs: _Specs,
) -> tuple[list[Any], tuple[int | None, ...]]:
    shards = _count_mapped_shards(mapped, jaxpr, mesh, (*in_specs, *out_specs), newly_manual_axes)
    entry, split, manual = mapped.spmd_name, mapped.split, newly_manual_axes
    if split is not None:
        # The function does not use these axes: along them the mapped axis keeps the split in its type.
        manual -= named_axes(split.spec)
        split = split.update(mesh=_inner_mesh(mesh, manual))
    given = [_insert_entry(s, i, entry) for s, i in zip(in_specs, axes, strict=True)]
    pairs = zip(operands, given, strict=True)
    avals = tuple([shard_aval(aval_of(x), mesh, s, manual, check_vma) for x, s in pairs])
    with manual_axes_in_scope(mesh, manual, check_vma):
        inner = mapped._replace(size=mapped.size // shards, spmd_name=None, split=split)
        batched, out_axes = batch_jaxpr(jaxpr, inner, tuple(axes), None, avals)
    wanted = [_insert_entry(s, i, entry) for s, i in zip(out_specs, out_axes, strict=True)]
    return bind_shard_map(batched, operands, given, wanted, mesh, manual, check_vma), out_axes


def _count_mapped_shards(
    mapped: MappedAxis, jaxpr: ClosedJaxpr, mesh: BaseMesh, specs: Sequence[PartitionSpec], manual: frozenset[Any]
) -> int:
    """Return the number of shards of a mapped axis over the mesh axes of ``vmap(spmd_axis_name=)``.

    ValueError if the mapped function uses these mesh axes, or mesh axes that already split the mapped axis.
    """
    names, split = get_entry_axes(mapped.spmd_name), named_axes(mapped.split.spec) if mapped.split is not None else ()
    for name in split:
        if _uses(jaxpr.jaxpr, specs, name):
            raise ValueError(
                f"vmap: the mapped axis is split over the mesh axis {abbreviate(name)}, which the shard_map in the "
                "mapped function uses for another axis; split it otherwise with xtrace.reshard first"
            )
    for name in names:
        if name not in manual:
            raise ValueError(
                f"vmap: spmd_axis_name names {abbreviate(name)}, which is no manual axis of the shard_map in the "
                f"mapped function, {tuple(sorted(map(str, manual)))}"
            )
        if _uses(jaxpr.jaxpr, specs, name):
            raise ValueError(
                f"vmap: spmd_axis_name names {abbreviate(name)}, which the shard_map in the mapped function uses for "
                "another axis; name a mesh axis of its own"
            )
    shards = math.prod([mesh.shape[name] for name in names])
    if mapped.size % shards:
        raise ValueError(
            f"vmap: the mapped axis has the size {mapped.size}, no multiple of {shards}, the size of the mesh axes "
            f"{names} of spmd_axis_name"
        )
    return shards


def _uses(jaxpr: Jaxpr, specs: Sequence[PartitionSpec], name: Any) -> bool:
    """Whether the specifications or the body of a mapped function name a mesh axis."""
    return any(name in named_axes(spec) for spec in specs) or _names_axis(jaxpr, name)


def _names_axis(jaxpr: Jaxpr, name: Any) -> bool:
    for equation in jaxpr.eqns:
        for key, value in equation.params.items():
            parts = value if isinstance(value, (tuple, list)) else (value,)
            if key in ("axes", "axis_name") and name in parts:
                return True
            inner = [x.jaxpr if isinstance(x, ClosedJaxpr) else x for x in parts]
            if any(isinstance(x, Jaxpr) and _names_axis(x, name) for x in inner):
                return True
    return False


def _insert_entry(spec: PartitionSpec, axis: int | None, entry: Any) -> PartitionSpec:
    """Return `spec` with `entry` inserted for a mapped axis at `axis`."""
    if axis is None or (entry is None and axis >= len(spec)):
        return spec
    entries = list(full_entries(spec, max(axis, len(spec))))
    entries.insert(axis, entry)
    return spec.update(partitions=tuple(entries))


shard_map_p = ListPrimitive(
    "shard_map", ("check_vma", "in_specs", "jaxpr", "mesh", "newly_manual_axes", "out_specs"), abstract=_abstract,
    emit=_emit, effects=_effects, jvp=_jvp, linearize=_linearize, partial_evaluate=_partial_evaluate,
    transpose=_transpose, batch=_batch, multiple_results=True, memoised=False,
    discharge=_discharge,
)
