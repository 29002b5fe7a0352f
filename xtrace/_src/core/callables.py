"""Functions that users give: their names and places in messages, and the check that they can be called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.avals import short_repr
from xtrace._src.core.ir import DebugInfo


def function_name(function: Callable[..., Any]) -> str:
    """Return the name a function goes by in jaxprs, modules and messages."""
    name = getattr(function, "__name__", None)
    if name is None and isinstance(function, functools.partial):
        return function_name(function.func)
    return name if isinstance(name, str) else type(function).__name__


def innermost_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside wrappers and partials, as far as they can be followed."""
    try:
        function = inspect.unwrap(function)
    except ValueError:  # a wrapper of itself
        return function
    while isinstance(function, functools.partial):
        function = function.func
    return function


def debug_info_of(
    transformation: str, function: Callable[..., Any], argument_paths: Callable[[], Sequence[str]] | None = None
) -> DebugInfo:
    """Return the function and the transformation of a jaxpr, for messages."""
    inner = innermost_function(function)
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else (None, None)
    return DebugInfo(transformation, function_name(function), file, line, argument_paths)


def check_callable(name: str, fun: object) -> None:
    """Raise TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(f"{name}: Expected a callable value, got {short_repr(fun)} of type {type(fun)}")


class LazySignature(inspect.Signature):
    """The signature of a function, computed when it is asked for: it is that of the jitted function."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    # The two places that all other methods of a signature read.
    @property
    def _parameters(self) -> Any:
        return inspect.signature(self._function).parameters

    @property
    def _return_annotation(self) -> Any:
        return inspect.signature(self._function).return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """Return the signature with other parameters, or another annotation of the result."""
        return inspect.signature(self._function).replace(**changes)

    def __reduce__(self) -> Any:
        return inspect.signature, (self._function,)
