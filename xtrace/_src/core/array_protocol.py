"""Objects with ``__jax_array__``: operations take them wherever arrays go, and look for them only after they failed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

from xtrace._src.core.boolean_parameters import check_flags, flags_of
from xtrace._src.core.diagnostics.tracebacks import hide_frames

_Function = TypeVar("_Function", bound=Callable[..., Any])


def operation(function: _Function) -> _Function:
    """Return `function`, an operation on arrays, as `boundary` does; it takes objects with ``__jax_array__``, too."""
    if "hide_frames" in function.__code__.co_names:
        return function
    flags = flags_of(function)
    # Flags are rarely given by position; a slice is no call of Python's.
    first = min((n for n in flags.values() if n is not None), default=sys.maxsize)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if flags and (args[first:] or (kwargs and not flags.keys().isdisjoint(kwargs))):
                check_flags(function.__name__, flags, args, kwargs)
            return function(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            ready = with_arrays(error, args, kwargs)
            if ready is None:
                raise
        return _call_again(function, *ready)

    call.__wrapped__ = getattr(function, "__wrapped__", function)
    return call  # type: ignore[return-value]


def accept_objects(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return ``call(args, kwargs)``, of an operation on arrays, that takes objects with ``__jax_array__``, too."""

    def call_with_arrays(args: Any, kwargs: Any) -> Any:
        try:
            return call(args, kwargs)
        except Exception as error:
            ready = with_arrays(error, args, kwargs)
            if ready is None:
                raise
        return call(*ready)

    return call_with_arrays


def _call_again(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        hide_frames(error)
        raise


def with_arrays(error: BaseException, args: object, kwargs: object) -> tuple[Any, Any] | None:
    """Return the arguments of a call that failed, with arrays in the place of objects with ``__jax_array__``.

    None if there are no such objects, or a function is among the arguments: those that take functions refuse them.
    """
    if not isinstance(error, Exception):
        return None
    items = list(_items((args, kwargs)))
    if any(isinstance(x, (FunctionType, functools.partial)) for x in items) or not any(map(_is_convertible, items)):
        return None
    return _convert_object(args), _convert_object(kwargs)


def _is_convertible(value: object) -> bool:
    return hasattr(value, "__jax_array__") and not isinstance(value, type)


def _items(value: Any) -> Iterator[Any]:
    """Yield what lists, tuples and dictionaries hold, at any depth."""
    if type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:
            yield from _items(item)
    else:
        yield value


def _convert_object(value: Any) -> Any:
    if _is_convertible(value):
        array = value.__jax_array__()
        if hasattr(array, "__jax_array__"):
            raise TypeError(f"__jax_array__ of {type(value)} must return an array, got {type(array)}")
        return array
    if type(value) in (list, tuple):
        return type(value)([_convert_object(x) for x in value])
    if type(value) is dict:
        return {key: _convert_object(x) for key, x in value.items()}
    return value
