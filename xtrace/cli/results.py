"""The results of commands: text for people, and data for programs."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple


class Result(NamedTuple):
    """The text that a command prints, and the data that it prints with ``--json``."""

    text: str
    data: dict[str, Any]


def to_json(data: dict[str, Any]) -> str:
    """Return data as JSON; tuples become lists, and objects and numbers unknown to JSON become their texts."""
    try:
        return json.dumps(data, indent=2, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_name_numbers(data), indent=2, default=str)


def _name_numbers(value: Any) -> Any:
    """Return `value` with the texts ``NaN``, ``Infinity`` and ``-Infinity`` in place of these numbers."""
    if isinstance(value, dict):
        return {key: _name_numbers(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_name_numbers(each) for each in value]
    return json.dumps(value) if isinstance(value, float) and not math.isfinite(value) else value
