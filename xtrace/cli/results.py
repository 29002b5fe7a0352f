"""The results of commands: text for people, and data for programs."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Result(NamedTuple):
    """The text that a command prints, and the data that it prints with ``--json``."""

    text: str
    data: dict[str, Any]


def to_json(data: dict[str, Any]) -> str:
    """Return data as JSON; tuples become lists, and objects unknown to JSON become their texts."""
    return json.dumps(data, indent=2, default=str)
