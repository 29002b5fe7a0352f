"""Modules of jax as tests need them: without packages that are not installed, and with fewer contexts of MLIR."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import sys
import threading
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


# Types and constants stay in a context as long as it lives.
_PROGRAMS_OF_A_CONTEXT = 100


def share_contexts() -> None:
    """Let a hundred of jax's programs be lowered in one context of MLIR: one each is an eighth of the suite's time."""
    mlir: Any = sys.modules.get("jax._src.interpreters.mlir")
    make, made = getattr(mlir, "make_ir_context", None), itertools.count()
    if make is None:
        return
    shared: Any = None

    def context() -> Any:
        nonlocal shared
        if threading.current_thread() is not threading.main_thread():
            return make()
        if next(made) % _PROGRAMS_OF_A_CONTEXT == 0:
            shared = make()
        return shared

    mlir.make_ir_context = context
