"""Functions under other names."""

from __future__ import annotations

from types import FunctionType
from typing import TypeVar, cast

_Function = TypeVar("_Function")


def renamed(function: _Function, name: str) -> _Function:
    """Return a copy of a plain function whose name is `name`."""
    original = cast(FunctionType, function)
    copy = FunctionType(original.__code__, original.__globals__, name, original.__defaults__, original.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = original.__kwdefaults__, original.__annotations__
    copy.__doc__, copy.__module__, copy.__qualname__ = original.__doc__, original.__module__, name
    return cast(_Function, copy)
