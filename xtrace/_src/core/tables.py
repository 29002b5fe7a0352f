"""Caches of results: bounded, shared between threads, emptied by `clear_caches`."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

from xtrace._src.core.sentinels import MISSING

T = TypeVar("T")
_Function = TypeVar("_Function", bound=Callable[..., Any])

_lock = threading.RLock()
# The living tables by identity, and functions that clear caches of other kinds.
_tables: dict[int, weakref.ref[Table]] = {}
_clearings: list[Callable[[], object]] = []


class Table(dict[Any, Any]):
    """A dictionary with at most `limit` entries: `remember` drops the oldest one to make room.

    nested: whether the table is part of an entry of another table, and is dropped with this entry.
    """

    __slots__ = ("limit", "__weakref__")

    def __init__(self, limit: int = 4096, *, nested: bool = False) -> None:
        super().__init__()
        self.limit = limit
        if not nested:
            _tables[id(self)] = weakref.KeyedRef(self, _forget, id(self))

    def remember(self, key: object, value: object) -> None:
        """Keep `value` under `key`."""
        with _lock:
            while len(self) >= self.limit:
                del self[next(iter(self))]
            self[key] = value


def _forget(reference: Any) -> None:
    _tables.pop(reference.key, None)


def memoize(limit: int, *, typed: bool = False) -> Callable[[Callable[..., T]], functools._lru_cache_wrapper[T]]:
    """Decorate a function of hashable arguments to remember its latest `limit` results.

    typed: whether equal arguments of different types, such as 1 and True, are different keys.
    """

    def decorate(function: Callable[..., T]) -> functools._lru_cache_wrapper[T]:
        remembered = functools.lru_cache(limit, typed)(function)
        _clearings.append(remembered.cache_clear)
        return remembered

    return decorate


@overload
def memoize_by_owner(
    function: _Function, *, limit: int = ..., when: Callable[[Any], bool] | None = ...
) -> _Function: ...


@overload
def memoize_by_owner(
    function: None = ..., *, limit: int = ..., when: Callable[[Any], bool] | None = ...
) -> Callable[[_Function], _Function]: ...


def memoize_by_owner(
    function: Callable[..., Any] | None = None, *, limit: int = 4096, when: Callable[[Any], bool] | None = None
) -> Any:
    """Decorate ``function(owner, *arguments)`` to remember its results as long as the owner lives.

    Owners are keys by equality. Nothing is remembered for an owner without weak references, for unhashable arguments,
    or if ``when(result)`` is false. limit: the number of results of one owner. A result must not refer to the
    owner, or neither is ever freed.
    """
    if function is None:
        return functools.partial(memoize_by_owner, limit=limit, when=when)
    tables: weakref.WeakKeyDictionary[Any, Table] = weakref.WeakKeyDictionary()
    _clearings.append(tables.clear)

    @functools.wraps(function)
    def remembered(owner: object, *arguments: object) -> Any:
        try:
            results = tables.get(owner)
            if results is None:
                results = tables.setdefault(owner, Table(limit, nested=True))
            result = results.get(arguments, MISSING)
        except TypeError:
            return function(owner, *arguments)
        if result is MISSING:
            result = function(owner, *arguments)
            if when is None or when(result):
                results.remember(arguments, result)
        return result

    return remembered


def clear_with_tables(clear: Callable[[], object]) -> None:
    """Register `clear` to be called when the tables are emptied."""
    _clearings.append(clear)


def clear_tables() -> None:
    """Forget everything that tables and memoized functions remember."""
    with _lock:
        for reference in list(_tables.values()):
            table = reference()
            if table is not None:
                table.clear()
    for clear in _clearings:
        clear()
