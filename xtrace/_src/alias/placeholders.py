"""Modules of jax that xtrace does without, but that libraries import before they know whether they need them."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NoReturn

_COLOCATED = "jax.experimental.colocated_python"
PLACEHOLDERS: dict[str, str] = dict.fromkeys(
    (_COLOCATED, f"{_COLOCATED}.func", f"{_COLOCATED}.serialization"), "Colocated Python"
)


def make_placeholder(name: str) -> ModuleType:
    """Return a new module for the module `name` of jax, whose public names raise NotImplementedError when called."""
    module = ModuleType(name, f"{PLACEHOLDERS[name]} is outside of xtrace: the names are there, and cannot be called.")

    def getattribute(attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        if f"{name}.{attribute}" in PLACEHOLDERS:
            return importlib.import_module(f"{name}.{attribute}")

        def refuse(cls: object, *_: object, **__: object) -> NoReturn:
            raise NotImplementedError(
                f"{attribute}: {PLACEHOLDERS[name]} is outside of what xtrace does; call a Python function with "
                "xtrace.pure_callback or xtrace.experimental.io_callback"
            )

        return type(attribute, (), {"__new__": refuse, "__module__": name})

    module.__getattr__ = getattribute  # type: ignore[method-assign]
    module.__path__ = []
    return module
