"""Programs of several processes, as ``jax.distributed`` has them."""

from xtrace._src.api.distributed import initialize, is_initialized, shutdown
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["initialize", "is_initialized", "shutdown"]

_make_public(globals(), __all__)
