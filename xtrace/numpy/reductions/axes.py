"""Axes of reductions: those of the array, by number, and mapped axes, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import broadcast_in_dim
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace.numpy.operands import axes_of, is_sequence_of_axes, store_axes

with late_modules(globals()):
    from xtrace._src.ops.collectives import collectives

# Numbers of the array's axes, counted from the front, and names of mapped axes.
ReducedAxes = tuple[Any, ...]

_COLLECTIVES = {"reduce_sum": "psum", "add_elements": "psum", "reduce_max": "pmax", "reduce_min": "pmin"}


def reduced_axes(axis: Any, ndim: int) -> ReducedAxes:
    """Return the axes that `axis` names (None: all of the array), those of the array counted from the front.

    ValueError for missing or repeated axes, NameError for the name of no mapped axis, TypeError for other values.
    """
    axis = store_axes(axis)
    try:
        return axes_of(axis, ndim)
    except TypeError:
        listed = (axis,) if isinstance(axis, str) else axis if is_sequence_of_axes(axis) else ()
        names = [x for x in listed if isinstance(x, str)]
        if not names:
            raise
    own = axes_of([x for x in listed if not isinstance(x, str)], ndim)
    return own + collectives.axis_names(names)


def array_axes(axes: ReducedAxes) -> tuple[int, ...]:
    """Return those axes that the array has."""
    return tuple([i for i in axes if not isinstance(i, str)])


def count_elements(shape: tuple[int, ...], axes: ReducedAxes) -> int:
    """Return the number of elements along axes of an array of this shape and along mapped axes."""
    return math.prod([collectives.axis_size(i) if isinstance(i, str) else shape[i] for i in axes])


def reduce_axes(reduce: Callable[..., Any], a: Array, axes: ReducedAxes) -> Array:
    """Reduce an array over its own axes by a reduction of lax, then over mapped axes by the collective for it."""
    own = array_axes(axes)
    result: Array = reduce(a, own) if own or not axes else a
    if len(own) == len(axes):
        return result
    names = tuple([i for i in axes if isinstance(i, str)])
    collective = _COLLECTIVES.get(reduce.__name__)
    if collective is None:
        raise NotImplementedError(
            f"{called_function()}: no reduction over mapped axes, got axis {abbreviate(names)}; gather the "
            f"elements first, lax.all_gather(a, {abbreviate(names)}), and reduce axis 0"
        )
    result = getattr(collectives, collective)(result, names)
    return result


def keep_axes(value: ArrayLike, axes: ReducedAxes, own: tuple[int, ...]) -> Array:
    """Return a reduced value with axes of size 1 where `own` was reduced over `axes`."""
    target = tuple([1 if i in axes else n for i, n in enumerate(own)])
    return broadcast_in_dim(value, target, [i for i in range(len(own)) if i not in axes])
