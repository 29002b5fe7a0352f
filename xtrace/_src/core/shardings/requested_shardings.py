"""Shardings that users give as arguments."""

from __future__ import annotations

from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import NoMeshError
from xtrace._src.core.shardings.memory_layout import Format, refuse_layout
from xtrace._src.core.shardings.mesh import naming_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec, get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import called_function


def requested_sharding(
    argument: str, given: Any, *, entered: bool = True, function: str = "", takes_layouts: bool = False
) -> Sharding | None:
    """Return the sharding of a user's argument; a `PartitionSpec` is completed by the mesh in force.

    entered: whether the mesh of ``with mesh:`` counts. takes_layouts: whether a `Format` may have a layout. Raises
    TypeError for another object, and NoMeshError, a ValueError, for a PartitionSpec without a mesh in force.
    """
    if isinstance(given, Format):
        if not takes_layouts:
            refuse_layout(argument, given, function=function)
        given = given.sharding
    if given is None or isinstance(given, Sharding):
        return given
    if not isinstance(given, PartitionSpec):
        raise TypeError(
            f"{function or called_function()}: {argument} leaf specifications are expected to be shardings such as "
            f"xtrace.NamedSharding(mesh, xtrace.P('x')), PartitionSpec instances or None, but got {abbreviate(given)}"
        )
    mesh = naming_mesh(entered)
    if mesh.empty:
        raise NoMeshError(
            f"{function or called_function()} requires a non-empty mesh in context if you are passing "
            f"`PartitionSpec`s to {argument}: got {given}. Write with xtrace.set_mesh(mesh):, or give "
            f"xtrace.NamedSharding(mesh, {given})"
        )
    return NamedSharding(mesh, given)


def requested_out_sharding(given: Any, *, function: str = "") -> NamedSharding | None:
    """Return a user's ``out_sharding`` of a result; None if it is None, or has an empty mesh."""
    sharding = requested_sharding("out_sharding", given, function=function)
    # Programs pass on the sharding of a type, whose mesh is empty if the array is on none.
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    if not isinstance(sharding, NamedSharding):
        raise TypeError(
            f"{function or called_function()}: out_sharding must be a PartitionSpec or a NamedSharding, got "
            f"{abbreviate(sharding)}; move the result to one device with xtrace.device_put"
        )
    check_explicit(f"{function or called_function()} as out_sharding", sharding)
    return sharding


def check_explicit(place: str, sharding: NamedSharding) -> None:
    """Raise ValueError if a user's specification names an axis that is not explicit; `place` is for the message."""
    spec = sharding.spec
    axes = [axis for entry in spec.partitions for axis in get_entry_axes(entry)]
    for axis in [*axes, *sorted(spec.unreduced | spec.reduced, key=str)]:
        if axis not in sharding.mesh.explicit_axes:
            raise ValueError(
                f"PartitionSpec passed to {place} cannot contain axis names that are of type Auto or Manual. Got "
                f"{spec}, and {axis!s} is no explicit axis of {abbreviate(sharding.mesh)}. Constrain the array with "
                "xtrace.lax.with_sharding_constraint"
            )
