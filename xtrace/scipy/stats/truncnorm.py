"""The normal distribution of mean `loc` and deviation `scale`, truncated at `a` and `b` deviations from the mean."""

from __future__ import annotations

import math

from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.elementwise.ufuncs import abs, exp, log, log1p, square
from xtrace.scipy.special.normal import log_ndtr, ndtr
from xtrace.scipy.stats.distribution import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

distribution = Distribution(
    "truncnorm", "0.5, -1.0, 2.0", a="the lower end, in deviations from `loc`.",
    b="the upper end, in deviations from `loc`.",
)


def _log_mass(a: RealLike, b: RealLike) -> Array:
    """Return the logarithm of the normal distribution's mass between `a` and `b`, a < b, exact in both tails."""
    central, right = (a <= 0) & (b > 0), a > 0
    # An interval on the right is mirrored to the left. The unselected branch must have a finite derivative.
    low = select_where(central, -2.0, select_where(right, -b, a))
    high = log_ndtr(select_where(central, -1.0, select_where(right, -a, b)))
    aside = high + log1p(-exp(log_ndtr(low) - high))
    middle = log1p(-ndtr(select_where(central, a, -1.0)) - ndtr(select_where(central, -b, -1.0)))
    return select_where(central, middle, aside)


def _log_density(x: RealLike, a: RealLike, b: RealLike, loc: RealLike, scale: RealLike) -> Array:
    z = (x - loc) / scale
    logarithm = -(square(z) + math.log(2 * math.pi)) / 2 - log(abs(scale)) - _log_mass(a, b)
    return select_where((z < a) | (z > b), -math.inf, logarithm)


def _log_below(z: RealLike, a: RealLike, b: RealLike) -> Array:
    """Return the logarithm of the fraction of the mass between `a` and `b` that lies below `z`."""
    total = _log_mass(a, b)
    outside = (z <= a) | (z >= b)
    # The unselected branch must have a finite derivative.
    inner = select_where(outside, select_where((a <= 0) & (b > 0), 0.0, select_where(a > 0, a, b)), z)
    below = _log_mass(select_where(outside, inner - 1, a), inner) - total
    # Where the fraction is nearly 1, compute it from the mass above `z`, which is more accurate.
    most = (below > -0.1) & ~outside
    rest = _log_mass(select_where(most, inner, 0.0), select_where(most, b, 1.0)) - select_where(most, total, 0.0)
    logarithm = select_where(most, log1p(-exp(rest)), below)
    return select_where(z <= a, -math.inf, select_where(z >= b, 0.0, logarithm))


def _where_ordered(a: RealLike, b: RealLike, value: RealLike) -> Array:
    """Return `value` where a < b, and NaN elsewhere."""
    dtype = aval_of(a).dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            f"{called_function()}: dtype {dtype.name} is not supported; convert the arguments to float32 or float64"
        )
    # NaN is selected last: XLA's CPU compiler turns the exponential of a constant NaN into arbitrary memory.
    return select_where(a < b, value, math.nan)


@distribution.defines("Array(-0.8437722, dtype=float32)")
def logpdf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of the density, NaN unless a < b."""
    return _where_ordered(a, b, _log_density(x, a, b, loc, scale))


@distribution.defines("Array(0.43008512, dtype=float32)")
def pdf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the density, NaN unless a < b."""
    return _where_ordered(a, b, exp(_log_density(x, a, b, loc, scale)))


@distribution.defines("Array(-0.42942935, dtype=float32)")
def logcdf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `cdf`, exact near both ends, NaN unless a < b."""
    return _where_ordered(a, b, _log_below((x - loc) / scale, a, b))


@distribution.defines("Array(0.6508804, dtype=float32)")
def cdf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value up to `x`, NaN unless a < b."""
    return _where_ordered(a, b, exp(_log_below((x - loc) / scale, a, b)))


@distribution.defines("Array(-1.0523407, dtype=float32)")
def logsf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the logarithm of `sf`, exact near both ends, NaN unless a < b."""
    return _where_ordered(a, b, _log_below((loc - x) / scale, -b, -a))


@distribution.defines("Array(0.3491196, dtype=float32)")
def sf(x: RealLike, a: RealLike, b: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
    """Return the probability of a value above `x`, 1 - `cdf`, NaN unless a < b."""
    return _where_ordered(a, b, exp(_log_below((loc - x) / scale, -b, -a)))


_make_public(globals(), __all__)
