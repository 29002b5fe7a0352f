"""The gamma distribution of shape `a`."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import exp, log
from xtrace.scipy.special.entropies import xlogy
from xtrace.scipy.special.primitive import gammainc, gammaincc, gammaln, promoted, with_strong_results

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, a, loc, scale = promoted("gamma.logpdf", x, a, loc, scale)
    below = x < loc
    # What is not used must have a finite derivative.
    z = choose(below, 1.0, (x - loc) / scale)
    return choose(below, -math.inf, xlogy(a - 1, z) - z - gammaln(a) - log(scale))


@inline_jit(public=True)
def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, a, loc, scale))


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, a, loc, scale = promoted("gamma.cdf", x, a, loc, scale)
    z = (x - loc) / scale
    return gammainc(a, choose(z < 0, 0.0, z))


@inline_jit(public=True)
def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    return log(cdf(x, a, loc, scale))


@inline_jit(public=True)
def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    x, a, loc, scale = promoted("gamma.sf", x, a, loc, scale)
    z = (x - loc) / scale
    return gammaincc(a, choose(z < 0, 0.0, z))


@inline_jit(public=True)
def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    return log(sf(x, a, loc, scale))


_make_public(globals(), __all__)
