"""Caches of functions: found by the function's identity, dropped with it, bounded, and safe for threads."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any, Generic, TypeVar

from xtrace._src.core.tables import Table

T = TypeVar("T")


class OnceTable(Generic[T]):
    """A bounded table; one thread makes a missing entry, while other threads that need it wait.

    If making an entry raises, nothing is stored. The oldest entries are dropped when there are more than `limit`.
    """

    def __init__(self, limit: int = 4096) -> None:
        self.entries: dict[Any, T] = {}
        self.limit = limit
        # Reentrant: comparing keys runs the __eq__ of users' static arguments.
        self._lock = threading.RLock()
        # For each key, the thread that makes its entry, and a lock that it holds until it has ended.
        self._in_progress: dict[Hashable, tuple[int, threading.Lock]] = {}

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the entry of `key`; a missing one is made by ``make()``."""
        value = self.entries.get(key)
        if value is not None:
            return value
        me = threading.get_ident()
        mine: threading.Lock | None = None
        try:
            while True:
                with self._lock:
                    value = self.entries.get(key)
                    if value is not None:
                        return value
                    owner, ended = self._in_progress.get(key, (me, None))
                    if ended is None or not ended.locked():
                        mine = threading.Lock()
                        mine.acquire()
                        self._in_progress[key] = (me, mine)
                        break
                # A thread that needs the entry that it is making makes it again: waiting for itself would never end.
                if owner == me:
                    break
                with ended:
                    pass
            made = make()
            with self._lock:
                while len(self.entries) >= self.limit:
                    del self.entries[next(iter(self.entries))]
                self.entries[key] = made
            return made
        finally:
            # Ctrl-C can come anywhere below, but not before the release: other threads never wait for nobody.
            if mine is not None:
                mine.release()
                with self._lock:
                    if self._in_progress.get(key, (me, None))[1] is mine:
                        del self._in_progress[key]

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self.entries.clear()


_repetitions = Table()


def count_repetitions(place: Hashable, content: int) -> int:
    """Return the number of calls in a row, this one included, with the same `content` for `place`."""
    entry = _repetitions.get(place)
    if entry is None or entry[0] != content:
        entry = [content, 0]
        _repetitions.remember(place, entry)
    entry[1] += 1
    return int(entry[1])


class _WeakIdentityTable:
    """Tables of objects, found by identity and dropped with the object."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}
        self._lock = threading.RLock()

    def of(self, owner: Any) -> dict[Any, Any]:
        """Return the table of `owner`; for an object without weak references, a new table each time."""
        number = id(owner)
        entry = self._values.get(number)
        if entry is not None and entry[0]() is owner:
            return entry[1]
        try:
            reference = weakref.ref(owner, lambda dead: self._drop(number, dead))
        except TypeError:
            return {}
        with self._lock:
            entry = self._values.get(number)
            if entry is None or entry[0]() is not owner:
                entry = self._values[number] = (reference, {})
            return entry[1]

    def _drop(self, number: int, dead: object) -> None:
        entry = self._values.get(number)
        if entry is not None and entry[0] is dead:
            del self._values[number]

    def all(self) -> list[dict[Any, Any]]:
        return [table for _, table in list(self._values.values())]


_tables = _WeakIdentityTable()


def find_table(function: Callable[..., Any]) -> dict[Any, Any]:
    """Return the dictionary of caches of `function`; equal bound methods share one."""
    if isinstance(function, MethodType):
        methods: dict[Any, dict[Any, Any]] = _tables.of(function.__self__).setdefault("methods", {})
        try:
            return methods.setdefault(function.__func__, {})
        except TypeError:  # a callable that cannot be hashed, bound as a method
            return {}
    return _tables.of(function)


def all_tables() -> list[dict[Any, Any]]:
    """Return the tables of all living functions."""
    tables = []
    for table in _tables.all():
        tables.append(table)
        tables.extend(table.get("methods", {}).values())
    return tables
