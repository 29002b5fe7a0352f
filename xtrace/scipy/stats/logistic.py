"""The logistic distribution."""

from __future__ import annotations

from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import exp, log, logaddexp
from xtrace.scipy.special.entropies import logit
from xtrace.scipy.special.primitive import expit, promoted, with_strong_results

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, loc, scale = promoted("logistic.logpdf", x, loc, scale)
    half = (x - loc) / scale / 2
    return -2 * logaddexp(half, -half) - log(scale)


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, loc, scale = promoted("logistic.cdf", x, loc, scale)
    return expit((x - loc) / scale)


@inline_jit(public=True)
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    x, loc, scale = promoted("logistic.sf", x, loc, scale)
    return expit((loc - x) / scale)


@inline_jit(public=True)
@with_strong_results
def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to x."""
    x, loc, scale = promoted("logistic.ppf", x, loc, scale)
    return loc + scale * logit(x)


@inline_jit(public=True)
@with_strong_results
def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `sf` maps to x."""
    x, loc, scale = promoted("logistic.isf", x, loc, scale)
    return loc - scale * logit(x)


_make_public(globals(), __all__)
