"""Pareto's distribution with exponent `b`, from loc + scale on."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.nn.activations import log1mexp
from xtrace.numpy.ufuncs import exp, expm1, log, log1p
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, b, loc, scale = promoted("pareto.logpdf", x, b, loc, scale)
    below = x < loc + scale
    # What is not used must have a finite derivative.
    found = log(b) - log(scale) - (b + 1) * log(choose(below, 1.0, (x - loc) / scale))
    return choose(below, -math.inf, found)


@inline_jit(public=True)
def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, b, loc, scale))


def _logarithm_of_survival(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    below = x < loc + scale
    return choose(below, 0.0, -b * log(choose(below, 1.0, (x - loc) / scale)))


@inline_jit(public=True)
@with_strong_results
def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    return _logarithm_of_survival(*promoted("pareto.logsf", x, b, loc, scale))


@inline_jit(public=True)
def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    return exp(logsf(x, b, loc, scale))


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    return -expm1(logsf(x, b, loc, scale))


@inline_jit(public=True)
def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    return log1mexp(-_logarithm_of_survival(*promoted("pareto.logcdf", x, b, loc, scale)))


@inline_jit(public=True)
@with_strong_results
def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to q."""
    q, b, loc, scale = promoted("pareto.ppf", q, b, loc, scale)
    return choose((q < 0) | (q > 1), math.nan, loc + scale * exp(-log1p(-q) / b))


_make_public(globals(), __all__)
