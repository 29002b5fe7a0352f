"""Meshes: devices in a grid with named axes, and the mesh that is in force in a thread."""

from __future__ import annotations

import contextlib
import enum
import functools
import math
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings import config
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.core.shardings.axis_names import name_tuple
from xtrace._src.core.sizes import to_sizes
from xtrace._src.core.value_objects import Immutable


class AxisType(enum.Enum):
    """Who decides how arrays are split over a mesh axis.

    ``Auto``: the compiler. ``Explicit``: the types of arrays (`typeof`). ``Manual``: the program itself, which computes
    with the pieces inside of `shard_map`.

    Example:
        >>> xtrace.sharding.AxisType.Auto
        Auto
    """

    Auto, Explicit, Manual = range(1, 4)

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(NamedTuple):
    """The kind of device that a mesh without devices is for.

    Args:
        device_kind: the name of the model.
        num_cores: the number of cores, or None.
        platform: the name of the platform, or None.

    Example:
        >>> xtrace.sharding.AbstractDevice("cpu", None, "cpu").device_kind
        'cpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str | None = None

    def __repr__(self) -> str:
        return f"AbstractDevice({self._fields_shown()})"

    def _fields_shown(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


class PlannedDevice(NamedTuple):
    """A device that stands for one of an `AbstractMesh` while a program is lowered; nothing is compiled for it."""

    id: int
    platform: str


class BaseMesh(Immutable):
    """The names, sizes and types of a mesh's axes."""

    __slots__ = ("axis_names", "axis_sizes", "axis_types", "_hash", "__weakref__", "__dict__")

    _hash: int

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def __setattr__(self, name: str, value: object) -> None:
        # The hash is set last. Equal meshes are one object, so a change would affect every user of it.
        if hasattr(self, "_hash"):
            raise AttributeError(f"cannot assign to field {name!r}: meshes do not change; make another with update()")
        object.__setattr__(self, name, value)

    @functools.cached_property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """The axes as pairs of name and size."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @functools.cached_property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis, by name, in order."""
        return OrderedDict(self.shape_tuple)

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether the mesh has no devices; an abstract one, whether it has no axes."""
        return self.size == 0

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        raise NotImplementedError

    def update(self, **changes: Any) -> Any:
        """Return the mesh with some of its fields changed."""
        raise NotImplementedError

    def _select_axes(self, wanted: AxisType) -> tuple[Any, ...]:
        return tuple([n for n, kind in zip(self.axis_names, self.axis_types, strict=True) if kind is wanted])

    @functools.cached_property
    def auto_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Auto."""
        return self._select_axes(AxisType.Auto)

    @functools.cached_property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Explicit."""
        return self._select_axes(AxisType.Explicit)

    @functools.cached_property
    def manual_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Manual."""
        return self._select_axes(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether all axes are of type Auto."""
        return len(self.auto_axes) == len(self.axis_names)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether all axes are of type Explicit."""
        return len(self.explicit_axes) == len(self.axis_names)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether all axes are of type Manual."""
        return len(self.manual_axes) == len(self.axis_names)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other

    def _axes_shown(self) -> str:
        axes = "".join([f"{name!r}: {size}, " for name, size in self.shape_tuple])
        return f"{axes or '(), '}axis_types={self.axis_types}"


class AbstractMesh(BaseMesh):
    """The axes of a mesh without its devices, a part of the types of arrays; equal ones are one object.

    Args:
        axis_sizes: the size of each axis.
        axis_names: the name of each axis; a string is the name of the only one.
        axis_types: the `AxisType` of each axis, or one for all; None is Auto, and Explicit where
            ``xtrace_jax_version`` is 0.12.
        abstract_device: the kind of the devices, or None.

    Raises:
        TypeError: a type is no AxisType.
        ValueError: the numbers of sizes, names and types differ.

    Example:
        >>> xtrace.sharding.AbstractMesh((4, 2), ("data", "model")).shape_tuple
        (('data', 4), ('model', 2))
    """

    __slots__ = ("abstract_device",)

    abstract_device: AbstractDevice | None

    def __new__(
        cls, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None,
        *, abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        names = name_tuple("AbstractMesh", "axis_names", axis_names)
        sizes = size_tuple("AbstractMesh", "axis_sizes", axis_sizes)
        if len(names) != len(sizes):
            raise ValueError(
                f"AbstractMesh: axis_sizes and axis_names must have the same length, got {sizes} and {names}"
            )
        if axis_types is None and is_newer():
            axis_types = (AxisType.Explicit,) * len(names)
        types = _types("AbstractMesh", axis_types, names)
        if abstract_device is not None and not isinstance(abstract_device, AbstractDevice):
            raise TypeError(
                "AbstractMesh: abstract_device must be an xtrace.sharding.AbstractDevice, such as that of "
                f"mesh.abstract_mesh, or None, got {abbreviate(abstract_device)}"
            )
        key = (names, sizes, types, abstract_device)
        known = _abstract_meshes.get(key)
        if known is None:
            made = object.__new__(cls)
            made.axis_names, made.axis_sizes, made.axis_types, made.abstract_device = key[0], key[1], key[2], key[3]
            made._hash = hash(key)
            with _lock:
                known = _abstract_meshes.setdefault(key, made)
        return known

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, **changes: Any) -> AbstractMesh:
        """Return the mesh with `axis_sizes`, `axis_names`, `axis_types` or `abstract_device` changed."""
        fields = {
            "axis_sizes": self.axis_sizes, "axis_names": self.axis_names, "axis_types": self.axis_types,
            "abstract_device": self.abstract_device,
        }
        return AbstractMesh(**(fields | changes))

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """Return the mesh with the types of the named axes changed."""
        if not isinstance(name_to_type, Mapping):
            raise TypeError(
                "update_axis_types: name_to_type must be a dict such as {'x': xtrace.sharding.AxisType.Auto}, got "
                f"{abbreviate(name_to_type)}"
            )
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple([name_to_type.get(name, kind) for name, kind in pairs]))

    def _no_devices(self, name: str) -> Any:
        raise ValueError(
            f"AbstractMesh does not implement {name}: it describes axes only. Use a Mesh, such as from make_mesh"
        )

    devices = property(lambda self: self._no_devices("devices"), doc="An AbstractMesh has none: ValueError.")
    device_ids = property(lambda self: self._no_devices("device_ids"), doc="An AbstractMesh has none: ValueError.")
    local_devices = property(lambda self: self._no_devices("local_devices"), doc="ValueError: there are none.")
    local_mesh = property(lambda self: self._no_devices("local_mesh"), doc="ValueError: there are no devices.")
    is_multi_process = property(lambda self: self._no_devices("is_multi_process"), doc="ValueError: no devices.")

    def __repr__(self) -> str:
        device = f", {self.abstract_device._fields_shown()}" if self.abstract_device is not None else ""
        return f"AbstractMesh({self._axes_shown()}{device})"

    def __reduce__(self) -> Any:
        return _restore_abstract_mesh, (self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device)


def _restore_abstract_mesh(sizes: Any, names: Any, types: Any, device: AbstractDevice | None) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


class Mesh(BaseMesh):
    """Devices in a grid whose axes have names; equal meshes are one object.

    ``with mesh:`` makes the names known to `PartitionSpec`s in the block; `set_mesh` is the newer way.

    Args:
        devices: an array of devices, with an axis of the array for each name, or a sequence of devices.
        axis_names: the name of each axis; a string is the name of the only one.
        axis_types: the `AxisType` of each axis, or one for all; None is Auto.

    Raises:
        TypeError: a type is no AxisType, or an element of `devices` no device.
        ValueError: `devices` has another number of axes than there are names or types, or has a device twice.

    Example:
        >>> xtrace.sharding.Mesh(np.array(xtrace.devices()[:1]), ("x",))
        Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    __slots__ = ("devices", "flat_devices")

    devices: np.ndarray[Any, Any]
    # In the order in which programs number them: the last axis is the fastest.
    flat_devices: tuple[Any, ...]

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        grid = devices if isinstance(devices, np.ndarray) else device_grid("Mesh", devices)
        names = name_tuple("Mesh", "axis_names", axis_names)
        if any(n is None for n in names):
            raise ValueError(f"Mesh: axis names cannot be None; got {names}")
        if len(set(names)) < len(names):
            raise ValueError(f"Mesh: each axis needs a name of its own; got {names}, of which two are the same")
        if grid.ndim != len(names):
            raise ValueError(
                f"Mesh requires the ndim of its first argument (`devices`), of shape {grid.shape}, to equal the length "
                f"of its second argument (`axis_names`), {names}. xtrace.make_mesh(sizes, {names}) makes a grid of them"
            )
        types = _types("Mesh", axis_types, names)
        if not names and grid.item() is None:  # no axes and no device: the empty mesh
            grid = np.empty(0, object)
        key = (names, grid.shape, tuple(grid.flat), types)
        known = _meshes.get(key)
        if known is None:
            check_devices("Mesh", grid)
            made = object.__new__(cls)
            grid = grid.copy()
            grid.flags.writeable = False
            # A mesh of no devices has no axes.
            axes: Any = (names, grid.shape, types) if grid.size else ((), (), ())
            made.axis_names, made.axis_sizes, made.axis_types = axes
            made.devices, made.flat_devices, made._hash = grid, tuple(grid.flat), hash(key)
            with _lock:
                known = _meshes.setdefault(key, made)
        return known

    @property
    def size(self) -> int:
        """The number of devices; 1 for the grid of a device without axes."""
        return len(self.flat_devices)

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        if not self.axis_names:
            return EMPTY_ABSTRACT_MESH
        device, abstract = self.flat_devices[0], None
        if type(device) is not PlannedDevice:
            abstract = AbstractDevice(device.device_kind, getattr(device, "num_cores", None), device.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=abstract)

    def update(self, **changes: Any) -> Mesh:
        """Return the mesh with `devices`, `axis_names` or `axis_types` changed."""
        fields = {"devices": self.devices, "axis_names": self.axis_names, "axis_types": self.axis_types}
        return Mesh(**(fields | changes))

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The devices' numbers, as an array of the mesh's shape."""
        return np.array([d.id for d in self.flat_devices], np.int64).reshape(self.devices.shape)

    @functools.cached_property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self.flat_devices if d.process_index == d.client.process_index()]

    @property
    def is_multi_process(self) -> bool:
        """Whether devices of other processes are in the mesh."""
        return len(self.local_devices) != len(self.flat_devices)

    @functools.cached_property
    def local_mesh(self) -> Mesh:
        """The part of the mesh on the devices of this process; ValueError if that is no grid."""
        if self.empty or not self.is_multi_process:
            return self
        local = set(self.local_devices)
        inside = np.array([d in local for d in self.flat_devices]).reshape(self.devices.shape)
        places = np.argwhere(inside)
        block = tuple([slice(low, high + 1) for low, high in zip(places.min(0), places.max(0), strict=True)])
        if not inside[block].all():
            raise ValueError(f"local_mesh: the devices of this process are no block of {self}; there is no local mesh")
        return Mesh(self.devices[block], self.axis_names, self.axis_types)

    @property
    def is_scalar(self) -> bool:
        """Whether the mesh is one device without axes."""
        return not self.devices.ndim and self.devices.size == 1

    def __enter__(self) -> Mesh:
        warnings.warn(
            "`with mesh:` has been deprecated; write `with xtrace.set_mesh(mesh):`", DeprecationWarning, stacklevel=2
        )
        vars(_entered).setdefault("contexts", []).append(config.naming_mesh.enter(self))
        return self

    def __exit__(self, *_: object) -> None:
        config.naming_mesh.leave(_entered.contexts.pop())

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}, axis_types={self.axis_types})"

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._axes_shown()})"

    def __reduce__(self) -> Any:
        raise TypeError("a mesh has devices of this process and cannot be pickled; pickle mesh.abstract_mesh")


def size_tuple(function: str, argument: str, sizes: Any) -> tuple[int, ...]:
    """Return sizes, which may be symbolic, as a tuple; TypeError for no sequence of integers."""
    try:
        return to_sizes(sizes)
    except TypeError:
        raise TypeError(f"{function}: {argument} must be a sequence of integers, got {abbreviate(sizes)}") from None


def device_grid(function: str, devices: object) -> np.ndarray[Any, Any]:
    """Return nested sequences of devices as an array; TypeError for other objects, and for rows of unequal length."""
    try:
        return np.array(devices)
    except (TypeError, ValueError):
        raise TypeError(
            f"{function}: devices must be an array or a sequence of devices, such as xtrace.devices(), got "
            f"{abbreviate(devices)}"
        ) from None


def check_devices(function: str, grid: np.ndarray[Any, Any]) -> None:
    """Raise TypeError for an element that is no device, and ValueError for a device that occurs twice."""
    seen: dict[Any, tuple[int, ...]] = {}
    for place, device in np.ndenumerate(grid):
        if not hasattr(device, "platform"):
            raise TypeError(
                f"{function}: devices must be devices such as those of xtrace.devices(), got {abbreviate(device)}; "
                "for all of them write xtrace.make_mesh(sizes, axis_names)"
            )
        if device in seen:
            raise ValueError(
                f"{function}: {device} is at {seen[device]} and at {place} of devices; give each device once, as "
                "xtrace.make_mesh does"
            )
        seen[device] = place


def _types(function: str, axis_types: Any, names: tuple[Any, ...]) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    try:
        types = (axis_types,) if isinstance(axis_types, AxisType) else tuple(axis_types)
    except TypeError:
        types = (axis_types,)
    for kind in types:
        if not isinstance(kind, AxisType):
            raise TypeError(
                f"axis_types passed to {function} must be of type `xtrace.sharding.AxisType`. Got {abbreviate(kind)}; "
                "write xtrace.sharding.AxisType.Auto, .Explicit or .Manual for each axis"
            )
    if len(types) != len(names):
        raise ValueError(
            f"{function}: Number of axis names should match the number of axis_types, got {types} for {names}; give a "
            "type for each axis name"
        )
    return types


_abstract_meshes: WeakValueDictionary[Any, AbstractMesh] = WeakValueDictionary()
_meshes: WeakValueDictionary[Any, Mesh] = WeakValueDictionary()
# Meshes compare by identity: two threads that make the same one must get one object.
_lock = threading.Lock()
EMPTY_ABSTRACT_MESH = AbstractMesh((), ())
EMPTY_MESH = Mesh(np.empty(0, object), ("",))
# For each thread, the tokens of its ``with mesh:`` blocks, innermost last.
_entered: threading.local = threading.local()


def context_mesh() -> Mesh:
    """Return the mesh of `set_mesh` in this thread, or the empty mesh."""
    return config.mesh.value or EMPTY_MESH


def context_abstract_mesh() -> AbstractMesh:
    """Return the abstract mesh in force in this thread, from `use_abstract_mesh` or `set_mesh`."""
    return config.abstract_mesh.value or EMPTY_ABSTRACT_MESH


@contextlib.contextmanager
def override_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """Put an abstract mesh in force for the block, in this thread."""
    outer = config.abstract_mesh.enter(mesh)
    try:
        yield
    finally:
        config.abstract_mesh.leave(outer)


class _ResourceEnv:
    """The mesh that ``with mesh:`` has put in force, under JAX's names."""

    @property
    def env(self) -> _ResourceEnv:
        """The environment: this object."""
        return self

    @property
    def physical_mesh(self) -> BaseMesh:
        """The mesh; the empty mesh if there is none."""
        return config.naming_mesh.value or EMPTY_MESH


thread_resources = _ResourceEnv()


def naming_mesh(entered: bool = True) -> BaseMesh:
    """Return the mesh for a `PartitionSpec` that is given without one; the empty mesh if none is in force.

    entered: whether the mesh of ``with mesh:`` counts.
    """
    mesh, axes = context_mesh(), context_abstract_mesh()
    if not mesh.empty:
        # Functions such as `shard_map` change the types of the axes for their bodies, and `use_abstract_mesh` the axes.
        if axes.shape_tuple == mesh.shape_tuple:
            return mesh if axes.axis_types == mesh.axis_types else mesh.update(axis_types=axes.axis_types)
        if not axes.empty and axes.size == mesh.size:
            return Mesh(mesh.devices.reshape(axes.axis_sizes), axes.axis_names, axes.axis_types)
        return mesh
    return (config.naming_mesh.value if entered else None) or context_abstract_mesh()
