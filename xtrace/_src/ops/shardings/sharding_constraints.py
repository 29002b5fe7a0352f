"""Sharding constraints: the identity with a given sharding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import cast_to_auto, reshard_p
from xtrace._src.algebra.vector_space import LINEAR
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.core.shardings.mesh import Mesh, context_abstract_mesh, context_mesh
from xtrace._src.core.shardings.partition_spec import UNCONSTRAINED, PartitionSpec, full_entries, get_entry_axes
from xtrace._src.core.shardings.requested_shardings import check_explicit, requested_sharding
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.shardings.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    explicit_part,
    unconstrained_dimensions,
)
from xtrace._src.ops.shardings.layout_constraints import batch_layout, emit_layout
from xtrace._src.runtime.arrays import ConcreteArray, mesh_sharding
from xtrace._src.runtime.transfer import in_layout, put_at
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.xla import guards

with late_modules(globals()):
    from xtrace._src.transforms.batch import MappedAxis


def _abstract(operand: ShapedArray, *, sharding: Sharding, layout: Any, **_: object) -> ShapedArray:
    """Return the operand with a sharding; XLA pads dimensions that are no multiples of their number of shards."""
    sharding.check_compatible_aval(operand.shape)
    if isinstance(layout, Layout):
        layout.check_compatible_aval(operand.shape)
    return operand


def _emit(builder: FunctionBuilder, x: Value, *, sharding: Sharding, layout: Any, **_: object) -> Value:
    placed = emit_constraint(builder, x, sharding)
    return emit_layout(builder, placed, layout) if isinstance(layout, Layout) else placed


def emit_constraint(builder: FunctionBuilder, x: Value, sharding: Sharding) -> Value:
    """Write the constraint of a value to a sharding; a single-device sharding has no effect inside of a program."""
    unconstrained_dims = unconstrained_dimensions(sharding)
    if isinstance(sharding, SingleDeviceSharding):
        return x
    own = x.aval.explicit_sharding
    if own is not None and isinstance(sharding, NamedSharding) and sharding.mesh.auto_axes:
        # The type has the split over explicit axes; the constraint adds the other axes.
        pairs = zip(own.spec.partitions, full_entries(sharding.spec, x.aval.ndim), strict=True)
        entries = [q if q is UNCONSTRAINED and p is None else get_entry_axes(p) + get_entry_axes(q) for p, q in pairs]
        sharding = sharding.update(spec=own.spec.update(partitions=tuple(entries)))
    return builder.constrain(x, sharding, unconstrained_dims)


def _evaluate(
    array: ConcreteArray, *, sharding: Sharding, layout: Any, unconstrained_dims: frozenset[int], **_: object
) -> Array:
    own = mesh_sharding(array)
    if isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh):
        # An abstract mesh takes the devices of the array's own mesh, or of the mesh in force.
        meshes = [*([own.mesh] if isinstance(own, NamedSharding) else []), context_mesh()]
        sharding = next((sharding.update(mesh=m) for m in meshes if m.abstract_mesh == sharding.mesh), sharding)
    if unconstrained_dims and isinstance(sharding, NamedSharding):
        known = own.spec if isinstance(own, NamedSharding) and own.mesh == sharding.mesh else PartitionSpec()
        old = full_entries(known, array.ndim)
        new = full_entries(sharding.spec, array.ndim)
        entries = [old[i] if i in unconstrained_dims else entry for i, entry in enumerate(new)]
        sharding = sharding.update(spec=PartitionSpec(*entries))
    # Arrays have equal shards; only inside of programs XLA pads them.
    sharding.shard_shape(array.shape)
    with guards.lift_guards():
        placed = put_at(array, sharding)
        return in_layout(placed, layout) if isinstance(layout, Layout) else placed


def _transpose(cotangent: Array, operand: object, **parameters: Any) -> list[Any]:
    return [sharding_constraint_p.bind(cotangent, **parameters)]


def _batch(
    mapped: MappedAxis, operands: Any, axes: Any, *, sharding: Sharding, layout: Any,
    unconstrained_dims: frozenset[int], **rest: Any,
) -> tuple[Any, int]:
    (x,), (axis,) = operands, axes
    rest["layout"] = batch_layout(layout, axis) if isinstance(layout, Layout) else layout
    if isinstance(sharding, NamedSharding):
        entries = list(full_entries(sharding.spec, x.ndim - 1))
        entries.insert(axis, mapped.spmd_name if mapped.spmd_name is not None else UNCONSTRAINED)
        sharding = sharding.update(spec=sharding.spec.update(partitions=tuple(entries)))
        unconstrained_dims = unconstrained_dimensions(sharding)
    return sharding_constraint_p.bind(x, sharding=sharding, unconstrained_dims=unconstrained_dims, **rest), axis


sharding_constraint_p = ArrayPrimitive(
    "sharding_constraint", ("context_mesh", "layout", "sharding", "unconstrained_dims"), sharding=same,
    abstract=_abstract, unprinted={"layout": ALWAYS_PRINTED},
    emit=_emit, evaluate=_evaluate, jvp=LINEAR, transpose=_transpose, batch=_batch, moves_elements=True,
)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Return arrays with another sharding over the explicit axes of a mesh.

    Args:
        xs: a pytree of arrays.
        out_shardings: a sharding, or a `PartitionSpec` on the mesh in force, or a tree prefix of these. Without
            one in force it is on the mesh of the array.

    Returns:
        A pytree of the structure of `xs`, with the new shardings in its types.

    Raises:
        TypeError: a leaf of `out_shardings` is none of these.
        ValueError: a dimension is no multiple of its number of parts, or no mesh is known.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",))
        >>> xtrace.typeof(xtrace.reshard(jnp.ones(2), xtrace.NamedSharding(mesh, xtrace.P("x"))))
        ShapedArray(float32[2@x])
    """
    leaves, tree = pytree.tree_flatten(xs)
    try:
        given = pytree.broadcast_prefix(out_shardings, xs, is_leaf=lambda s: s is None)
    except ValueError as error:
        raise ValueError(f"reshard: out_shardings must be a sharding or a tree prefix of xs: {error}") from None
    results = []
    for i, (leaf, one) in enumerate(zip(leaves, given, strict=True)):
        own, axes = aval_of(leaf).explicit_sharding, context_abstract_mesh()
        is_spec = isinstance(one, PartitionSpec)
        if is_spec and own is not None and (axes.empty or axes.shape_tuple == own.mesh.shape_tuple):
            sharding = own.update(spec=one)
        else:
            sharding = requested_sharding("out_shardings", one)
        if sharding is not None and not isinstance(sharding, NamedSharding):
            raise TypeError(
                f"reshard: out_shardings must be NamedShardings or PartitionSpecs, got {abbreviate(sharding)}"
            )
        if sharding is not None:
            check_explicit("reshard", sharding)
            ndim, spec = aval_of(leaf).ndim, sharding.spec
            if len(spec) > ndim and not any(spec.partitions[ndim:]):
                # One specification is often given for arrays of fewer axes, too.
                sharding = sharding.update(spec=spec.update(partitions=spec.partitions[:ndim]))
        try:
            results.append(leaf if sharding is None else reshard_p.bind_positional((leaf,), (sharding,)))
        except ValueError as error:
            raise type(error)(f"reshard: xs{_format_leaf_path(tree, i)}: {error}") from None
    return pytree.tree_unflatten(tree, results)


