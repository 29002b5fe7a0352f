"""What ``jax.experimental`` has besides the stable modules; each module loads when it is first asked for."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace._src.ops.host.callbacks import io_callback as io_callback
    from xtrace.experimental import (
        checkify as checkify, layout as layout, mesh_utils as mesh_utils, multihost_utils as multihost_utils,
        ode as ode, pjit as pjit, shard_map as shard_map, topologies as topologies,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental", {"xtrace._src.ops.host.callbacks": ("io_callback",)},
    submodules=("checkify", "layout", "mesh_utils", "multihost_utils", "ode", "pjit", "shard_map", "topologies"),
)
