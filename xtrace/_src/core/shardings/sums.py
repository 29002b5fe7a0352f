"""Unreduced and reduced mesh axes: the parts of an array's type about sums over devices."""

from __future__ import annotations

from typing import Any, NamedTuple


class Sums(NamedTuple):
    """The mesh axes along which a value is a sum over devices.

    Along the `unreduced` axes, devices hold terms, which are not added up yet. Along the `reduced` axes, each device
    holds the sum, and cotangents are unreduced.
    """

    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()

    def of_cotangents(self) -> Sums:
        """Return the sums of cotangents: unreduced and reduced axes are exchanged."""
        return Sums(self.reduced, self.unreduced)

    def join(self, other: Sums) -> Sums:
        """Return the union of the axes of both."""
        return Sums(self.unreduced | other.unreduced, self.reduced | other.reduced)

    def without(self, axes: frozenset[Any]) -> Sums:
        """Return the sums without the axes `axes`."""
        return Sums(self.unreduced - axes, self.reduced - axes)

    def within(self, axes: frozenset[Any]) -> Sums:
        """Return the sums with only the axes `axes`."""
        return Sums(self.unreduced & axes, self.reduced & axes)


NO_SUMS = Sums()


def format_axes(varying: frozenset[Any], sums: Sums) -> str:
    """Return the text of varying, unreduced and reduced axes in types: ``{V:x, U:(y,z)}``."""
    shown = []
    for letter, axes in (("V", varying), ("U", sums.unreduced), ("R", sums.reduced)):
        names = ",".join(sorted(map(str, axes)))
        if axes:
            shown.append(f"{letter}:{names}" if len(axes) == 1 else f"{letter}:({names})")
    return f"{{{', '.join(shown)}}}" if shown else ""
