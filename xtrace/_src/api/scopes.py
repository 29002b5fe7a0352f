"""Contexts around parts of a program: names for profiles, `disable_jit`, and evaluation at compile time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.settings import config
from xtrace._src.core.trace import CompileTimeTrace, current_trace, use_trace
from xtrace._src.transforms.scopes import scope


def named_scope(name: str) -> AbstractContextManager[None]:
    """Return a context that names the operations inside it; profiles and HLO show the name.

    Args:
        name: the name of the scope.

    Returns:
        A context manager, which also decorates functions.

    Raises:
        TypeError: `name` is no string.

    Example:
        >>> with xtrace.named_scope("layer"):
        ...     y = jnp.tanh(1.0)
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {abbreviate(name)}")
    return _NamedScope(name)


class _NamedScope(scope, contextlib.ContextDecorator):
    """A scope that is also a decorator: each call of the function is in a scope of its own."""

    def _recreate_cm(self) -> _NamedScope:
        return _NamedScope(*self.names)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Return a context in which jitted functions run operation by operation, for debugging their Python code.

    Args:
        disable: whether they do; False restores jit inside another such context.

    Returns:
        A context manager.

    Example:
        >>> with xtrace.disable_jit():
        ...     xtrace.jit(lambda x: float(x) + 1.0)(2.0)
        3.0
    """
    return config.disable_jit(disable)


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Return `fun` with a named scope around its operations.

    Args:
        fun: a function.
        name: the name of the scope; None for the function's name.

    Returns:
        A function with the arguments and results of `fun`.

    Raises:
        TypeError: `fun` is not callable, or `name` is no string.

    Example:
        >>> xtrace.named_call(jnp.sin, name="wave")(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    called = name if name is not None else function_name(fun)

    @boundary
    @wraps(fun)
    def named(*args: object, **kwargs: object) -> Any:
        with named_scope(called):
            return fun(*args, **kwargs)

    return named


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Return a context in which operations on known values are computed while a program is traced.

    Returns:
        A context manager.

    Example:
        >>> @xtrace.jit
        ... def scale(x):
        ...     with xtrace.ensure_compile_time_eval():
        ...         factor = float(jnp.exp2(3.0))
        ...     return factor * x
        >>> scale(1.0)
        Array(8., dtype=float32, weak_type=True)
    """
    with use_trace(CompileTimeTrace(current_trace.get())):
        yield
