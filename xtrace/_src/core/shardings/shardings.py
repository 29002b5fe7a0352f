"""Shardings: the placement of an array's pieces on devices."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core.annotations import Shape
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.name_suggestions import suggest_name
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.errors import DuplicateSpecError, IndivisibleError
from xtrace._src.core.shardings.mesh import AxisType, BaseMesh, Mesh, size_tuple
from xtrace._src.core.shardings.partition_spec import (
    UNCONSTRAINED,
    PartitionSpec,
    full_entries,
    get_entry_axes,
    restrict_spec,
)
from xtrace._src.core.shardings.sums import Sums
from xtrace._src.core.tables import memoize
from xtrace._src.core.value_objects import EqualByKey, Immutable

with late_modules(globals()):
    from xtrace._src.core.shardings import sharding_pictures

_Index = tuple[slice, ...]


class Tiles(NamedTuple):
    """The tiles of an array, and the devices of each tile.

    `parts` is the number of parts of each dimension. `numbers` are the devices' numbers, tile after tile; the devices
    with copies of one tile are side by side, in order.
    """

    parts: tuple[int, ...]
    numbers: tuple[int, ...]

    @property
    def copies(self) -> int:
        """The number of devices that hold each tile."""
        return len(self.numbers) // math.prod(self.parts)


class Sharding(Immutable):
    """The placement of an array's pieces on devices; the base class of all shardings.

    Example:
        >>> isinstance(jnp.ones(2).sharding, xtrace.sharding.Sharding)
        True
    """

    __slots__ = ()

    memory_kind: str | None

    @property
    def devices(self) -> tuple[Any, ...]:
        """The devices, in the order in which programs number them."""
        raise NotImplementedError

    def tiles(self, ndim: int) -> Tiles:
        """Return the tiles of an array of `ndim` axes."""
        raise NotImplementedError

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        raise NotImplementedError

    def with_memory_kind(self, kind: str) -> Sharding:
        """Return the sharding with the pieces in another kind of the devices' memory."""
        raise NotImplementedError

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raise ValueError if an array of shape `aval_shape` has too few axes."""

    @property
    def is_unreduced(self) -> bool:
        """Whether the array is the sum of the devices' pieces along a mesh axis."""
        return False

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return len(self.devices)

    @property
    def device_set(self) -> set[Any]:
        """The devices."""
        return set(self.devices)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        return {d for d in self.devices if d.process_index == d.client.process_index()}

    @property
    def has_addressable_devices(self) -> bool:
        """Whether a device belongs to this process."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return len(self.addressable_devices) == len(self.device_set)

    # Names of JAX's that Orbax and Treescope read.

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self.devices

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        local = self.addressable_devices
        return tuple([d for d in self.devices if d in local])

    def shard_shape(self, global_shape: Shape) -> Shape:
        """Return the shape of the pieces of an array of shape `global_shape`.

        Raises IndivisibleError, a ValueError, if a dimension is not a multiple of its number of parts.
        """
        shape = size_tuple("shard_shape", "global_shape", global_shape)
        self.check_compatible_aval(shape)
        self.check_divisible(shape)
        return tuple([n // k for n, k in zip(shape, self.tiles(len(shape)).parts, strict=True)])

    def check_divisible(self, shape: Shape) -> None:
        """Raise IndivisibleError if a dimension is no multiple of its number of parts."""
        for dimension, (size, parts) in enumerate(zip(shape, self.tiles(len(shape)).parts, strict=True)):
            if size % parts != 0:
                raise IndivisibleError(
                    f"Sharding {abbreviate(self)} implies that array axis {dimension} is "
                    f"partitioned {parts} times, but the dimension size is {size} (full shape: {tuple(shape)})"
                    f"{self._describe_split(dimension)}. Pad it to {-(-size // parts) * parts}, or leave it whole "
                    "with None in the PartitionSpec"
                )

    def _describe_split(self, dimension: int) -> str:
        return ""

    def devices_indices_map(self, global_shape: Shape) -> Mapping[Any, _Index]:
        """Return the slices of each device: its part of an array of shape `global_shape`."""
        shape = size_tuple("devices_indices_map", "global_shape", global_shape)
        self.shard_shape(shape)
        return dict(zip(self.devices, [index for index, _ in pieces(self, shape)], strict=True))

    def addressable_devices_indices_map(self, global_shape: Shape) -> Mapping[Any, _Index]:
        """Return `devices_indices_map` for the devices of this process."""
        local = self.addressable_devices
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d in local}

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Return whether `other` puts the same pieces of arrays of `ndim` axes on the same devices."""
        if self is other or self == other:
            return True
        return isinstance(other, Sharding) and self.devices == other.devices and self.has_same_pieces(other, ndim)

    def has_same_pieces(self, other: Sharding, ndim: int) -> bool:
        """Return whether `other` puts the same pieces of arrays of `ndim` axes on its devices, compared in order."""
        if self.num_devices != other.num_devices or self.memory_kind != other.memory_kind:
            return False
        return self.tiles(ndim) == other.tiles(ndim) and self._summed_axes() == other._summed_axes()

    def _summed_axes(self) -> frozenset[Any]:
        """Return the mesh axes along which the array is the sum of the devices' pieces."""
        return frozenset()

    def _repr_html_(self) -> str | None:
        """Return the picture that notebooks show."""
        return sharding_pictures.draw_html(self, repr(self))


