"""Tables that remember what was found, and are emptied before they grow without bound."""

from __future__ import annotations

from typing import Any


def remember(table: dict[Any, Any], key: Any, value: Any, limit: int = 4096) -> None:
    """Keep `value` under `key`; a table that has `limit` entries is emptied first."""
    if len(table) >= limit:
        table.clear()
    table[key] = value
