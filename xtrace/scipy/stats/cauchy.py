"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import arctan, exp, log, log1p, square, tan
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, loc, scale = promoted("cauchy.logpdf", x, loc, scale)
    return -math.log(math.pi) - log(scale) - log1p(square((x - loc) / scale))


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, loc, scale = promoted("cauchy.cdf", x, loc, scale)
    return 0.5 + arctan((x - loc) / scale) / math.pi


@inline_jit(public=True)
@with_strong_results
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    return log(cdf(x, loc, scale))


@inline_jit(public=True)
@with_strong_results
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    x, loc, scale = promoted("cauchy.sf", x, loc, scale)
    return 0.5 + arctan((loc - x) / scale) / math.pi


@inline_jit(public=True)
@with_strong_results
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    return log(sf(x, loc, scale))


@inline_jit(public=True)
@with_strong_results
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to q."""
    q, loc, scale = promoted("cauchy.ppf", q, loc, scale)
    return loc + scale * tan(math.pi * (q - 0.5))


@inline_jit(public=True)
@with_strong_results
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `sf` maps to q."""
    q, loc, scale = promoted("cauchy.isf", q, loc, scale)
    return loc + scale * tan(math.pi * (0.5 - q))


_make_public(globals(), __all__)
