"""Devices of other machines, and their meshes, for programs compiled ahead of time."""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

from xtrace._src.core.diagnostics.abbreviation import abbreviate as _abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.mesh import Mesh as _Mesh
from xtrace._src.xla import clients as _clients
from xtrace._src.xla.plugins import absent_devices as _targets

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """The devices of a machine, in the order of its network.

    Args:
        devices: the devices.

    Example:
        >>> from xtrace.experimental import topologies
        >>> len(topologies.TopologyDescription(xtrace.devices()[:1]).devices)
        1
    """

    __slots__ = ("devices",)

    def __init__(self, devices: list[_Any]) -> None:
        self.devices = devices


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: object) -> TopologyDescription:
    """Describe the devices of another machine, for compilation ahead of time.

    Args:
        topology_name: the chip and the sizes of its network, such as ``"v5e:4x4"`` for TPUs or ``"h200:8"`` for GPUs:
            a target of ``Lowered.compile``, with or without the prefix ``tpu-``.
        platform: ``"tpu"``, ``"cuda"`` or ``"gpu"``; None to infer it from `topology_name`.
        kwargs: other options of jax; none is supported.

    Returns:
        A `TopologyDescription`.

    Raises:
        ImportError: the compiler for the platform is not installed.
        NotImplementedError: the platform is the CPU, whose code is made for the machine that compiles it.
        TypeError: an option is given.
        ValueError: the chip or topology is unknown, or belongs to another platform.

    Example:
        >>> from xtrace.experimental import topologies
        >>> try: topologies.get_topology_desc("abacus:2x2")
        ... except ValueError as error: print(str(error)[:27])
        unknown target 'abacus:2x2'
    """
    if kwargs:
        raise TypeError(
            f"get_topology_desc: the options {sorted(kwargs)} are not supported; give the name of a topology, "
            "such as 'tpu-v5e:4x4'"
        )
    if platform == "cpu":
        raise NotImplementedError(
            "get_topology_desc: other CPUs cannot be described; compile for those of get_attached_topology('cpu')"
        )
    name = f"tpu-{topology_name}" if topology_name.lower().startswith("v") else topology_name
    actual = _targets.get_platform(name)
    if platform is not None and platform not in (actual, "gpu" if actual == "cuda" else actual):
        raise ValueError(
            f"get_topology_desc: {topology_name} is of the platform {actual}, not {_abbreviate(platform)}"
        )
    return TopologyDescription(list(_targets.compile_only_devices(name)))


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Describe the devices of this machine.

    Args:
        platform: ``"cpu"``, ``"gpu"`` or ``"tpu"``; None for the default one.

    Returns:
        A `TopologyDescription`.

    Raises:
        RuntimeError: there are no devices of the platform.

    Example:
        >>> from xtrace.experimental import topologies
        >>> topologies.get_attached_topology("cpu").devices == xtrace.devices("cpu")
        True
    """
    return TopologyDescription(list(_clients.devices(platform)))


def make_mesh(
    topo: TopologyDescription, mesh_shape: _Sequence[int], axis_names: tuple[str, ...], *,
    contiguous_submeshes: bool = False,
) -> _Mesh:
    """Return a mesh of all devices of a topology.

    Args:
        topo: the topology.
        mesh_shape: the size of each axis.
        axis_names: the name of each axis.
        contiguous_submeshes: not used; each slice of the mesh is a block of the network.

    Returns:
        A `Mesh` of Auto axes.

    Raises:
        ValueError: the product of the sizes is not the number of devices.

    Example:
        >>> from xtrace.experimental import topologies
        >>> topologies.make_mesh(topologies.TopologyDescription(xtrace.devices("cpu")[:1]), (1,), ("data",)).axis_names
        ('data',)
    """
    shape = tuple(mesh_shape)
    if int(_np.prod(shape)) != len(topo.devices):
        raise ValueError(
            f"make_mesh: the topology has {len(topo.devices)} devices, but a mesh of shape {shape} needs "
            f"{_np.prod(shape)}; give sizes whose product is the number of devices"
        )
    return _Mesh(_np.array([*topo.devices, None], object)[:-1].reshape(shape), axis_names)


_make_public(globals(), __all__)