class SingleDeviceSharding(Sharding, EqualByKey):
    """All of an array on one device.

    Args:
        device: the device.
        memory_kind: the kind of the device's memory, such as ``"pinned_host"``; None for its default.

    Raises:
        TypeError: `device` is no device.
        ValueError: the device has no memory of the kind.

    Example:
        >>> xtrace.sharding.SingleDeviceSharding(xtrace.devices("cpu")[0]).num_devices
        1
    """

    __slots__ = ("device", "memory_kind")

    def __init__(self, device: Any, memory_kind: str | None = None) -> None:
        if not hasattr(device, "platform"):
            raise TypeError(
                f"SingleDeviceSharding: device must be one of xtrace.devices(), got {abbreviate(device)}"
            )
        self.device = device
        self.memory_kind = _memory_kind(device, memory_kind)

    @property
    def devices(self) -> tuple[Any, ...]:
        """The device, in a tuple."""
        return (self.device,)

    @property
    def is_fully_replicated(self) -> bool:
        """True: the device holds all of the array."""
        return True

    def tiles(self, ndim: int) -> Tiles:
        """Return the one tile."""
        return Tiles((1,) * ndim, (0,))

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """Return the sharding on the same device in another kind of its memory."""
        return SingleDeviceSharding(self.device, kind)

    def _key(self) -> tuple[Any, ...]:
        return self.device, self.memory_kind

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"

    def __reduce__(self) -> Any:
        raise TypeError("a sharding names a device of this process and cannot be pickled")


class TiledSharding(Sharding, EqualByKey):
    """A placement that no `PartitionSpec` describes: tiles that the compiler chose for a result.

    Args:
        devices: the devices, in the order in which programs number them.
        tiles: the tiles of arrays of one rank.
        memory_kind: the kind of the devices' memory.
    """

    __slots__ = ("_devices", "_tiles", "memory_kind")

    def __init__(self, devices: tuple[Any, ...], tiles: Tiles, memory_kind: str | None = None) -> None:
        self._devices, self._tiles = devices, tiles
        self.memory_kind = _memory_kind(devices[0], memory_kind)

    @property
    def devices(self) -> tuple[Any, ...]:
        """The devices."""
        return self._devices

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        return math.prod(self._tiles.parts) == 1

    def tiles(self, ndim: int) -> Tiles:
        """Return the tiles of an array of `ndim` axes."""
        return self._tiles._replace(parts=self._tiles.parts + (1,) * (ndim - len(self._tiles.parts)))

    def with_memory_kind(self, kind: str) -> TiledSharding:
        """Return the sharding with the tiles in another kind of the devices' memory."""
        return TiledSharding(self._devices, self._tiles, kind)

    def _key(self) -> tuple[Any, ...]:
        return self._devices, self._tiles, self.memory_kind

    def __repr__(self) -> str:
        return f"TiledSharding(parts={self._tiles.parts}, device_numbers={self._tiles.numbers})"


