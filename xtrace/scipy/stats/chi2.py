"""The chi-squared distribution of `df` degrees of freedom: a gamma distribution."""

from __future__ import annotations

from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core.late import make_public as _make_public
from xtrace.scipy.special.primitive import promoted, with_strong_results
from xtrace.scipy.stats import gamma

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, df, loc, scale = promoted("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@inline_jit(public=True)
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    x, df, loc, scale = promoted("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, df, loc, scale = promoted("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@inline_jit(public=True)
@with_strong_results
def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    x, df, loc, scale = promoted("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@inline_jit(public=True)
@with_strong_results
def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    x, df, loc, scale = promoted("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


@inline_jit(public=True)
@with_strong_results
def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    x, df, loc, scale = promoted("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)


_make_public(globals(), __all__)