def _format_leaf_path(tree: Any, position: int) -> str:
    return key_paths.keystr(pytree.leaf_paths(tree)[position])


def _check_axes(x: Array, sharding: Sharding) -> None:
    """Raise ValueError if a user's constraint names manual or explicit mesh axes.

    If all axes in force are explicit, a constraint asserts the sharding in the type: AssertionError if it differs.
    """
    if not isinstance(sharding, NamedSharding):
        return
    own, mesh = aval_of(x).explicit_sharding, sharding.mesh
    if own is not None and own.mesh.are_all_axes_explicit and context_abstract_mesh() is mesh.abstract_mesh is own.mesh:
        wanted = full_entries(sharding.spec, len(own.spec))
        if wanted != full_entries(own.spec, len(wanted)) or sharding.sums != own.sums:
            raise AssertionError(
                f"with_sharding_constraint: on explicit axes it asserts, and the array's type has the spec {own.spec} "
                f"instead of {sharding.spec}; change it with xtrace.reshard(x, {sharding.spec})"
            )
        return
    named = [axis for entry in sharding.spec.partitions for axis in get_entry_axes(entry)]
    # In `shard_map` a value is a shard along the manual axes.
    manual = {*mesh.manual_axes, *context_abstract_mesh().manual_axes}
    for axis in [*named, *sharding.spec.unreduced]:
        if axis in manual or axis in mesh.explicit_axes:
            raise ValueError(
                f"the spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the "
                f"mesh, got {sharding.spec}, and {axis!s} is {'a manual' if axis in manual else 'an explicit'} "
                f"axis of {abbreviate(mesh)}. Leave it out, or change the split over explicit axes with xtrace.reshard"
            )


