"""Reductions of segments (``jax.ops``). They load at their first use."""
# ruff: noqa: I001

from xtrace._late_imports import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.numpy.reductions.segments import (
        segment_max as segment_max, segment_min as segment_min, segment_prod as segment_prod,
        segment_sum as segment_sum,
    )
