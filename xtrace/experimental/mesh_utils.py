"""Arrays of devices in the order of the machine's network (``jax.experimental.mesh_utils``)."""

from xtrace._src.api.meshes.device_meshes import create_device_mesh, create_hybrid_device_mesh
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

_make_public(globals(), __all__)
