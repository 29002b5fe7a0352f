"""Experimental modules (``jax.experimental``); each loads at its first use."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.core.high_types.high_types import cur_qdd as cur_qdd
    from xtrace._src.ops.extended_arrays import EArray as EArray, primal_tangent_dtype as primal_tangent_dtype
    from xtrace._src.ops.host.callbacks import io_callback as io_callback
    from xtrace.experimental import (
        array_serialization as array_serialization,
        checkify as checkify, compilation_cache as compilation_cache,
        compute_on as compute_on, hijax as hijax, jet as jet, key_reuse as key_reuse,
        layout as layout, mesh_utils as mesh_utils, multihost_utils as multihost_utils, ode as ode,
        pjit as pjit, random as random, rnn as rnn, roofline as roofline,
        scheduling_groups as scheduling_groups, serialize_executable as serialize_executable, shard_map as shard_map,
        sparse as sparse,
        topologies as topologies, xla_metadata as xla_metadata,
    )
