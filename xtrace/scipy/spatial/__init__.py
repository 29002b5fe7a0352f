"""Geometry (``jax.scipy.spatial``); each module loads at its first use."""

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.scipy.spatial import transform as transform
