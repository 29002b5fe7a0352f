"""Modules that load at their first use, because few programs need them, and loading takes milliseconds."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from xtrace._late_names import LateName, LateOrigin, record_imports


class _LateModule(ModuleType):
    """The placeholder of a module in a namespace; at its first use it is replaced by the module."""

    def __init__(self, module: str, namespace: dict[str, Any], name: str) -> None:
        super().__init__(module)
        self._namespace, self._bound_name = namespace, name

    def __getattr__(self, attribute: str) -> Any:
        module = self._namespace[self._bound_name] = importlib.import_module(self.__name__)
        return getattr(module, attribute)


@contextlib.contextmanager
def late_modules(namespace: dict[str, Any]) -> Iterator[None]:
    """Let each module that a block imports into the module of `namespace` load at its first use.

    Its lines are ``from package import module`` or ``import module``. Type checkers see ordinary imports.
    """
    with record_imports(namespace):
        yield
    for name, value in list(namespace.items()):
        if isinstance(value, (LateName, LateOrigin)):
            namespace[name] = _LateModule(value.full_name, namespace, name)
