"""Von Mises' distribution on the circle, of concentration `kappa`."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import cos, exp, log
from xtrace.scipy.special.primitive import i0e, promoted

__all__ = ["logpdf", "pdf"]


@inline_jit(public=True)
def logpdf(x: Any, kappa: Any) -> Any:
    """The logarithm of the density."""
    x, kappa = promoted("vonmises.logpdf", x, kappa)
    return choose(kappa > 0, kappa * (cos(x) - 1) - log(2 * math.pi * i0e(kappa)), math.nan)


@inline_jit(public=True)
def pdf(x: Any, kappa: Any) -> Any:
    """The density."""
    return exp(logpdf(x, kappa))


_make_public(globals(), __all__)
