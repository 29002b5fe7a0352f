"""Modules that load at their first use, because few programs need them, and loading takes milliseconds."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import threading
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple


class LateName(NamedTuple):
    """The placeholder of a name that a recorded block imports: its module, and its name there."""

    origin: str
    attribute: str

    @property
    def full_name(self) -> str:
        """The full name, if the name is a module."""
        return f"{self.origin}.{self.attribute}"


class _Origin:
    """The placeholder of a module from which a recorded block imports names."""

    def __init__(self, name: str) -> None:
        self.full_name = name

    def __getattr__(self, attribute: str) -> LateName:
        return LateName(self.full_name, attribute)


class _LateModule(ModuleType):
    """The placeholder of a module in a namespace; at its first use it is replaced by the module."""

    def __init__(self, module: str, namespace: dict[str, Any], name: str) -> None:
        super().__init__(module)
        self._namespace, self._bound_name = namespace, name

    def __getattr__(self, attribute: str) -> Any:
        module = self._namespace[self._bound_name] = importlib.import_module(self.__name__)
        return getattr(module, attribute)


# One block at a time, because a block replaces Python's import function.
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

    Its lines are ``from package import module`` or ``import module``. Type checkers see ordinary imports.
    """
    with record_imports(namespace):
        yield
    for name, value in list(namespace.items()):
        if isinstance(value, (LateName, _Origin)):
            namespace[name] = _LateModule(value.full_name, namespace, name)
