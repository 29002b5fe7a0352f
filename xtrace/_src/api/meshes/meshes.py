"""Meshes: `make_mesh`, and the contexts that put a mesh in force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.api.meshes.device_meshes import create_device_mesh
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.axis_names import name_tuple
from xtrace._src.core.shardings.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    check_devices,
    context_abstract_mesh,
    context_mesh,
    device_grid,
)
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.arrays import single_device_sharding
from xtrace._src.xla import clients
from xtrace._src.xla.clients import Device

with late_modules(globals()):
    from xtrace._src.xla.plugins import absent_devices as target_machines


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None, *,
    devices: Sequence[Any] | None = None, target: str | None = None,
) -> Mesh:
    """Return a mesh of devices; neighbours in the mesh are neighbours in the machine.

    On TPUs the last axis has the fastest links, as with `xtrace.experimental.mesh_utils.create_device_mesh`.

    Args:
        axis_shapes: the size of each axis.
        axis_names: the name of each axis; a string is the name of the only axis.
        axis_types: the `AxisType` of each axis, or one for all; None is Explicit.
        devices: the devices; None for the first ones of `xtrace.devices`.
        target: a machine that provides the devices and need not be present: one of `xtrace.targets`, alone or with the
            sizes of its network, such as ``"tpu-v5e:4x4"`` or ``"h200:8"``. Programs on such a mesh can be compiled but
            not run.

    Returns:
        A `Mesh`.

    Raises:
        ImportError: the compiler for the target is not installed.
        TypeError: `axis_shapes` is no sequence of integers, a type is no AxisType, or both devices and a target are
            given.
        ValueError: there is no such target, there are fewer devices than the mesh has places, or sizes and names differ
            in number.

    Example:
        >>> xtrace.make_mesh((1, 1), ("data", "model"))
        Mesh(axis_sizes=(1, 1), axis_names=('data', 'model'), axis_types=(Explicit, Explicit))
    """
    if isinstance(axis_shapes, int):
        raise TypeError(
            f"make_mesh: axis_shapes must be a sequence of integers, got {axis_shapes}; write ({axis_shapes},)"
        )
    shape = integer_tuple("axis_shapes", axis_shapes)
    names = name_tuple("make_mesh", "axis_names", axis_names)
    if len(names) != len(shape):
        raise ValueError(
            "make_mesh: Mesh requires the ndim of its devices to equal the length of `axis_names`: a name for each "
            f"axis, got {names} for the sizes {shape}"
        )
    if target is not None and devices is not None:
        raise TypeError("make_mesh: target says the devices; leave out devices, or target")
    if target is not None:
        given = list(target_machines.compile_only_devices(target))
    else:
        given = clients.devices() if devices is None else list(device_grid("make_mesh", devices).ravel())
    check_devices("make_mesh", np.array([*given, None], object)[:-1])
    wanted = math.prod(shape)
    if min(shape, default=1) < 1:
        raise ValueError(f"make_mesh: axis_shapes must be positive, got {shape}; there are {len(given)} devices")
    if wanted > len(given):
        raise ValueError(
            f"make_mesh: Number of devices {len(given)} must be >= the product of mesh_shape {shape}, {wanted}. "
            f"To try a program on the CPU, start it with XTRACE_NUM_CPU_DEVICES={wanted}"
        )
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(create_device_mesh(shape, given[:wanted], allow_split_physical_axes=True), names, types)


def targets() -> tuple[str, ...]:
    """Return the names of the machines for which programs can be compiled without such a machine.

    A name stands for a chip. After a colon it may have the sizes of a network, as in ``"tpu-v5e:4x4"``, or the number
    of GPUs, as in ``"h200:8"``. `make_mesh`, ``Lowered.compile`` and ``python -m xtrace inspect`` take these names.

    Returns:
        A tuple of strings.

    Example:
        >>> xtrace.targets()
        ('a100', 'h100', 'h200', 'tpu-v4', 'tpu-v5e', 'tpu-v5p', 'tpu-v6e')
    """
    return target_machines.TARGETS


class set_mesh:
    """Put a mesh in force: for a block with ``with set_mesh(mesh):``, otherwise for the rest of the thread.

    A `PartitionSpec` then refers to this mesh, and a program whose arguments are on no mesh runs on its devices.

    Args:
        mesh: a `Mesh`; None for no mesh.

    Raises:
        ValueError: `mesh` is no mesh, or a function is being traced.

    Example:
        >>> with xtrace.set_mesh(xtrace.make_mesh((1,), ("x",))):
        ...     xtrace.device_put(np.arange(2), xtrace.P("x")).sharding.spec
        P('x',)
    """

    __slots__ = ("prev_mesh", "prev_abstract_mesh", "_outer")

    @boundary
    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(
                "set_mesh: Expected mesh of type `xtrace.sharding.Mesh`, such as make_mesh returns. Got "
                f"{abbreviate(mesh)}"
            )
        if current_trace.get() is not base_trace:
            raise ValueError(
                "set_mesh: a function is being traced, whose mesh is in force already. Call set_mesh outside of it, or "
                "use xtrace.sharding.use_abstract_mesh"
            )
        self.prev_mesh, self.prev_abstract_mesh = context_mesh(), context_abstract_mesh()
        given = None if mesh is None or mesh.empty else mesh
        axes = given.abstract_mesh if given is not None else None
        self._outer = [config.mesh.enter(given), config.abstract_mesh.enter(axes)]

    def __enter__(self) -> Mesh:
        return self.prev_mesh

    def __exit__(self, *_: object) -> None:
        config.abstract_mesh.leave(self._outer.pop())
        config.mesh.leave(self._outer.pop())


class use_abstract_mesh:
    """Put the axes of a mesh in force for a block of code; a traced function may change their types with it.

    Args:
        mesh: an `AbstractMesh`.

    Raises:
        ValueError: `mesh` is no AbstractMesh.

    Example:
        >>> with xtrace.sharding.use_abstract_mesh(xtrace.sharding.AbstractMesh((2,), ("x",))):
        ...     xtrace.sharding.get_abstract_mesh().axis_names
        ('x',)
    """

    __slots__ = ("mesh", "prev", "_outer")

    @boundary
    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                "use_abstract_mesh: Expected mesh of type `xtrace.sharding.AbstractMesh`, such as mesh.abstract_mesh. "
                f"Got {abbreviate(mesh)}"
            )
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self.prev = context_abstract_mesh()
        self._outer = config.abstract_mesh.enter(self.mesh)
        return self.mesh

    def __exit__(self, *_: object) -> None:
        config.abstract_mesh.leave(self._outer)


def get_mesh() -> Mesh:
    """Return the mesh of `set_mesh`, or an empty mesh.

    Returns:
        A `Mesh`.

    Raises:
        ValueError: a function is being traced; use `get_abstract_mesh`, which returns the axes.

    Example:
        >>> xtrace.sharding.get_mesh().empty
        True
    """
    if current_trace.get() is not base_trace:
        raise ValueError("get_mesh: a function is being traced; xtrace.sharding.get_abstract_mesh() returns the axes")
    return context_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """Return the axes of the mesh in force, or of an empty mesh.

    Returns:
        An `AbstractMesh`.

    Example:
        >>> xtrace.sharding.get_abstract_mesh()
        AbstractMesh((), axis_types=())
    """
    return context_abstract_mesh()


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> Any:
    """Return the sharding of an array on one device.

    Args:
        device: the device.
        memory_kind: the kind of the device's memory, such as ``"pinned_host"``; None for its default.

    Returns:
        A `SingleDeviceSharding`.

    Raises:
        ValueError: the device has no memory of the kind.

    Example:
        >>> xtrace.sharding.make_single_device_sharding(xtrace.devices("cpu")[0]).num_devices
        1
    """
    return single_device_sharding(device, memory_kind)
