"""Effects: what an equation does besides computing its results (printing, calling back, drawing in order …)."""

from __future__ import annotations

import functools
from collections.abc import Hashable


class Effect:
    """A kind of effect. Equations and jaxprs carry a frozenset of them; dead-code elimination keeps such equations."""

    __slots__ = ("name", "ordered")

    def __init__(self, name: str, ordered: bool = False) -> None:
        self.name, self.ordered = name, ordered

    def __repr__(self) -> str:
        return self.name


class NamedAxis(Effect):
    """Not an effect on the world: the operation works along the mapped axis of that name, one object for each name."""

    __slots__ = ("axis",)

    def __init__(self, axis: Hashable) -> None:
        super().__init__(f"NamedAxis({axis!r})")
        self.axis = axis


@functools.cache
def named_axis(axis: Hashable) -> NamedAxis:
    """Return the effect of working along the axis called `axis`."""
    return NamedAxis(axis)


Effects = frozenset[Effect]
NO_EFFECTS: Effects = frozenset()


def has_consequences(effects: Effects) -> bool:
    """Whether an equation with these effects does something although nothing reads its results."""
    return any(type(e) is not NamedAxis for e in effects)
