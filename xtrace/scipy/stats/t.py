"""Student's distribution of `df` degrees of freedom."""

from __future__ import annotations

import math

from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import abs, log, log1p, square
from xtrace.scipy.special.primitive import gammaln
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["logpdf", "pdf"]

distribution = Distribution("t", "0.5, 3.0", df="the degrees of freedom.")


@distribution.defines("-1.1609746")
def logpdf(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density. The sign of `scale` has no effect, as in JAX."""
    z = (x - loc) / scale
    normal = gammaln((df + 1) / 2) - gammaln(df / 2) - (log(df) + math.log(math.pi)) / 2 - log(abs(scale))
    return normal - (df + 1) / 2 * log1p(square(z) / df)


pdf = distribution.exponential(logpdf, "0.3131808")


_make_public(globals(), __all__)
