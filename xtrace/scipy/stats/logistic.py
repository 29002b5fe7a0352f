"""The logistic distribution."""

from __future__ import annotations

from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.special_functions import logaddexp
from xtrace.numpy.elementwise.ufuncs import log
from xtrace.scipy.special.entropies import logit
from xtrace.scipy.special.primitive import expit
from xtrace.scipy.stats.distribution import Distribution, from_standard

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]

distribution = Distribution("logistic", "0.5")


@distribution.defines("-1.448154")
def logpdf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density."""
    half = (x - loc) / scale / 2
    return -2 * logaddexp(half, -half) - log(scale)


pdf = distribution.exponential(logpdf, "0.23500371")


cdf = distribution.standard("cdf", expit, "0.62245935", strong=False)
sf = distribution.standard("sf", expit, "0.37754068", strong=False, mirrored=True)


@distribution.defines("-1.0986123", "0.25")
def ppf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `cdf` maps to `x`."""
    return from_standard(logit(x), loc, scale)


@distribution.defines("1.0986123", "0.25")
def isf(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the value that `sf` maps to `x`."""
    return from_standard(logit(x), loc, scale, mirrored=True)


_make_public(globals(), __all__)
