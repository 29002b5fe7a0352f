"""Meshes of devices, and the placement of arrays on them (``jax.sharding``)."""

from xtrace._src.api.meshes.axis_types import auto_axes, explicit_axes
from xtrace._src.api.meshes.meshes import (
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    set_mesh,
    use_abstract_mesh,
)
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.manual_axis_type import ManualAxisType
from xtrace._src.core.shardings.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, SingleDeviceSharding
from xtrace._src.ops.shardings.sharding_constraints import reshard

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding", "PartitionSpec",
    "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh",
]

_make_public(globals(), __all__)
