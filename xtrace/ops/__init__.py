"""The operations, one object each; of these, users see ``xtrace.ops.segment_sum`` and its relatives."""

from xtrace.core.late import late_names as _late_names

# JAX's public module of this name has no more than these, which are made of operations and load when asked for.
__all__, __getattr__, __dir__ = _late_names(
    "xtrace.ops", {"xtrace.numpy.segments": ("segment_max", "segment_min", "segment_prod", "segment_sum")}
)
