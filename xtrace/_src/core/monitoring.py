"""Events of a program, and the functions that listen to them.

xtrace records the durations of tracing, lowering and compiling each function, under JAX's names.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span", "record_scalar",
    "register_event_duration_secs_listener", "register_event_listener", "register_event_time_span_listener",
    "register_scalar_listener", "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]

_Listener = Callable[..., None]

_events: list[_Listener] = []
_durations: list[_Listener] = []
_time_spans: list[_Listener] = []
_scalars: list[_Listener] = []

TRACING = "/jax/core/compile/jaxpr_trace_duration"
LOWERING = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILING = "/jax/core/compile/backend_compile_duration"


def record_event(event: str, **kwargs: str | int) -> None:
    """Call the listeners of events.

    Args:
        event: a name, by convention a path such as ``"/jax/compile"``.
        kwargs: details of the event, texts or integers.

    Raises:
        Exception: an error of a listener.

    Example:
        >>> xtrace.monitoring.register_event_listener(print)
        >>> xtrace.monitoring.record_event("/example")
        /example
        >>> xtrace.monitoring.clear_event_listeners()
    """
    for listener in _events.copy():
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call the listeners of durations.

    Args:
        event: a name, by convention a path.
        duration: the duration in seconds.
        kwargs: details of the event, texts or integers.

    Raises:
        Exception: an error of a listener.

    Example:
        >>> xtrace.monitoring.register_event_duration_secs_listener(print)
        >>> xtrace.monitoring.record_event_duration_secs("/example", 0.5)
        /example 0.5
        >>> xtrace.monitoring.clear_event_listeners()
    """
    for listener in _durations.copy():
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call the listeners of time spans.

    Args:
        event: a name, by convention a path.
        start_time, end_time: the start and the end, in seconds.
        kwargs: details of the event, texts or integers.

    Raises:
        Exception: an error of a listener.

    Example:
        >>> xtrace.monitoring.register_event_time_span_listener(print)
        >>> xtrace.monitoring.record_event_time_span("/example", 1.0, 2.5)
        /example 1.0 2.5
        >>> xtrace.monitoring.clear_event_listeners()
    """
    for listener in _time_spans.copy():
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call the listeners of scalars.

    Args:
        event: a name, by convention a path.
        value: the scalar.
        kwargs: details of the event, texts or integers.

    Raises:
        Exception: an error of a listener.

    Example:
        >>> xtrace.monitoring.register_scalar_listener(print)
        >>> xtrace.monitoring.record_scalar("/example", 3)
        /example 3
        >>> xtrace.monitoring.clear_event_listeners()
    """
    for listener in _scalars.copy():
        listener(event, value, **kwargs)


def record_step(event: str, seconds: float, function: str) -> None:
    """Record the start, the duration and the time span of a step of compiling `function`, which has just ended."""
    if not (_durations or _time_spans or _scalars):
        return
    end = time.time()
    record_scalar(event, end - seconds, fun_name=function)
    record_event_duration_secs(event, seconds, fun_name=function)
    record_event_time_span(event, end - seconds, end, fun_name=function)


def register_event_listener(callback: _Listener) -> None:
    """Register a listener that `record_event` calls.

    Args:
        callback: a function called as ``callback(event, **kwargs)``.

    Example:
        >>> xtrace.monitoring.register_event_listener(print)
        >>> xtrace.monitoring.unregister_event_listener(print)
    """
    _events.append(_check_listener(callback))


def register_event_duration_secs_listener(callback: _Listener) -> None:
    """Register a listener that `record_event_duration_secs` calls.

    Args:
        callback: a function called as ``callback(event, duration, **kwargs)``.

    Example:
        >>> xtrace.monitoring.register_event_duration_secs_listener(print)
        >>> xtrace.monitoring.unregister_event_duration_listener(print)
    """
    _durations.append(_check_listener(callback))


def register_event_time_span_listener(callback: _Listener) -> None:
    """Register a listener that `record_event_time_span` calls.

    Args:
        callback: a function called as ``callback(event, start_time, end_time, **kwargs)``.

    Example:
        >>> xtrace.monitoring.register_event_time_span_listener(print)
        >>> xtrace.monitoring.unregister_event_time_span_listener(print)
    """
    _time_spans.append(_check_listener(callback))


def register_scalar_listener(callback: _Listener) -> None:
    """Register a listener that `record_scalar` calls.

    Args:
        callback: a function called as ``callback(event, value, **kwargs)``.

    Example:
        >>> xtrace.monitoring.register_scalar_listener(print)
        >>> xtrace.monitoring.unregister_scalar_listener(print)
    """
    _scalars.append(_check_listener(callback))


def unregister_event_listener(callback: _Listener) -> None:
    """Remove a listener of events.

    Args:
        callback: a function that was registered.

    Raises:
        ValueError: it is not registered.

    Example:
        >>> xtrace.monitoring.register_event_listener(print)
        >>> xtrace.monitoring.unregister_event_listener(print)
    """
    _remove(_events, callback)


def unregister_event_duration_listener(callback: _Listener) -> None:
    """Remove a listener of durations.

    Args:
        callback: a function that was registered.

    Raises:
        ValueError: it is not registered.

    Example:
        >>> xtrace.monitoring.register_event_duration_secs_listener(print)
        >>> xtrace.monitoring.unregister_event_duration_listener(print)
    """
    _remove(_durations, callback)


def unregister_event_time_span_listener(callback: _Listener) -> None:
    """Remove a listener of time spans.

    Args:
        callback: a function that was registered.

    Raises:
        ValueError: it is not registered.

    Example:
        >>> xtrace.monitoring.register_event_time_span_listener(print)
        >>> xtrace.monitoring.unregister_event_time_span_listener(print)
    """
    _remove(_time_spans, callback)


def unregister_scalar_listener(callback: _Listener) -> None:
    """Remove a listener of scalars.

    Args:
        callback: a function that was registered.

    Raises:
        ValueError: it is not registered.

    Example:
        >>> xtrace.monitoring.register_scalar_listener(print)
        >>> xtrace.monitoring.unregister_scalar_listener(print)
    """
    _remove(_scalars, callback)


def clear_event_listeners() -> None:
    """Remove the listeners of all four kinds.

    Example:
        >>> xtrace.monitoring.clear_event_listeners()
    """
    for listeners in (_events, _durations, _time_spans, _scalars):
        listeners.clear()


def _check_listener(callback: Any) -> _Listener:
    if not callable(callback):
        raise TypeError(f"monitoring: a listener is a function; got {abbreviate(callback)}")
    return callback  # type: ignore[no-any-return]


def _remove(listeners: list[_Listener], callback: _Listener) -> None:
    if callback not in listeners:
        raise ValueError(f"monitoring: {abbreviate(callback)} is not registered as a listener of these events")
    listeners.remove(callback)
