"""Accounts of used random keys, for the setting ``jax_debug_key_reuse``.

Every array of keys has an account. A table records the user of each key; each element of the array has a position in
that table. Operations that move keys move positions, so a slice shares its keys with the sliced array.
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
    """The account of an array of keys: the user of each key or None, and the position of each element in `users`."""

    __slots__ = ("users", "positions")

    def __init__(self, users: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]) -> None:
        self.users, self.positions = users, positions

    def find_user(self) -> str | None:
        """Return the user of one of the keys; None if all are unused."""
        return next((u for u in self.users[self.positions.ravel()] if u is not None), None)

    def all_used(self) -> bool:
        """Return whether there are keys and all of them were used."""
        return self.positions.size > 0 and None not in self.users[self.positions.ravel()]

    def mark_used(self, user: str) -> None:
        """Record `user` as the user of all keys."""
        self.users[self.positions.ravel()] = user


Accounts = list[KeyUses | None]


def make_unused(shape: Sequence[int]) -> KeyUses:
    """Return the account of new keys."""
    size = int(np.prod(shape, dtype=np.int64))
    return KeyUses(np.full(size, None, object), np.arange(size).reshape(shape))


def has_keys(aval: ShapedArray) -> bool:
    """Return whether values of this type are keys."""
    return isinstance(aval.dtype, ExtendedDType)


def make_accounts(avals: Sequence[Any]) -> Accounts:
    """Return new accounts for values of these types; None for numbers."""
    return [make_unused(a.shape) if has_keys(a) else None for a in avals]


def get_account(array: ConcreteArray) -> KeyUses | None:
    """Return the account of an array, a new one if it has none; None for an array of numbers."""
    if not has_keys(array.aval):
        return None
    account: KeyUses | None = getattr(array, "key_uses", None)
    if account is None:
        account = array.key_uses = make_unused(array.shape)
    return account


def refuse_reuse(name: str, position: int, keys: KeyUses) -> None:
    """Raise KeyReuseError if `keys`, the operand at `position` of the operation `name`, has a used key."""
    user = keys.find_user()
    if user is None:
        return
    shape = keys.positions.shape
    which = f"has random keys of shape {shape}, one of which" if shape else "is a random key that"
    raise KeyReuseError(
        f"{name}: argument {position} {which} was used before, by {user}. A key gives the same numbers each "
        "time: make new ones with xtrace.random.split(key), and use each of them once. To repeat numbers on purpose, "
        "use xtrace.random.clone(key)"
    )


def consume(name: str, user: str, operands: Accounts) -> None:
    """Record `user` for the keys among the operands of the operation `name`; KeyReuseError if one was used before."""
    for position, keys in enumerate(operands):
        if keys is not None:
            refuse_reuse(name, position, keys)
    for keys in operands:
        if keys is not None:
            keys.mark_used(user)
