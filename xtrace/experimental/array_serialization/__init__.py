"""Arrays on disk: ``jax.experimental.array_serialization``, without TensorStore."""

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

if _typing.TYPE_CHECKING:
    from xtrace.experimental.array_serialization import serialization as serialization

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental.array_serialization", {}, submodules=("serialization",)
)
