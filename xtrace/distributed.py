"""Programs of several processes (``jax.distributed``)."""

from xtrace._src.api.processes.distributed import initialize, is_initialized, shutdown
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["initialize", "is_initialized", "shutdown"]

_make_public(globals(), __all__)
