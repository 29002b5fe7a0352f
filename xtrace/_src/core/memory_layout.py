"""How the elements of an array lie in memory, and on which devices: the value of ``x.format``."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.shardings import Sharding


class Layout:
    """The order of the axes in memory, the slowest first, the tiles of elements, and the bits of packed ones, or 0."""

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")

    def __init__(
        self, major_to_minor: tuple[int, ...], tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor, self.tiling = tuple(major_to_minor), tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """A layout and a sharding; None for either leaves the choice to the compiler."""

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | None = None, sharding: Sharding | None = None) -> None:
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"
