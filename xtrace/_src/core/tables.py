"""Tables of results that can be computed again: bounded, safe to share between threads, emptied by `clear_caches`."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.RLock()
# The living tables by identity, and functions that empty caches of other kinds.
_tables: dict[int, weakref.ref[Table]] = {}
_clearings: list[Callable[[], None]] = []


class Table(dict[Any, Any]):
    """A dictionary with at most `limit` entries: `remember` drops the oldest one to make room.

    nested: the table is part of an entry of another table, and goes when that entry does.
    """

    __slots__ = ("limit", "__weakref__")

    def __init__(self, limit: int = 4096, *, nested: bool = False) -> None:
        super().__init__()
        self.limit = limit
        if not nested:
            _tables[id(self)] = weakref.KeyedRef(self, _forget, id(self))

    def remember(self, key: Any, value: Any) -> None:
        """Keep `value` under `key`."""
        with _lock:
            while len(self) >= self.limit:
                del self[next(iter(self))]
            self[key] = value


def _forget(reference: Any) -> None:
    _tables.pop(reference.key, None)


def memoize(limit: int, *, typed: bool = False) -> Callable[[Callable[..., T]], functools._lru_cache_wrapper[T]]:
    """Decorate a function of hashable arguments to remember its latest `limit` results.

    typed: equal arguments of unlike types, such as 1 and True, have results of their own.
    """

    def decorate(function: Callable[..., T]) -> functools._lru_cache_wrapper[T]:
        remembered = functools.lru_cache(limit, typed)(function)
        _clearings.append(remembered.cache_clear)
        return remembered

    return decorate


def table_by_owner() -> MutableMapping[Any, Any]:
    """Return a mapping whose entries live as long as their keys, found by equality of the keys."""
    table: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
    _clearings.append(table.clear)
    return table


def clear_tables() -> None:
    """Forget everything that tables and memoized functions remember."""
    with _lock:
        for reference in list(_tables.values()):
            table = reference()
            if table is not None:
                table.clear()
    for clear in _clearings:
        clear()
