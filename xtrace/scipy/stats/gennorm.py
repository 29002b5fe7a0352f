"""The generalized normal distribution of exponent `beta`."""

from __future__ import annotations

from typing import Any

from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import abs, exp, log, sign
from xtrace.scipy.special.primitive import gammainc, gammaln, promoted

__all__ = ["cdf", "logpdf", "pdf"]


@inline_jit(public=True)
def logpdf(x: Any, beta: Any) -> Any:
    """The logarithm of the density."""
    x, beta = promoted("gennorm.logpdf", x, beta)
    return log(beta / 2) - gammaln(1 / beta) - abs(x) ** beta


@inline_jit(public=True)
def pdf(x: Any, beta: Any) -> Any:
    """The density."""
    return exp(logpdf(x, beta))


@inline_jit(public=True)
def cdf(x: Any, beta: Any) -> Any:
    """The probability of a value up to x."""
    x, beta = promoted("gennorm.cdf", x, beta)
    return (1 + sign(x) * gammainc(1 / beta, abs(x) ** beta)) / 2


_make_public(globals(), __all__)
