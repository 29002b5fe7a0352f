"""Arrays on disk: ``jax.experimental.array_serialization``, without TensorStore."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental.array_serialization", {}, submodules=("serialization",)
)
