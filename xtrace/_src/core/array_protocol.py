"""Objects with ``__jax_array__``: operations accept them as arrays, and convert them only after a call has failed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.flag_parameters import check_flags, find_flags

_Function = TypeVar("_Function", bound=Callable[..., Any])


def array_boundary(function: _Function) -> _Function:
    """Return a boundary, as `boundary` does, around a function of arrays; it accepts objects with ``__jax_array__``."""
    if "hide_frames" in function.__code__.co_names:
        return function
    flags = find_flags(function)
    # Flags are rarely given by position, and taking a slice needs no Python call.
    first = min((n for n in flags.values() if n is not None), default=sys.maxsize)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if flags and (args[first:] or (kwargs and not flags.keys().isdisjoint(kwargs))):
                check_flags(function.__name__, flags, args, kwargs)
            return function(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            converted = convert_array_objects(error, args, kwargs)
            if converted is None:
                raise
        return _call_again(function, *converted)

    call.__wrapped__ = getattr(function, "__wrapped__", function)
    return call  # type: ignore[return-value]


def accept_objects(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return ``call(args, kwargs)``, the call of an operation, which then accepts objects with ``__jax_array__``."""

    def call_with_arrays(args: Any, kwargs: Any) -> Any:
        try:
            return call(args, kwargs)
        except Exception as error:
            converted = convert_array_objects(error, args, kwargs)
            if converted is None:
                raise
        return call(*converted)

    return call_with_arrays


def _call_again(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        hide_frames(error)
        raise


def convert_array_objects(error: BaseException, args: object, kwargs: object) -> tuple[Any, Any] | None:
    """Return the arguments of a call that failed, objects with ``__jax_array__`` replaced by their arrays.

    Returns None if there are no such objects. Also if an argument is a function: operations that take functions, as
    loops do, refuse such objects.
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
    """Yield the items of lists, tuples and dictionaries, at any depth."""
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
