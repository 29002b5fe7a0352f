"""The stages of ahead-of-time compilation (``jax.stages``)."""

from __future__ import annotations

from xtrace._src.api.jit.jitted_type import Wrapped
from xtrace._src.api.jit.stages import ArgInfo, Compiled, Lowered, Traced
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, str | bool]

_make_public(globals(), __all__)
