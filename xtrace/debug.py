"""Inspection of values while compiled functions run (``jax.debug``)."""

from xtrace._src.core.jaxprs.effects import DebugEffect, OrderedDebugEffect
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.host.breakpoints import breakpoint
from xtrace._src.ops.host.callbacks import debug_callback as callback
from xtrace._src.ops.host.debug_printing import debug_log as log
from xtrace._src.ops.host.debug_printing import debug_print as print
from xtrace._src.ops.shardings.sharding_inspection import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log", "print",
    "visualize_array_sharding", "visualize_sharding",
]

_make_public(globals(), __all__)
