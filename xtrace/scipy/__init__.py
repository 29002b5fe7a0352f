"""SciPy's functions on xtrace arrays, as ``jax.scipy`` has them; each module loads when it is first asked for."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.scipy import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal, sparse as sparse,
        spatial as spatial, special as special, stats as stats,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.scipy", {},
    submodules=(
        "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
        "special", "stats",
    ),
)
