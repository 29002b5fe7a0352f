"""The exponential distribution of mean `scale`, from `loc` on."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.nn.activations import log1mexp
from xtrace.numpy.ufuncs import exp, expm1, log, log1p
from xtrace.scipy.special.primitive import promoted

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@inline_jit(public=True)
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, loc, scale = promoted("expon.logpdf", x, loc, scale)
    return choose(x < loc, -math.inf, (loc - x) / scale - log(scale))


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, loc, scale = promoted("expon.cdf", x, loc, scale)
    return choose(x < loc, 0.0, -expm1((loc - x) / scale))


@inline_jit(public=True)
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    x, loc, scale = promoted("expon.logcdf", x, loc, scale)
    below = x <= loc
    # What is not used must have a finite derivative.
    return choose(below, -math.inf, log1mexp(choose(below, 1.0, (x - loc) / scale)))


@inline_jit(public=True)
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    x, loc, scale = promoted("expon.logsf", x, loc, scale)
    return choose(x < loc, 0.0, (loc - x) / scale)


@inline_jit(public=True)
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    return exp(logsf(x, loc, scale))


@inline_jit(public=True)
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to q."""
    q, loc, scale = promoted("expon.ppf", q, loc, scale)
    return choose((q < 0) | (q > 1), math.nan, loc - scale * log1p(-q))


_make_public(globals(), __all__)
