"""Functions of several operations that run eagerly as one compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace.api.jit import jit
from xtrace.core.trace import base_trace, current_trace
from xtrace.runtime.transfer import to_operand

_LIMIT = 1024
_SCALARS = frozenset((bool, int, float, complex))


def unit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function(*arrays, **static)`` as one compiled program for each choice of the hashable `static`.

    Under a trace its operations are recorded in place, as if the function were called.
    """
    compiled: dict[Any, Callable[..., Any]] = {}
    trace_of_thread = current_trace.get

    @functools.wraps(function)
    def call(*arrays: Any, **static: Any) -> Any:
        if trace_of_thread() is not base_trace:
            return function(*arrays, **static)
        key = tuple(static.items())
        found = compiled.get(key)
        if found is None:
            if len(compiled) >= _LIMIT:
                compiled.clear()
            named = functools.wraps(function)(functools.partial(function, **static))
            found = compiled[key] = jit(named, inline=True)
        # Scalars that come again are on the device already.
        return found(*[to_operand(x) if type(x) in _SCALARS else x for x in arrays])

    return call
