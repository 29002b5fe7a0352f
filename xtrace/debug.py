"""Looking at values while compiled functions run, as ``jax.debug`` has it."""

from xtrace._src.core.effects import DebugEffect, OrderedDebugEffect
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.ops.host.breakpoints import breakpoint
from xtrace._src.ops.host.callbacks import debug_callback as callback
from xtrace._src.ops.host.debug_printing import debug_log as log
from xtrace._src.ops.host.debug_printing import debug_print as print

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "log", "print"]

_make_public(globals(), __all__)
