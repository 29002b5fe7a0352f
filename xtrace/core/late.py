"""Public modules: boundaries around their functions, names that load when first asked for, and what `dir` lists."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from types import FunctionType
from typing import Any

from xtrace.core.array_protocol import operation
from xtrace.core.diagnostics.tracebacks import boundary
from xtrace.core.source import is_internal

# The public modules of operations on arrays.
_OF_ARRAYS = frozenset(("image", "lax", "nn", "numpy", "ops", "random", "scipy"))

# The boundary around each public function; a function is public for good.
_boundaries: dict[Callable[..., Any], Callable[..., Any]] = {}


def public(module: str, value: Any) -> Any:
    """Return what users of `module` get for `value`: a plain function of xtrace's as a boundary, others as they are.

    It is the same object each time.
    """
    if not isinstance(value, FunctionType) or not is_internal(value.__code__.co_filename):
        return value
    found = _boundaries.get(value)
    if found is None:
        of_arrays = not _OF_ARRAYS.isdisjoint(module.split(".")[1:2])
        found = _boundaries[value] = (operation if of_arrays else boundary)(value)
        if found is not value:
            # Pickles name functions by the place they are found at.
            found.__module__ = module
    return found


def make_public(namespace: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Put boundaries in the place of the functions among `names` in a module's `namespace`; `dir` lists ``__all__``."""
    for name in names:
        namespace[name] = public(namespace["__name__"], namespace[name])
    namespace.setdefault("__dir__", _listing(namespace["__name__"], ()))


def late_names(
    module: str, names: Mapping[str, Iterable[str]], submodules: Iterable[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the names, the ``__getattr__`` and the ``__dir__`` of the module called `module`.

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

    return sorted(source), getattribute, _listing(module, below)


def _listing(module: str, submodules: Iterable[str]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module: it lists the public names, and loads none of them."""
    return lambda: sorted({*sys.modules[module].__all__, *submodules})
