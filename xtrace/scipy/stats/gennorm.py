"""The generalized normal distribution of exponent `beta`."""

from __future__ import annotations

from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import abs, log, sign
from xtrace.scipy.special.primitive import gammainc, gammaln
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logpdf", "pdf"]

distribution = Distribution("gennorm", "0.5, 1.5", beta="the exponent in the density, positive.")


@distribution.defines("-0.9443866", strong=False)
def logpdf(x: RealLike, beta: RealLike) -> Array:
    """Return the logarithm of the density."""
    return log(beta / 2) - gammaln(1 / beta) - abs(x) ** beta


pdf = distribution.exponential(logpdf, "0.38891804")


@distribution.defines("0.74174917", strong=False)
def cdf(x: RealLike, beta: RealLike) -> Array:
    """Return the probability of a value up to `x`."""
    return (1 + sign(x) * gammainc(1 / beta, abs(x) ** beta)) / 2


_make_public(globals(), __all__)
