"""The version of this package (``jax.version``)."""

from xtrace._src.core.public_modules import make_public as _make_public

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)

_make_public(globals(), [])
