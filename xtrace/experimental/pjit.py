"""The older name of ``jit`` in programs on meshes (``jax.experimental.pjit``)."""

from xtrace._src.api.jit.pjit import pjit
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["pjit"]

_make_public(globals(), __all__)
