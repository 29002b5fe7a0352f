"""The functions of `xtrace.scipy.stats.norm`."""

from __future__ import annotations

import math

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.settings import config
from xtrace.numpy.elementwise.ufuncs import abs, log, square
from xtrace.scipy.special.normal import log_ndtr, ndtr, ndtri
from xtrace.scipy.stats.distribution import Distribution

distribution = Distribution("norm", "0.5")


@distribution.defines("-1.0439385")
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density. The sign of `scale` has no effect, as in JAX."""
    return -(square((x - loc) / scale) + math.log(2 * math.pi)) / 2 - log(abs(scale))


pdf = distribution.exponential(logpdf, "0.35206532")


cdf = distribution.standard("cdf", ndtr, "Array(0.69146246, dtype=float32)", strong=False)
logcdf = distribution.standard("logcdf", log_ndtr, "Array(-0.3689464, dtype=float32)", strong=False)
sf = distribution.standard("sf", ndtr, "Array(0.30853754, dtype=float32)", strong=False, mirrored=True)
logsf = distribution.standard("logsf", log_ndtr, "Array(-1.1759118, dtype=float32)", strong=False, mirrored=True)


def _to_default_dtype(x: RealLike) -> Array:
    return convert_to(x, dtypes.default_float(config.enable_x64.value))


@distribution.defines("Array(-0.6744898, dtype=float32)", "0.25", strong=False)
def ppf(q: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `q`, in the default floating dtype."""
    return _to_default_dtype(ndtri(q) * scale + loc)


@distribution.defines("Array(0.6744898, dtype=float32)", "0.25", strong=False)
def isf(q: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `sf` maps to `q`, in the default floating dtype."""
    return _to_default_dtype(loc - ndtri(q) * scale)
