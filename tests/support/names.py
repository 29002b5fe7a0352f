"""Names of test cases that are the same in every process, as pytest-xdist needs them."""

from __future__ import annotations

import re


def stable_name(value: object) -> str:
    """Return the value's repr without addresses."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x", repr(value))
