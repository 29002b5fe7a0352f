"""What newer jax added: where the installed one lacks a function, tests compare with its definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def newer(module: Any, name: str, definition: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function `name` of a module of xtrace's or jax's; `definition` where an older jax lacks it."""
    if module.__name__.startswith("jax") and not hasattr(module, name):
        return definition
    function: Callable[..., Any] = getattr(module, name)
    return function
