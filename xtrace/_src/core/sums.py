"""Sums along mesh axes that have not been formed, and those that have: the sets of axes that types say."""

from __future__ import annotations

from typing import Any, NamedTuple


class Sums(NamedTuple):
    """The mesh axes along which a value is a sum.

    Along the `unreduced` ones devices hold terms, and nobody has added them up. Along the `reduced` ones each device
    holds the sum, and cotangents are unreduced.
    """

    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()

    def of_cotangents(self) -> Sums:
        """Return the sums of cotangents: unreduced where values are reduced, and the other way round."""
        return Sums(self.reduced, self.unreduced)

    def join(self, other: Sums) -> Sums:
        """Return the sums along the axes of both."""
        return Sums(self.unreduced | other.unreduced, self.reduced | other.reduced)

    def without(self, axes: frozenset[Any]) -> Sums:
        """Return the sums along axes that are not in `axes`."""
        return Sums(self.unreduced - axes, self.reduced - axes)

    def within(self, axes: frozenset[Any]) -> Sums:
        """Return the sums along axes that are in `axes`."""
        return Sums(self.unreduced & axes, self.reduced & axes)


NO_SUMS = Sums()


def format_axes(varying: frozenset[Any], sums: Sums) -> str:
    """Return the axes along which a value varies and is a sum, as types show them: ``{V:x, U:(y,z)}``."""
    shown = []
    for letter, axes in (("V", varying), ("U", sums.unreduced), ("R", sums.reduced)):
        names = ",".join(sorted(map(str, axes)))
        if axes:
            shown.append(f"{letter}:{names}" if len(axes) == 1 else f"{letter}:({names})")
    return f"{{{', '.join(shown)}}}" if shown else ""
