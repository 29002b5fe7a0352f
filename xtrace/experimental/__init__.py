"""The modules of ``jax.experimental``; each loads at its first use."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace._src.core.high_types import cur_qdd as cur_qdd
    from xtrace._src.ops.host.callbacks import io_callback as io_callback
    from xtrace.experimental import (
        array_serialization as array_serialization,
        checkify as checkify, compute_on as compute_on, hijax as hijax, jet as jet, key_reuse as key_reuse,
        layout as layout, mesh_utils as mesh_utils, multihost_utils as multihost_utils, ode as ode,
        pjit as pjit, random as random, rnn as rnn, roofline as roofline,
        scheduling_groups as scheduling_groups, shard_map as shard_map, sparse as sparse,
        topologies as topologies, xla_metadata as xla_metadata,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental",
    {"xtrace._src.core.high_types": ("cur_qdd",), "xtrace._src.ops.host.callbacks": ("io_callback",)},
    submodules=(
        "array_serialization",
        "checkify", "compute_on", "hijax", "jet", "key_reuse", "layout", "mesh_utils", "multihost_utils",
        "ode", "pjit", "random", "rnn", "roofline", "scheduling_groups", "shard_map", "sparse", "topologies",
        "xla_metadata",
    ),
)
