"""Functions that users give: their names in messages, and the check that they can be called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace._src.core.avals import short_repr


def function_name(function: Callable[..., Any]) -> str:
    """Return the name a function goes by in jaxprs, modules and messages."""
    name = getattr(function, "__name__", None)
    if name is None and isinstance(function, functools.partial):
        return function_name(function.func)
    return name if isinstance(name, str) else type(function).__name__


def check_callable(name: str, fun: object) -> None:
    """Raise TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(f"{name}: Expected a callable value, got {short_repr(fun)} of type {type(fun)}")
