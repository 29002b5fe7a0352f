"""Renaming functions, for Python's messages about arguments and for tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, cast

_Function = TypeVar("_Function")


def copy_with_name(function: _Function, name: str) -> _Function:
    """Return a copy of a plain function whose name is `name`."""
    original = cast(FunctionType, function)
    copy = FunctionType(original.__code__, original.__globals__, name, original.__defaults__, original.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = original.__kwdefaults__, original.__annotations__
    copy.__doc__, copy.__module__ = original.__doc__, original.__module__
    return cast(_Function, set_function_name(copy, name))


def with_function_name(name: str) -> Callable[[_Function], _Function]:
    """Decorate a function, such as `__call__` of a private class, with the name `name`."""
    return lambda function: set_function_name(function, name)


def set_function_name(function: _Function, name: str) -> _Function:
    """Name a plain function `name` in Python's messages and in tracebacks; return the function."""
    plain = cast(FunctionType, function)
    plain.__code__ = plain.__code__.replace(co_name=name, co_qualname=name)
    plain.__name__ = plain.__qualname__ = name
    return function
