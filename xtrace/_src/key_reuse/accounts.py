"""Which random keys have been used: what the setting ``jax_debug_key_reuse`` keeps account of.

Every array of keys has an account: for each of its elements the place of a key in a table, and in the table who used
the key. Operations that move keys move places, so a slice shares its keys with the array that it was taken from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.dtypes import ExtendedDType
from xtrace._src.core.errors import KeyReuseError
from xtrace._src.runtime.arrays import ConcreteArray


class KeyUses:
    """The account of an array of keys: `users` has, for each key, who used it or None; `places` are the elements'."""

    __slots__ = ("users", "places")

    def __init__(self, users: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> None:
        self.users, self.places = users, places

    def user(self) -> str | None:
        """Return who used one of the keys, None if all are unused."""
        return next((u for u in self.users[self.places.ravel()] if u is not None), None)

    def all_used(self) -> bool:
        """Return whether every key was used, and there is one."""
        return self.places.size > 0 and None not in self.users[self.places.ravel()]

    def note(self, user: str) -> None:
        """Note that all of the keys are used."""
        self.users[self.places.ravel()] = user


Accounts = list[KeyUses | None]


def make_unused(shape: Sequence[int]) -> KeyUses:
    """Return the account of new keys."""
    size = int(np.prod(shape, dtype=np.int64))
    return KeyUses(np.full(size, None, object), np.arange(size).reshape(shape))


def has_keys(aval: ShapedArray) -> bool:
    """Return whether values of this type are keys, which have accounts."""
    return isinstance(aval.dtype, ExtendedDType)


def new_accounts(avals: Sequence[Any]) -> Accounts:
    """Return accounts for the keys among values of these types."""
    return [make_unused(a.shape) if has_keys(a) else None for a in avals]


def account_of(array: ConcreteArray) -> KeyUses | None:
    """Return the account of an array, begun if it has none; None for an array of numbers."""
    if not has_keys(array.aval):
        return None
    account: KeyUses | None = getattr(array, "key_uses", None)
    if account is None:
        account = array.key_uses = make_unused(array.shape)
    return account


def refuse_reuse(name: str, position: int, keys: KeyUses) -> None:
    """Raise KeyReuseError if the operand at `position` of an operation has a key that was used."""
    user = keys.user()
    if user is None:
        return
    shape = keys.places.shape
    which = f"has random keys of shape {shape}, one of which" if shape else "is a random key that"
    raise KeyReuseError(
        f"{name}: argument {position} {which} was used before, by {user}. A key gives the same numbers each "
        "time: make new ones with xtrace.random.split(key), and use each of them once. To repeat numbers on purpose, "
        "use xtrace.random.clone(key)"
    )


def consume(name: str, user: str, operands: Accounts) -> None:
    """Note that the operation `name` uses the keys among its operands; KeyReuseError if one was used before."""
    for position, keys in enumerate(operands):
        if keys is not None:
            refuse_reuse(name, position, keys)
    for keys in operands:
        if keys is not None:
            keys.note(user)
