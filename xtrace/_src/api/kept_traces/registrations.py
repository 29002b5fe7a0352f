"""Registrations outside of a class that change its behaviour: virtual subclasses, and functions that copy it.

They are part of a class's digest, because ``isinstance`` may answer otherwise after a registration.
"""

from __future__ import annotations

import abc
import collections.abc
import contextlib
import copyreg
import numbers
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from xtrace._src.api.kept_traces.known_functions import is_written_in_python

# The standard abstract classes, for which functions of libraries may look.
_ABSTRACT = tuple([
    each for module in (abc, collections.abc, numbers, contextlib, os) for each in vars(module).values()
    if isinstance(each, abc.ABCMeta)
])
# Bases of abstract classes that have nothing to do with one another.
_COMMON_BASES = (abc.ABC, Protocol)


class LocalRegistrationError(Exception):
    """A registration depends on more than the names of classes."""


def describe_registrations(cls: type) -> Iterator[str]:
    """Yield the names of the standard abstract classes of `cls` and, if it is abstract, all registrations below it.

    Raises `LocalRegistrationError`.
    """
    for each in _ABSTRACT:
        if issubclass(cls, each):
            yield _name(each)
    if isinstance(cls, abc.ABCMeta):
        yield from sorted(_registrations_below(cls))


def find_copier(cls: type) -> Callable[..., Any] | None:
    """Return the function that was registered with ``copyreg`` to copy instances of `cls`."""
    return copyreg.dispatch_table.get(cls)


def _registrations_below(cls: abc.ABCMeta) -> Iterator[str]:
    """Yield the registrations with a class, with its subclasses, and with abstract classes registered there."""
    seen: dict[int, type] = {}
    left: list[Any] = [cls]
    while left:
        each = left.pop()
        if id(each) in seen or not isinstance(each, abc.ABCMeta):
            continue
        seen[id(each)] = each
        is_standard = each.__module__.partition(".")[0] in sys.stdlib_module_names
        has_hook = "__subclasshook__" in vars(each) and not getattr(each, "_is_protocol", False)
        if each is not cls and has_hook and not is_standard:
            raise LocalRegistrationError(f"{_name(each)}, which has a __subclasshook__")
        registered = [r() for r in abc._get_dump(each)[0]]  # type: ignore[attr-defined]
        for other in registered:
            if other is not None:
                yield f"{_name(each)} {_name(other)}"
        left += registered
        if each not in _COMMON_BASES:
            left += type.__subclasses__(each)


def _name(cls: type) -> str:
    """Return the name of a class; `LocalRegistrationError` if that is the name of another class or of none."""
    value: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        value = getattr(value, part, None)
    if value is not cls and is_written_in_python(cls):
        raise LocalRegistrationError(f"{cls.__module__}.{cls.__qualname__}, which is not found by its name")
    return f"{cls.__module__}.{cls.__qualname__}"
