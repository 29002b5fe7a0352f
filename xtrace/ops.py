"""``jax.ops``: reductions of segments, which load on first touch."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.numpy.segments import (
        segment_max as segment_max, segment_min as segment_min, segment_prod as segment_prod,
        segment_sum as segment_sum,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.ops", {"xtrace.numpy.segments": ("segment_max", "segment_min", "segment_prod", "segment_sum")}
)