def count_parts(entry: Any, mesh: BaseMesh) -> int:
    """Return the number of parts of a dimension with the entry `entry`."""
    return math.prod([mesh.shape[axis] for axis in get_entry_axes(entry)])


class NamedSharding(Sharding):
    """A mesh, and the mesh axes over which each dimension of an array is split.

    Args:
        mesh: a `Mesh`, or an `AbstractMesh` if the devices are not known.
        spec: a `PartitionSpec`.
        memory_kind: the kind of the devices' memory, such as ``"pinned_host"``; None for the default.

    Raises:
        TypeError: `mesh` is no mesh, or `spec` no PartitionSpec.
        ValueError: an axis is not in the mesh, or is used twice; the devices have no memory of the kind.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",))
        >>> xtrace.NamedSharding(mesh, xtrace.P("x")).shard_shape((8, 2))
        (8, 2)
    """

    __slots__ = ("mesh", "spec", "memory_kind", "_hash", "__dict__", "__weakref__")

    @boundary
    def __init__(self, mesh: Any, spec: PartitionSpec, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, BaseMesh):
            raise TypeError(f"NamedSharding: mesh must be a Mesh, such as make_mesh returns; got {abbreviate(mesh)}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding: spec must be a PartitionSpec such as xtrace.P('x', None), got {abbreviate(spec)}"
                f"{_meant_spec(spec)}"
            )
        check_axes(spec, mesh)
        device = mesh.flat_devices[0] if isinstance(mesh, Mesh) and not mesh.empty else None
        self.mesh, self.spec = mesh, spec
        self.memory_kind = _memory_kind(device, memory_kind)
        self._hash = hash((mesh, spec, self.memory_kind))

    def update(self, **changes: Any) -> NamedSharding:
        """Return the sharding with `mesh`, `spec` or `memory_kind` changed."""
        fields: dict[str, Any] = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind}
        return NamedSharding(**(fields | changes))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """Return the sharding with the pieces in another kind of the devices' memory."""
        return NamedSharding(self.mesh, self.spec, kind)

    @functools.cached_property
    def devices(self) -> tuple[Any, ...]:
        """The devices in the mesh's order; ValueError for an AbstractMesh."""
        if not isinstance(self.mesh, Mesh):
            raise ValueError(
                f"{abbreviate(self)} has no devices: its mesh is abstract. Make it with a Mesh, such as make_mesh "
                "returns"
            )
        return self.mesh.flat_devices

    @property
    def is_unreduced(self) -> bool:
        """Whether the array is the sum of the devices' pieces along a mesh axis."""
        return bool(self.spec.unreduced)

    @property
    def sums(self) -> Sums:
        """The mesh axes along which the array is unreduced or reduced."""
        return Sums(self.spec.unreduced, self.spec.reduced)

    def _summed_axes(self) -> frozenset[Any]:
        return self.spec.unreduced

    @functools.cached_property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        return {d for d in self.devices if d.process_index == d.client.process_index()}

    @functools.cached_property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return len(self.addressable_devices) == len(self.devices)

    @functools.cached_property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        return not self.spec.unreduced and all(count_parts(entry, self.mesh) == 1 for entry in self.spec)

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The names of the mesh axes that split no dimension."""
        used = {axis for entry in self.spec for axis in get_entry_axes(entry)}
        return frozenset(self.mesh.axis_names) - used - self.spec.unreduced

    def tiles(self, ndim: int) -> Tiles:
        """Return the tiles of an array of `ndim` axes."""
        return _tiles_on_mesh(self, ndim)

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raise ValueError if an array of shape `aval_shape` has too few axes."""
        aval_shape = size_tuple("check_compatible_aval", "aval_shape", aval_shape)
        if len(aval_shape) < len(self.spec):
            kept = self.spec.partitions[: len(aval_shape)]
            raise ValueError(
                f"Sharding {abbreviate(self)} is only valid for values of rank at least {len(self.spec)}, but was "
                f"applied to a value of rank {len(aval_shape)}, of shape {tuple(aval_shape)}: {self.spec} has an entry "
                f"for each of {len(self.spec)} dimensions. Write {self.spec.update(partitions=kept)}"
            )

    def _describe_split(self, dimension: int) -> str:
        axes = [f"{abbreviate(a)} of size {self.mesh.shape[a]}" for a in get_entry_axes(self.spec[dimension])]
        return f": it is split over the mesh axes {', '.join(axes)}"

    def _key(self) -> tuple[Any, ...]:
        return self.mesh, self.spec, self.memory_kind

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, NamedSharding) and self._hash == other._hash and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        memory = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{memory})"

    def __reduce__(self) -> Any:
        return NamedSharding, self._key()


