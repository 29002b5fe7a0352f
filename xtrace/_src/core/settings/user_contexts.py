"""Context variables of users, on which traced programs depend."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager
from typing import Any

from xtrace._src.core.settings.options import context

_numbers = itertools.count()


class UserContext:
    """A context variable with a value for each thread; it is part of the key of every cache of traced programs."""

    __slots__ = ("_option",)

    def __init__(self, default_value: Any) -> None:
        self._option = context(f"user_context_{next(_numbers)}", default_value)

    @property
    def value(self) -> Any:
        """The value in this thread."""
        return self._option.value

    def __call__(self, new_value: Any) -> AbstractContextManager[None]:
        """Return a context manager that sets the value in this thread."""
        return self._option(new_value)


def make_user_context(default_value: Any = None) -> UserContext:
    """Make a context variable that traced functions may read; a function is traced anew for each of its values.

    Make context variables when a program starts, not while other threads trace.

    Args:
        default_value: the value outside of all blocks, a hashable object.

    Returns:
        An object with the current ``value``; calling it with a hashable object gives a context manager.

    Raises:
        TypeError: a value has no hash.

    Example:
        >>> precise = xtrace.make_user_context(False)
        >>> f = xtrace.jit(lambda x: x * (2 if precise.value else 1))
        >>> with precise(True): f(3)
        Array(6, dtype=int32, weak_type=True)
        >>> f(3)
        Array(3, dtype=int32, weak_type=True)
    """
    hash(default_value)
    return UserContext(default_value)
