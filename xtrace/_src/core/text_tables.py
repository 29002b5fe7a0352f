"""Tables of text with aligned columns, and sizes in units that read well."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table, or one that says that there are no rows."""
    if not rows:
        return [f"{title}: none"]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        f"{title}:", *["  " + "  ".join([c.ljust(w) for c, w in zip(row, widths, strict=True)]).rstrip()
                       for row in (head, *rows)],
    ]


def format_size(count: int) -> str:
    """Return a number of bytes in the unit that reads best."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"
