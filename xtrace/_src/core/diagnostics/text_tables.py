"""Tables of text with aligned columns, and sizes of memory in readable units."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table; one line, ``TITLE: none``, if there are no rows."""
    if not rows:
        return [f"{title}: none"]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]) for row in (head, *rows)]
    return [f"{title}:", *[f"  {line}".rstrip() for line in lines]]


def format_count(number: int | str, noun: str, plural: str = "") -> str:
    """Return a number and its noun in singular or plural: ``1 entry``, ``3+ hits``."""
    return f"{number} {noun if str(number) == '1' else plural or f'{noun}s'}"


def format_size(count: int) -> str:
    """Return a number of bytes as text, in the largest unit that fits: ``1.5 KiB``."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"
