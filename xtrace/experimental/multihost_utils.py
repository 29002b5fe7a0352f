"""Exchange of data among the processes of a program (``jax.experimental.multihost_utils``)."""

from xtrace._src.api.multihost import (
    ProcessFailureError,
    assert_equal,
    broadcast_one_to_all,
    global_array_to_host_local_array,
    host_local_array_to_global_array,
    live_devices,
    process_allgather,
    reached_preemption_sync_point,
    sync_global_devices,
)
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "live_devices", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]

_make_public(globals(), __all__)
