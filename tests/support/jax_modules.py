"""Modules of jax that need packages which are not installed for the tests."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import types
import unittest.mock
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def _stand_in(name: str, module: Any) -> Iterator[None]:
    """Let `module` be the one called `name`, unless there is one."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]


def import_jax_module(name: str) -> types.ModuleType:
    """Return a module of jax; it logs by Python's module where it does by absl, and has no TensorStore."""
    absl: Any = types.ModuleType("absl")
    absl.logging = logging
    with _stand_in("absl", absl), _stand_in("tensorstore", unittest.mock.MagicMock()):
        return importlib.import_module(name)
