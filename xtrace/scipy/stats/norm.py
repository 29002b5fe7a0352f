"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.core import config, dtypes
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import abs, exp, log, square
from xtrace.scipy.special.normal import log_ndtr, ndtr, ndtri
from xtrace.scipy.special.primitive import promoted, with_strong_results

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@inline_jit(public=True)
@with_strong_results
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density, in which the sign of `scale` is without effect, as in JAX."""
    x, loc, scale = promoted("norm.logpdf", x, loc, scale)
    return -(square((x - loc) / scale) + math.log(2 * math.pi)) / 2 - log(abs(scale))


@inline_jit(public=True)
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


@inline_jit(public=True)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value up to x."""
    x, loc, scale = promoted("norm.cdf", x, loc, scale)
    return ndtr((x - loc) / scale)


@inline_jit(public=True)
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    x, loc, scale = promoted("norm.logcdf", x, loc, scale)
    return log_ndtr((x - loc) / scale)


@inline_jit(public=True)
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above x: 1 - cdf."""
    x, loc, scale = promoted("norm.sf", x, loc, scale)
    return ndtr((loc - x) / scale)


@inline_jit(public=True)
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    x, loc, scale = promoted("norm.logsf", x, loc, scale)
    return log_ndtr((loc - x) / scale)


def _of_default_dtype(x: Any) -> Any:
    return converted(x, dtypes.default_float(config.enable_x64.value))


@inline_jit(public=True)
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `cdf` maps to q, in the default floating dtype."""
    q, loc, scale = promoted("norm.ppf", q, loc, scale)
    return _of_default_dtype(ndtri(q) * scale + loc)


@inline_jit(public=True)
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that `sf` maps to q, in the default floating dtype."""
    q, loc, scale = promoted("norm.isf", q, loc, scale)
    return _of_default_dtype(loc - ndtri(q) * scale)


_make_public(globals(), __all__)
