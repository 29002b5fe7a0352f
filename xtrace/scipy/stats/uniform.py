"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import exp, log
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@inline_jit(public=True)
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, loc, scale = promoted("uniform.logpdf", x, loc, scale)
    return choose((x < loc) | (x > loc + scale), -math.inf, -log(scale))


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
@with_strong_results
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, loc, scale = promoted("uniform.cdf", x, loc, scale)
    return choose(x < loc, 0.0, choose(x >= loc + scale, 1.0, (x - loc) / scale))


@inline_jit(public=True)
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to q."""
    q, loc, scale = promoted("uniform.ppf", q, loc, scale)
    return choose((q < 0) | (q > 1), math.nan, loc + q * scale)


_make_public(globals(), __all__)
