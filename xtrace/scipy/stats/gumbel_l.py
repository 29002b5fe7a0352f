"""Gumbel's distribution of smallest values."""

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
    x, loc, scale = promoted("gumbel_l.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return choose(scale > 0, z - exp(z) - log(scale), math.nan)


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    x, loc, scale = promoted("gumbel_l.logsf", x, loc, scale)
    return choose(scale > 0, -exp((x - loc) / scale), math.nan)


@inline_jit(public=True)
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    return exp(logsf(x, loc, scale))


@inline_jit(public=True)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    return -expm1(logsf(x, loc, scale))


@inline_jit(public=True)
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    return log1mexp(-logsf(x, loc, scale))


@inline_jit(public=True)
def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to p."""
    p, loc, scale = promoted("gumbel_l.ppf", p, loc, scale)
    return choose(scale > 0, loc + scale * log(-log1p(-p)), math.nan)


_make_public(globals(), __all__)
