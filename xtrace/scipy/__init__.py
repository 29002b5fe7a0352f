"""SciPy's functions on xtrace arrays, named as in ``jax.scipy``; each module loads at its first use."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.scipy import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal, sparse as sparse,
        spatial as spatial, special as special, stats as stats,
    )
