"""The chi-squared distribution of `df` degrees of freedom: a gamma distribution."""

from __future__ import annotations

from typing import Protocol

from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.stats import gamma
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

distribution = Distribution("chi2", "1.0, 3.0", df="the degrees of freedom.")


class _Function(Protocol):
    def __call__(self, x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array: ...


def _make_from_gamma(name: str, shown: str, strong: bool = True) -> _Function:
    """Make a function from its namesake for the gamma distribution, with shape df / 2 and twice the scale."""
    function: _Function = getattr(gamma, name)

    def formula(x: RealLike, df: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
        return function(x, df / 2, loc, 2 * scale)

    return distribution.function(name, formula, shown, strong=strong)


logpdf, pdf = _make_from_gamma("logpdf", "-1.4189389"), _make_from_gamma("pdf", "0.24197064", strong=False)
cdf, logcdf = _make_from_gamma("cdf", "0.19874799"), _make_from_gamma("logcdf", "-1.6157176")
sf, logsf = _make_from_gamma("sf", "0.801252"), _make_from_gamma("logsf", "-0.22157978")

_make_public(globals(), __all__)
