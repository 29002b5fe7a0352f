"""The normal distribution of mean `loc` and deviation `scale`, cut off `a` and `b` deviations from the mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core import dtypes
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.ufuncs import abs, exp, log, log1p, square
from xtrace.scipy.special.normal import log_ndtr, ndtr
from xtrace.scipy.special.primitive import promoted

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _parameters(function: str, *values: Any) -> list[Any]:
    ready = promoted(f"truncnorm.{function}", *values)
    dtype = ready[0].dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            f"truncnorm.{function}: dtype {dtype.name} is not supported; convert the arguments to float32 or float64"
        )
    return [converted(x, dtype) for x in ready]


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal distribution's mass between `a` and `b`, a < b, exact in both tails."""
    central, right = (a <= 0) & (b > 0), a > 0
    # What is on one side is, by symmetry, on the left. What is not used must have a finite derivative.
    low = choose(central, -2.0, choose(right, -b, a))
    high = log_ndtr(choose(central, -1.0, choose(right, -a, b)))
    aside = high + log1p(-exp(log_ndtr(low) - high))
    middle = log1p(-ndtr(choose(central, a, -1.0)) - ndtr(choose(central, -b, -1.0)))
    return choose(central, middle, aside)


def _log_density(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    found = -(square(z) + math.log(2 * math.pi)) / 2 - log(abs(scale)) - _log_mass(a, b)
    return choose((z < a) | (z > b), -math.inf, found)


def _log_below(z: Any, a: Any, b: Any) -> Any:
    """Return the logarithm of the part of the mass between `a` and `b` that is below `z`."""
    total = _log_mass(a, b)
    outside = (z <= a) | (z >= b)
    # What is not used must have a finite derivative.
    inner = choose(outside, choose((a <= 0) & (b > 0), 0.0, choose(a > 0, a, b)), z)
    below = _log_mass(choose(outside, inner - 1, a), inner) - total
    # Of what is nearly all, the rest is known better.
    most = (below > -0.1) & ~outside
    rest = _log_mass(choose(most, inner, 0.0), choose(most, b, 1.0)) - choose(most, total, 0.0)
    found = choose(most, log1p(-exp(rest)), below)
    return choose(z <= a, -math.inf, choose(z >= b, 0.0, found))


def _function(name: str, contract: str, logarithm: Callable[..., Any], exponential: bool = False) -> Any:
    """Return the function called `name` of the distribution, whose `logarithm` is given for a < b."""

    @inline_jit
    def program(*values: Any) -> Any:
        ready = _parameters(name, *values)
        found = logarithm(*ready)
        # Last of all: of the exponential of a constant NaN, XLA's CPU compiler makes whatever is in the memory.
        return choose(ready[1] < ready[2], exp(found) if exponential else found, math.nan)

    def function(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return program(x, a, b, loc, scale)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"{contract}; NaN unless a < b. TypeError for other dtypes than float32 and float64."
    return inline_jit(function, public=True)


def _log_cdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    return _log_below((x - loc) / scale, a, b)


def _log_sf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    return _log_below((loc - x) / scale, -b, -a)


logpdf = _function("logpdf", "The logarithm of the density", _log_density)
pdf = _function("pdf", "The density", _log_density, True)
logcdf = _function("logcdf", "The logarithm of `cdf`, exact near both ends", _log_cdf)
cdf = _function("cdf", "The probability of a value up to x", _log_cdf, True)
logsf = _function("logsf", "The logarithm of `sf`, exact near both ends", _log_sf)
sf = _function("sf", "The probability of a value above x: 1 - cdf", _log_sf, True)


_make_public(globals(), __all__)
