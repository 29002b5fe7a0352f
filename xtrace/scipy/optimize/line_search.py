"""Search along a line for a point that satisfies the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace.numpy.arrays.creation import zeros_like
from xtrace.numpy.elementwise.complex_parts import real
from xtrace.numpy.elementwise.floating_point import isfinite
from xtrace.numpy.elementwise.ufuncs import abs as absolute
from xtrace.numpy.elementwise.ufuncs import minimum, sqrt
from xtrace.numpy.indexing.where import where
from xtrace.numpy.products.contraction import vdot

# The constants of the Wolfe conditions: c1 (sufficient decrease) and c2 (curvature).
_DECREASE, _CURVATURE = 1e-4, 0.9
# The least distance of an interpolated step from the ends of the interval, as a fraction of its length.
_CUBIC_MARGIN, _QUADRATIC_MARGIN = 0.2, 0.1
# 30 halvings shrink an interval below single precision.
_ZOOMS = 30

Tree = TypeVar("Tree")

GROWING, ZOOMING, FOUND, EXHAUSTED, UNBOUNDED = range(5)


class Sample(NamedTuple):
    """A point of the line: its step, and the value and the slope of the function there."""

    step: Array
    value: Array
    slope: Array


class Search(NamedTuple):
    """The state of a search. It ends in the phase `FOUND`, or in a failure: `EXHAUSTED` or `UNBOUNDED`.

    While steps grow, `low` is the previous sample. Afterwards `low` and `high` bound the interval, and `recent` is the
    end replaced last.
    """

    phase: Array
    trial: Array
    low: Sample
    high: Sample
    recent: Sample
    growths: RealLike
    zooms: RealLike
    step: Array
    value: Array
    gradient: Array


def _choose(condition: ArrayLike, one: Tree, other: Tree) -> Tree:
    result: Tree = pytree.tree_map(lambda x, y: where(condition, x, y), one, other)
    return result


def inner_product(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the real inner product of two vectors."""
    return real(vdot(x, y, precision="highest"))


def _is_inside(x: Array, low: Array, high: Array, margin: float) -> Array:
    """Return whether `x` lies between two numbers, at least `margin` of their distance from each."""
    kept = margin * absolute(high - low)
    return (x >= minimum(low, high) + kept) & (x <= -minimum(-low, -high) - kept)


def _minimize_cubic(a: Sample, b: Sample, c: Sample) -> Array:
    """Return the minimum of the cubic through three samples with the slope of the first.

    f(t) = A t³ + B t² + C t + f(a), where t is the distance from a and C the slope; the values at b and c give A and B.
    """
    tb, tc = b.step - a.step, c.step - a.step
    ub, uc = (b.value - a.value) / tb - a.slope, (c.value - a.value) / tc - a.slope
    cubic = (ub / tb - uc / tc) / (tb - tc)
    square = ub / tb - cubic * tb
    return a.step + (sqrt(square * square - 3 * cubic * a.slope) - square) / (3 * cubic)


def _minimize_parabola(a: Sample, b: Sample) -> Array:
    t = b.step - a.step
    return a.step - a.slope * t * t / (2 * (b.value - a.value - a.slope * t))


def _choose_between(low: Sample, high: Sample, recent: Sample, zooms: Array) -> Array:
    """Return the next trial step in an interval: the minimum of a cubic, else of a parabola, else the middle."""
    parabola, cubic = _minimize_parabola(low, high), _minimize_cubic(low, high, recent)
    fits = _is_inside(parabola, low.step, high.step, _QUADRATIC_MARGIN)
    middle = where(fits, parabola, (low.step + high.step) / 2)
    return where((zooms > 0) & _is_inside(cubic, low.step, high.step, _CUBIC_MARGIN), cubic, middle)


def line_search(
    evaluate: Callable[[Array], tuple[Array, Array]], x: Array, direction: Array, value: Array, gradient: Array,
    first: Array, growths: int,
) -> Search:
    """Search along `direction` from `x` for a point where the strong Wolfe conditions hold.

    evaluate: maps a point to the value and the gradient, the direction of steepest ascent. value,
    gradient: its results at `x`. first: the first trial step. growths: the largest number of doublings of the step.
    A failed search returns step 0, with the value and gradient at `x`. It evaluates growths + zooms times.

    Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6.
    """
    dtype = value.dtype
    slope = inner_product(direction, gradient).astype(dtype)
    # Values that differ only by rounding count as equal; otherwise a search near a minimum would fail.
    rounding = 2 * float(dtypes.finfo(dtype).eps) * absolute(value)

    def is_low(at: Sample) -> Array:
        return at.value <= value + _DECREASE * at.step * slope + rounding

    def is_flat(at: Sample) -> Array:
        return absolute(at.slope) <= -_CURVATURE * slope

    def is_unfinished(search: Search) -> Array:
        return search.phase <= ZOOMING

    def grow(search: Search, at: Sample) -> tuple[Array, Sample, Sample, Sample]:
        """Return phase, low, high and recent after a trial step of algorithm 3.5."""
        before = search.low
        over = ~is_low(at) | ((search.growths > 0) & (at.value >= before.value))
        ends = ~over & is_flat(at)
        bracketed = over | (at.slope >= 0)
        phase = where(ends, FOUND, where(bracketed, ZOOMING, GROWING))
        phase = where((phase == GROWING) & (search.growths + 1 >= growths), UNBOUNDED, phase)
        low, high = _choose(over, before, at), _choose(over, at, before)
        return phase, low, high, high

    def zoom(search: Search, at: Sample) -> tuple[Array, Sample, Sample, Sample]:
        """Return phase, low, high and recent after a trial step of algorithm 3.6."""
        low, high = search.low, search.high
        over = ~is_low(at) | (at.value >= low.value)
        turns = at.slope * (high.step - low.step) >= 0
        phase = where(~over & is_flat(at), FOUND, where(search.zooms + 1 >= _ZOOMS, EXHAUSTED, ZOOMING))
        recent = _choose(over | turns, high, low)
        return phase, _choose(over, low, at), _choose(over, at, _choose(turns, low, high)), recent

    def advance(search: Search) -> Search:
        new_value, new_gradient = evaluate(x + search.trial.astype(x.dtype) * direction)
        at = Sample(search.trial, new_value, inner_product(direction, new_gradient).astype(dtype))
        growing = search.phase == GROWING
        phase, low, high, recent = _choose(growing, grow(search, at), zoom(search, at))
        zooms = where(growing, search.zooms, search.zooms + 1)
        trial = where(phase == GROWING, 2 * search.trial, _choose_between(low, high, recent, zooms))
        kept = _choose(phase == FOUND, (at.step, new_value, new_gradient), (search.step, search.value, search.gradient))
        return Search(phase, trial, low, high, recent, where(growing, search.growths + 1, search.growths), zooms, *kept)

    zero = zeros_like(first)
    start = Sample(zero, value, slope)
    # A line that does not descend, or starts at NaN or infinity, cannot be searched.
    phase = where((slope < 0) & isfinite(value) & isfinite(slope), GROWING, UNBOUNDED)
    return while_loop(is_unfinished, advance, Search(phase, first, start, start, start, 0, 0, zero, value, gradient))