def constrain(x: Array, sharding: Sharding, layout: Any = None) -> Any:
    """Return `x` constrained to a sharding, and to a layout if one is given."""
    own = aval_of(x).explicit_sharding
    if isinstance(sharding, NamedSharding):
        if not sharding.mesh.explicit_axes:
            # The constraint has no explicit axes, so the result's type has no sharding.
            x = cast_to_auto(x)
        elif sharding.mesh.are_all_axes_explicit and own not in (None, explicit_part(sharding, aval_of(x).ndim)):
            x = reshard_p.bind_positional((x,), (sharding,))
    return sharding_constraint_p.bind(
        x, context_mesh=context_mesh(), layout=layout, sharding=sharding,
        unconstrained_dims=unconstrained_dimensions(sharding),
    )


def constrain_all(values: Sequence[Any], shardings: Sequence[Sharding | None]) -> list[Any]:
    """Return values, each constrained to its sharding; None leaves a value unchanged."""
    if not shardings:
        return list(values)
    return [x if s is None else constrain(x, s) for x, s in zip(values, shardings, strict=True)]


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return a tree of arrays, each constrained to its sharding.

    Args:
        x: a pytree of arrays.
        shardings: a sharding, a `Format` with one, a `PartitionSpec` on the mesh of `set_mesh`, or a tree prefix of
            these. None leaves an array unchanged; ``P.UNCONSTRAINED`` leaves a dimension to the compiler.

    Returns:
        A pytree of the structure of `x`.

    Raises:
        TypeError: a leaf of `shardings` is none of these.
        ValueError: a tree prefix does not fit, a dimension is no multiple of its number of parts, or a `PartitionSpec`
            is given where no mesh is in force.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> lax.with_sharding_constraint(jnp.ones(2), xtrace.NamedSharding(mesh, xtrace.P("x"))).sharding.spec
        P('x',)
    """
    leaves, tree = pytree.tree_flatten(x)
    try:
        given = pytree.broadcast_prefix(shardings, x, is_leaf=lambda s: s is None)
    except ValueError as error:
        raise ValueError(
            f"with_sharding_constraint: shardings must be a sharding or a tree prefix of x: {error}"
        ) from None
    constrained = []
    for i, (leaf, one) in enumerate(zip(leaves, given, strict=True)):
        sharding = requested_sharding("shardings", one, takes_layouts=True)
        layout = one.layout if isinstance(one, Format) else None
        aval_of(leaf)
        try:
            if sharding is not None:
                _check_axes(leaf, sharding)
            if isinstance(layout, Layout):
                layout.check_compatible_aval(aval_of(leaf).shape)
            constrained.append(leaf if sharding is None else constrain(leaf, sharding, layout))
        except ValueError as error:
            path = _format_leaf_path(tree, i)
            raise type(error)(
                f"One of with_sharding_constraint arguments, x{path}, is incompatible with it: {error}"
            ) from None
    return pytree.tree_unflatten(tree, constrained)
