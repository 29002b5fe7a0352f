"""Memory layouts of arrays (``jax.experimental.layout``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.ops.shardings.layout_constraints import with_layout_constraint

__all__ = ["Format", "Layout", "with_layout_constraint"]

_make_public(globals(), __all__)
