"""Von Mises' distribution on the circle, of concentration `kappa`."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import cos, log
from xtrace.scipy.special.primitive import i0e
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["logpdf", "pdf"]

distribution = Distribution("vonmises", "0.5, 2.0", kappa="the concentration, positive.")


@distribution.defines("-0.9067055", strong=False)
def logpdf(x: RealLike, kappa: RealLike) -> Array:
    """Return the logarithm of the density."""
    return select_where(kappa > 0, kappa * (cos(x) - 1) - log(2 * math.pi * i0e(kappa)), math.nan)


pdf = distribution.exponential(logpdf, "0.40385252")


_make_public(globals(), __all__)
