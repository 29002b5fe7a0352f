"""What a command found: as text for people, and as data for programs."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Result(NamedTuple):
    """The text that a command prints, and what stands in its place under ``--json``."""

    text: str
    data: dict[str, Any]


def to_json(data: dict[str, Any]) -> str:
    """Return data as JSON; tuples become lists, and what JSON does not know becomes its text."""
    return json.dumps(data, indent=2, default=str)
