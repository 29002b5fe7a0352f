"""Student's distribution of `df` degrees of freedom."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import abs, exp, log, log1p, square
from xtrace.scipy.special.primitive import gammaln, promoted, with_strong_results

__all__ = ["logpdf", "pdf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density, in which the sign of `scale` is without effect, as in JAX."""
    x, df, loc, scale = promoted("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    normal = gammaln((df + 1) / 2) - gammaln(df / 2) - (log(df) + math.log(math.pi)) / 2 - log(abs(scale))
    return normal - (df + 1) / 2 * log1p(square(z) / df)


@inline_jit(public=True)
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, df, loc, scale))


_make_public(globals(), __all__)
