"""Integers that users give as sizes, counts and axes. `function` is the name in messages, by default the public one."""

from __future__ import annotations

import operator
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.sizes import to_sizes
from xtrace._src.core.trace import Tracer

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import called_function


def to_integer(argument: str, value: Any, *, function: str = "") -> int:
    """Return a user's integer as an int; TypeError, which names the function and the argument, for another value."""
    try:
        return operator.index(value)
    except InconclusiveDimensionOperation:
        return value  # type: ignore[no-any-return]
    except TypeError:
        if isinstance(value, Tracer):
            raise
        raise TypeError(
            f"{function or called_function()}: {argument} must be an integer, got {abbreviate(value)}"
        ) from None


def integer_tuple(argument: str, values: Any, *, function: str = "") -> tuple[int, ...]:
    """Return a user's sequence of integers as a tuple; TypeError, which names the argument, for another value."""
    try:
        return tuple([operator.index(v) for v in values])
    except InconclusiveDimensionOperation:
        return to_sizes(values)
    except TypeError:
        traced = [v for v in values if isinstance(v, Tracer)] if isinstance(values, (list, tuple)) else []
        if traced and argument.endswith("sizes"):
            raise explain.traced_shape(traced[0], values, function=function) from None
        raise TypeError(
            f"{function or called_function()}: {argument} must be a sequence of integers, got {abbreviate(values)}"
        ) from None


def integer_rows(
    argument: str, values: Any, length: int | None = None, *, function: str = ""
) -> tuple[tuple[int, ...], ...]:
    """Return sequences of integers as a tuple of tuples; TypeError for other values, or rows of another `length`."""
    try:
        rows = tuple([tuple([operator.index(v) for v in row]) for row in values])
    except InconclusiveDimensionOperation:
        rows = tuple(map(to_sizes, values))
    except TypeError:
        rows = None
    if rows is None or any(length not in (None, len(row)) for row in rows):
        kind = "sequences" if length is None else "pairs" if length == 2 else "triples"
        raise TypeError(
            f"{function or called_function()}: {argument} must hold {kind} of integers, got {abbreviate(values)}"
        ) from None
    return rows
