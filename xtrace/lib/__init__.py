"""Room for the names of ``jax.lib``, which has none any more: those it had are in `xtrace.extend`."""

from xtrace._src.core.public_modules import make_public as _make_public

_make_public(globals(), [])
