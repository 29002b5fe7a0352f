"""Public names that a module loads when they are first asked for, so that importing it stays cheap."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from xtrace.core.diagnostics.tracebacks import public


def late_names(
    module: str, names: Mapping[str, Iterable[str]], submodules: Iterable[str] = ()
) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names and the ``__getattr__`` of the module called `module`.

    `names` maps modules to the names that come from each; `submodules` are modules below `module` itself.
    """
    source = {name: origin for origin, found in names.items() for name in found}
    below = frozenset(submodules)

    def getattribute(name: str) -> Any:
        if name in below:
            return importlib.import_module(f"{module}.{name}")
        if name not in source:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = public(module, getattr(importlib.import_module(source[name]), name))
        setattr(sys.modules[module], name, found)
        return found

    return sorted(source), getattribute
