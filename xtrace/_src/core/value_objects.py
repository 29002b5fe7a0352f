"""Base classes of value objects: immutable ones, and ones that are equal by a key."""

from __future__ import annotations

from typing import Any, Self


class Immutable:
    """An object that does not change, and is its own copy."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class EqualByKey:
    """An object that is equal to the objects of its class with the same key."""

    __slots__ = ()

    def _key(self) -> Any:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and bool(self._key() == other._key()))

    def __hash__(self) -> int:
        return hash(self._key())
