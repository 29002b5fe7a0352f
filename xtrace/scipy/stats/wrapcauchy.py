"""Cauchy's distribution wrapped around the circle, of concentration `c` between 0 and 1."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import cos, exp, log
from xtrace.scipy.special.primitive import promoted

__all__ = ["logpdf", "pdf"]


@inline_jit(public=True)
def logpdf(x: Any, c: Any) -> Any:
    """The logarithm of the density on [0, 2 pi]; NaN unless 0 < c < 1."""
    x, c = promoted("wrapcauchy.logpdf", x, c)
    found = log(1 - c * c) - math.log(2 * math.pi) - log(1 + c * c - 2 * c * cos(x))
    return choose((c > 0) & (c < 1), choose((x >= 0) & (x <= 2 * math.pi), found, -math.inf), math.nan)


@inline_jit(public=True)
def pdf(x: Any, c: Any) -> Any:
    """The density."""
    c = promoted("wrapcauchy.pdf", x, c)[1]
    return choose((c > 0) & (c < 1), exp(logpdf(x, c)), math.nan)


_make_public(globals(), __all__)
