"""The version of jaxlib (``jax.lib``); the other names that it had are in `xtrace.extend`."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.xla.jax_lib_names import version_str as version_str

__version__ = version_str

_make_public(globals(), [])
