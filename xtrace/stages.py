"""The stages of ahead-of-time compilation, as ``jax.stages`` has them."""

from xtrace.api.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced"]
