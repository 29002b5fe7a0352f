"""Classes whose objects `vmap` maps by functions of the class, instead of by the axes of their leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis
from xtrace._src.core.avals import aval_of
from xtrace._src.core.trace import current_trace, use_trace
from xtrace._src.runtime.transfer import as_value
from xtrace._src.transforms.batch import BatchTrace, BatchTracer


class MappedClass(NamedTuple):
    """The functions of a class, and the class of its specifications in ``in_axes`` and ``out_axes``."""

    specification: type
    to_element: Callable[..., Any]
    from_element: Callable[..., Any]


mapped_classes: dict[type, MappedClass] = {}


def is_mapped_object(x: object) -> bool:
    """Return whether `x` is an object of a registered class."""
    return type(x) in mapped_classes


def is_specification(axis: object) -> bool:
    """Return whether `axis` says how an object of a registered class is mapped."""
    return any(type(axis) is each.specification for each in mapped_classes.values())


def size_along(x: Any, axis: object) -> int | None:
    """Return the size of an object along an axis; None if its class does not say it."""
    shape = getattr(x, "shape", None)
    return shape[axis] if shape is not None and isinstance(axis, int) else None


def take_element(x: Any, axis: Any) -> Any:
    """Return the element of an object that stands for all of them under the current trace, a `BatchTrace`."""
    trace = current_trace.get()
    assert isinstance(trace, BatchTrace)

    def take(x: Any, axis: Any) -> Any:
        own = mapped_classes.get(type(x))
        if own is not None:
            return own.to_element(take, indices, x, axis)
        return x if axis is None else BatchTracer(trace, as_value(x), canonical_axis(axis, aval_of(x).ndim))

    def indices() -> Any:
        return BatchTracer(trace, as_value(np.arange(trace.mapped.size, dtype=np.int32)), 0)

    return take(x, axis)


def join_elements(x: Any, axis: Any, place: Callable[[Any, int | None, Any], Any]) -> Any:
    """Return an object with the elements that `x` stands for under the current trace, a `BatchTrace`.

    place: returns an array, which is mapped along an axis or None, with the mapped axis where a specification says.
    """
    trace = current_trace.get()
    assert isinstance(trace, BatchTrace) and trace.parent is not None

    def join(size: int, x: Any, axis: Any) -> Any:
        own = mapped_classes.get(type(x))
        if own is not None:
            return own.from_element(join, size, x, axis)
        mine = type(x) is BatchTracer and x.owner is trace
        return place(x.value, x.axis, axis) if mine else place(x, None, axis)

    with use_trace(trace.parent):
        return join(trace.mapped.size, x, axis)
