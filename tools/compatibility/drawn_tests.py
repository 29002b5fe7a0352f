"""A plugin of pytest that runs one test of so many, drawn by the tests' names, so that every run draws the same."""

from __future__ import annotations

import os
import re
import zlib
from typing import Any

# The variable of the environment that says of how many tests one is run.
VARIABLE = "XTRACE_ONE_TEST_OF"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave those tests whose names the draw takes."""
    count = int(os.environ.get(VARIABLE, "1"))
    taken = [item for item in items if zlib.crc32(without_address(item.nodeid).encode()) % count == 0]
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = taken


def without_address(name: str) -> str:
    """Return the name of a test without addresses of objects, which differ between runs."""
    return re.sub(r"0x[0-9a-f]+", "0x", name)
