"""The beta distribution of shapes `a` and `b`, on [loc, loc + scale]."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import clip, exp, log
from xtrace.scipy.special.entropies import xlog1py, xlogy
from xtrace.scipy.special.factorials import betaln
from xtrace.scipy.special.primitive import betainc, promoted, with_strong_results

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density; NaN unless a, b and scale are positive."""
    x, a, b, loc, scale = promoted("beta.logpdf", x, a, b, loc, scale)
    outside = (x < loc) | (x > loc + scale)
    # What is not used must have a finite derivative.
    z = choose(outside, 0.5, (x - loc) / scale)
    found = xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b) - log(scale)
    return choose((a <= 0) | (b <= 0) | (scale <= 0), math.nan, choose(outside, -math.inf, found))


@inline_jit(public=True)
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, a, b, loc, scale))


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, a, b, loc, scale = promoted("beta.cdf", x, a, b, loc, scale)
    return betainc(a, b, clip((x - loc) / scale, 0, 1))


@inline_jit(public=True)
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    return log(cdf(x, a, b, loc, scale))


@inline_jit(public=True)
@with_strong_results
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    x, a, b, loc, scale = promoted("beta.sf", x, a, b, loc, scale)
    return betainc(b, a, clip(1 - (x - loc) / scale, 0, 1))


@inline_jit(public=True)
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    return log(sf(x, a, b, loc, scale))


_make_public(globals(), __all__)
