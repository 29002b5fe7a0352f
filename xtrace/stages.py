"""The stages of ahead-of-time compilation, as ``jax.stages`` has them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from xtrace._src.api.stages import ArgInfo, Compiled, Lowered, Traced
from xtrace._src.core.late import make_public as _make_public

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """What `jit` returns: a function that can also be traced, and lowered, without calling it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled function."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function on arguments, or on ShapeDtypeStructs in their place."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace the function and write its StableHLO."""


_make_public(globals(), __all__)