def _meant_spec(given: object) -> str:
    """Return the advice for a specification that was given as names, or as None."""
    entries = () if given is None else given if isinstance(given, (tuple, list)) else (given,)
    if not all(e is None or isinstance(e, (str, tuple, list)) for e in entries):
        return ""
    return f"; write xtrace.P({', '.join([abbreviate(e) for e in entries])})"


def check_axes(spec: PartitionSpec, mesh: BaseMesh) -> None:
    """Raise ValueError if an axis of `spec` is not in the mesh, or is used twice."""
    seen: dict[Any, int] = {}
    if UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`: {abbreviate(mesh)} has none, "
            "so there is no choice for the compiler. Write None to leave the dimension whole"
        )
    for dimension, entry in enumerate(spec):
        for axis in get_entry_axes(entry):
            if axis not in mesh.axis_names:
                raise ValueError(
                    f"{_unknown_axis(axis, spec, mesh)}. For dimension {dimension} "
                    f"{suggest_name(axis, mesh.axis_names)}, or None to leave it whole"
                )
            if axis in seen:
                raise DuplicateSpecError(
                    f"the axis {abbreviate(axis)} is used for dimensions {seen[axis]} and {dimension} in {spec}; a "
                    f"mesh axis splits one dimension at most. Write None for dimension {dimension}"
                )
            seen[axis] = dimension
    for axis in spec.unreduced | spec.reduced:
        if axis not in mesh.axis_names:
            raise ValueError(f"{_unknown_axis(axis, spec, mesh)}; {suggest_name(axis, mesh.axis_names)}")


def _unknown_axis(axis: object, spec: PartitionSpec, mesh: BaseMesh) -> str:
    shown = axis if isinstance(axis, str) else abbreviate(axis)
    return f"Resource axis: {shown} of {abbreviate(spec)} is not found in mesh: {mesh.axis_names}"


@memoize(4096)
def _tiles_on_mesh(sharding: NamedSharding, ndim: int) -> Tiles:
    mesh, entries = sharding.mesh, full_entries(sharding.spec, ndim)
    order = [mesh.axis_names.index(axis) for entry in entries for axis in get_entry_axes(entry)]
    order += [i for i in range(len(mesh.axis_names)) if i not in order]
    parts = tuple([count_parts(p, sharding.mesh) for p in entries])
    numbers = np.arange(mesh.size).reshape(mesh.axis_sizes).transpose(order).reshape(math.prod(parts), -1)
    return Tiles(parts, tuple(np.sort(numbers, axis=1).ravel().tolist()))


@memoize(4096)
def pieces(sharding: Sharding, shape: Shape) -> tuple[tuple[_Index, int], ...]:
    """Return for each device the slices of its piece of an array of shape `shape`, and the number of its copy."""
    tiles = sharding.tiles(len(shape))
    copies: dict[int, int] = {}
    indices = []
    for place in np.argsort(tiles.numbers).tolist():
        tile = place // tiles.copies
        coordinates = map(int, np.unravel_index(tile, tiles.parts)) if tiles.parts else ()
        index = tuple([
            slice(None) if parts == 1 else slice(part * (size // parts), (part + 1) * (size // parts))
            for size, parts, part in zip(shape, tiles.parts, coordinates, strict=True)
        ])
        copies[tile] = copies.get(tile, -1) + 1
        indices.append((index, copies[tile]))
    return tuple(indices)


@memoize(4096)
def _memory_kind(device: Any, kind: str | None) -> str | None:
    """Return the kind of memory, the device's default for None; ValueError if the device has no such memory."""
    if not hasattr(device, "default_memory"):
        return kind
    try:
        default: str = device.default_memory().kind
    except RuntimeError:
        # A device of a target that is not present has no memories to ask.
        return kind or "device"
    if kind is None or kind == default:
        return default
    kinds = [m.kind for m in device.addressable_memories()]
    if kind not in kinds:
        raise ValueError(
            f"{device} has no memory of kind {abbreviate(kind)}; it has {', '.join(kinds)}; "
            f"memory_kind=None is its default, {default}"
        )
    return kind


def unconstrained_dimensions(sharding: Sharding) -> frozenset[int]:
    """Return the dimensions that a sharding leaves to the compiler, with `UNCONSTRAINED`."""
    if not isinstance(sharding, NamedSharding):
        return frozenset()
    return frozenset([i for i, entry in enumerate(sharding.spec) if entry is UNCONSTRAINED])


def open_dimensions(sharding: NamedSharding, ndim: int) -> frozenset[int]:
    """Return the dimensions that the compiler may shard further: all if the mesh has axes of type Auto, else none."""
    return frozenset(range(ndim)) if sharding.mesh.auto_axes else frozenset()


def explicit_part(sharding: Sharding, ndim: int) -> NamedSharding | None:
    """Return the part of a sharding on explicit mesh axes, for an array's type; None if there are no such axes."""
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.explicit_axes:
        return None
    mesh = sharding.mesh.abstract_mesh
    kept = {n for n, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind is AxisType.Explicit}
    return NamedSharding(mesh, restrict_spec(sharding.spec, ndim, kept))


def insert_entry(sharding: NamedSharding, ndim: int, axis: int, entry: Any) -> NamedSharding:
    """Return the sharding of arrays of rank `ndim` with a further dimension at `axis`, with the given entry."""
    entries = list(full_entries(sharding.spec, ndim))
    entries.insert(axis, entry)
    return sharding.update(spec=sharding.spec.update(partitions=tuple(entries)))


@memoize(4096)
def sharding_with_tiles(mesh: Mesh, parts: tuple[int, ...], numbers: tuple[int, ...]) -> Sharding:
    """Return the sharding over the devices of `mesh` with the given tiles: a `NamedSharding` if there is one."""
    if math.prod(parts) == 1:
        return NamedSharding(mesh, PartitionSpec())
    tiles = Tiles(parts, numbers)
    # The tile of each device, as coordinates, in the mesh's grid.
    tile_of_device = np.argsort(tiles.numbers).reshape(mesh.axis_sizes) // tiles.copies
    coordinates = np.unravel_index(tile_of_device, tiles.parts)
    entries: list[Any] = []
    for dimension in coordinates:
        # A step along a mesh axis moves by its stride, if the axis splits the dimension.
        strides = [
            (int(np.take(dimension, 1, axis).flat[0] - dimension.flat[0]), name)
            for axis, (name, size) in enumerate(mesh.shape_tuple) if size > 1
        ]
        entries.append(tuple([name for stride, name in sorted(strides, key=lambda s: -s[0]) if stride > 0]))
    while entries and not entries[-1]:
        entries.pop()
    named = NamedSharding(mesh, PartitionSpec(*entries))
    return named if named.tiles(len(parts)) == tiles else TiledSharding(mesh.flat_devices, tiles)
