"""Public modules: boundaries around their functions, names that load when first asked for, and ``dir``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from types import FunctionType, ModuleType
from typing import Any

from xtrace._src.core.array_protocol import operation
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.source import is_internal

# The public modules of operations on arrays.
_OF_ARRAYS = frozenset(("image", "lax", "nn", "numpy", "ops", "random", "scipy"))

# Maps each public function to its boundary; never evicted.
_boundaries: dict[Callable[..., Any], Callable[..., Any]] = {}


def public(module: str, name: str, value: object, bounded: bool = True) -> Any:
    """Return the public form of `value` in `module`: a plain function of xtrace's as a boundary, others as they are.

    It is the same object each time, and says a public module as its own. A function too quick for a boundary is not
    `bounded`.
    """
    if isinstance(value, (type, FunctionType)):
        _name_module(module, name, value)
    if not isinstance(value, FunctionType) or not is_internal(value.__code__.co_filename):
        return value
    wrapped = _boundaries.get(value)
    if wrapped is None:
        of_arrays = not _OF_ARRAYS.isdisjoint(module.split(".")[1:2])
        wrap = operation if of_arrays else boundary
        wrapped = _boundaries[value] = wrap(value) if bounded else value
    return wrapped


def _name_module(module: str, name: str, value: Any) -> None:
    """Let a function or class of xtrace's say that it is from a public module, as pickles and tracebacks show it.

    That is the innermost one around its file that has it by its name, otherwise `module`, where it is called `name`.
    """
    if not value.__module__.startswith("xtrace"):
        return
    home = value.__module__
    while home and not _lists(home, value.__name__):
        home = home.rpartition(".")[0]
    value.__module__ = home or module
    if not home and not _lists(module, value.__name__):
        value.__qualname__ = name


def _lists(module: str, name: str) -> bool:
    """Whether `module` is a public one that has the name, as one that has not been loaded is: it was named by hand."""
    if module not in sys.modules:
        return True
    namespace = vars(sys.modules[module])
    return "__dir__" in namespace and name in namespace["__all__"]


def make_public(
    namespace: MutableMapping[str, Any], names: Iterable[str] | None = None, quick: Iterable[str] = (),
    submodules: Iterable[str] = (),
) -> list[str]:
    """Put boundaries in the place of the functions among `names` in a module's `namespace`; `dir` lists ``__all__``.

    Without `names`, they are the names in the namespace that are neither private nor modules. Those among `quick` stay
    as they are: a boundary would take longer than they do. Returns ``__all__``, the names with the `submodules`.
    """
    if names is None:
        names = [n for n, value in namespace.items() if not n.startswith("_") and not isinstance(value, ModuleType)]
    listed = namespace["__all__"] = sorted([*names, *submodules])
    namespace.setdefault("__dir__", _listing(namespace["__name__"], ()))
    for name in names:
        namespace[name] = public(namespace["__name__"], name, namespace[name], name not in quick)
    return listed


def late_names(
    module: str, names: Mapping[str, Iterable[str]], submodules: Iterable[str] = (),
    deprecated: Mapping[str, Iterable[str]] | None = None,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the names, the ``__getattr__`` and the ``__dir__`` of the module called `module`.

    `names` maps modules to the names that come from each, ``"name as other"`` if `module` calls one otherwise;
    `submodules` are modules below `module` itself. `deprecated` has the names that jax deprecates and libraries use:
    they are there, and are not listed.
    """
    listed = _find_sources(names)
    source = listed | _find_sources(deprecated or {})
    below = frozenset(submodules)

    def getattribute(name: str) -> Any:
        if name in below:
            return importlib.import_module(f"{module}.{name}")
        if name not in source:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        origin, attribute = source[name]
        value = public(module, name, getattr(importlib.import_module(origin), attribute))
        setattr(sys.modules[module], name, value)
        return value

    return sorted(listed), getattribute, _listing(module, below)


def _find_sources(names: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, str]]:
    """Return the module that each name comes from, and what it is called there."""
    sources = {}
    for origin, entries in names.items():
        for entry in entries:
            attribute, _, name = entry.partition(" as ")
            sources[name or attribute] = origin, attribute
    return sources


def _listing(module: str, submodules: Iterable[str]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module: it lists the public names, and loads none of them."""
    return lambda: sorted({*sys.modules[module].__all__, *submodules})
