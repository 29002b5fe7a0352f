"""``jax.ops``: reductions of segments, which load on first touch."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.ops", {"xtrace.numpy.segments": ("segment_max", "segment_min", "segment_prod", "segment_sum")}
)
