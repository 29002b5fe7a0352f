"""Modules that load when they are first used: few programs need them, and loading them takes milliseconds."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import threading
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple


class LateName(NamedTuple):
    """Stands for a name that a recorded block imports: the module it comes from, and its name there."""

    origin: str
    attribute: str

    @property
    def full_name(self) -> str:
        """The name of the module that it stands for, if it is one."""
        return f"{self.origin}.{self.attribute}"


class _Origin:
    """Stands in a recorded block for the module that names are imported from."""

    def __init__(self, name: str) -> None:
        self.full_name = name

    def __getattr__(self, attribute: str) -> LateName:
        return LateName(self.full_name, attribute)


class _LateModule(ModuleType):
    """Stands in a module's namespace for another module, which takes its place when it is first used."""

    def __init__(self, module: str, namespace: dict[str, Any], name: str) -> None:
        super().__init__(module)
        self._namespace, self._bound_name = namespace, name

    def __getattr__(self, attribute: str) -> Any:
        module = self._namespace[self._bound_name] = importlib.import_module(self.__name__)
        return getattr(module, attribute)


# One block at a time: Python has one import function.
_block = threading.Lock()


@contextlib.contextmanager
def record_imports(namespace: dict[str, Any]) -> Iterator[None]:
    """Bind each name that a block imports into the module of `namespace` to a `LateName`, and load nothing."""

    def record(name: str, importer: Mapping[str, Any] | None = None, *arguments: Any, **keywords: Any) -> Any:
        return _Origin(name) if importer is namespace else original(name, importer, *arguments, **keywords)

    with _block:
        original = builtins.__import__
        builtins.__import__ = record  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.__import__ = original


@contextlib.contextmanager
def late_modules(namespace: dict[str, Any]) -> Iterator[None]:
    """Let each module that a block imports into the module of `namespace` load at its first use.

    Its lines are ``from package import module`` or ``import module``. Type checkers see the imports as they stand.
    """
    with record_imports(namespace):
        yield
    for name, value in list(namespace.items()):
        if isinstance(value, (LateName, _Origin)):
            namespace[name] = _LateModule(value.full_name, namespace, name)
