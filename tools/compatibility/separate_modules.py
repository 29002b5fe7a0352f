"""A plugin of pytest that begins each file of tests with the same settings, as in a process of its own.

Some files set 64-bit dtypes for good; which others come after them in a process differs from run to run.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

_current: list[Any] = []


# Before pytest's own, which calls `setUpModule`.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Before the first test of a file, restore the setting that the collection of the files left."""
    config = sys.modules["jax"].config if "jax" in sys.modules else None
    if config is None:
        return
    if not _current:
        _current[:] = [item.path, config.jax_enable_x64]
    elif item.path != _current[0]:
        _current[0] = item.path
        config.update("jax_enable_x64", _current[1])
