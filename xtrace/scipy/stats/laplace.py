"""Laplace's distribution: exponential on both sides of `loc`."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import abs, exp, log
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["cdf", "logpdf", "pdf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, loc, scale = promoted("laplace.logpdf", x, loc, scale)
    return -abs(x - loc) / scale - log(scale) - math.log(2)


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, loc, scale = promoted("laplace.cdf", x, loc, scale)
    distance = (x - loc) / scale
    below = distance <= 0
    half = 0.5 * exp(choose(below, distance, -distance))
    return choose(below, half, 1 - half)


_make_public(globals(), __all__)
