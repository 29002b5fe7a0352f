"""Blocks of a program: names for them that profiles show, and evaluation at once inside a traced function."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from xtrace._src.core import config
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.trace import CompileTimeTrace, current_trace, use_trace
from xtrace._src.transforms.scopes import scope


def named_scope(name: str) -> AbstractContextManager[None]:
    """Name the operations recorded inside the block, or inside a decorated function: profiles and HLO show the name.

    Scopes nest. TypeError unless `name` is a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {abbreviated(name)}")
    return _in_scope(name)


@contextlib.contextmanager
def _in_scope(name: str) -> Iterator[None]:
    with scope(name):
        yield


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Return a context in which jitted functions run in Python, operation by operation, or not if not `disable`."""
    return config.disable_jit(disable)


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Return `fun` in a `named_scope` of its own, called `name` or as the function is."""
    check_callable("named_call", fun)
    called = name if name is not None else function_name(fun)

    @boundary
    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(called):
            return fun(*args, **kwargs)

    return named


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate inside the block, while a function is traced, whatever depends on no traced value."""
    with use_trace(CompileTimeTrace(current_trace.get())):
        yield
