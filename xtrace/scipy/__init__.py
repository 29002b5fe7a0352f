"""SciPy's functions on xtrace arrays, as ``jax.scipy`` has them; each module loads when it is first asked for."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.scipy",
    {},
    submodules=("cluster", "fft", "integrate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"),
)
