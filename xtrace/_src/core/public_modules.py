"""Public modules: boundaries around their functions, and ``dir``. `_late_imports` loads names at their first use."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, MutableMapping
from types import FunctionType, ModuleType
from typing import Any

from xtrace._late_imports import assemble_layers, get_namespace, list_names, register_public_name
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.diagnostics.positions import is_internal
from xtrace._src.core.diagnostics.tracebacks import boundary

# The public modules whose functions are operations on arrays.
_ARRAY_MODULES = frozenset(("image", "lax", "nn", "numpy", "ops", "random", "scipy"))

# Maps each public function to its boundary; never evicted.
_boundaries: dict[Callable[..., Any], Callable[..., Any]] = {}


def make_public_form(module: str, name: str, value: object, with_boundary: bool) -> Any:
    """Return the public form of `value` in `module`: for a plain function of xtrace its boundary, else `value` itself.

    The form is the same object each time, and its ``__module__`` is public. with_boundary: whether a function gets
    a boundary; the quickest ones do not, because a boundary takes longer than they do.
    """
    if isinstance(value, (type, FunctionType)):
        register_public_name(module, name, value.__module__, value.__qualname__)
        _name_module(module, name, value)
    if not isinstance(value, FunctionType) or not is_internal(value.__code__.co_filename):
        return value
    wrapped = _boundaries.get(value)
    if wrapped is None:
        wrap = boundary if _ARRAY_MODULES.isdisjoint(module.split(".")[1:2]) else array_boundary
        wrapped = _boundaries[value] = wrap(value) if with_boundary else value
    return wrapped


def _name_module(module: str, name: str, value: Any) -> None:
    """Set the ``__module__`` of a function or class of xtrace, which pickles and tracebacks show, to a public module.

    It is the innermost public module around its file that lists it under its own name, else `module`, under `name`.
    """
    if not value.__module__.startswith("xtrace"):
        return
    home = value.__module__
    # A module may have the name of a function in it, and an import would find the module.
    while home and (not _lists(home, value.__name__) or f"{home}.{value.__name__}" in sys.modules):
        home = home.rpartition(".")[0]
    value.__module__ = home or module
    if not home and not _lists(module, value.__name__):
        value.__qualname__ = name
    elif "." not in value.__qualname__:
        # It was public under an abbreviation until its own module was loaded.
        value.__qualname__ = value.__name__


def _lists(module: str, name: str) -> bool:
    """Whether `module` is public and has the name. A module that is not loaded counts: its name was set by hand."""
    if module not in sys.modules:
        return True
    namespace = get_namespace(sys.modules[module])
    return "__dir__" in namespace and name in namespace["__all__"]


def make_public(
    namespace: MutableMapping[str, Any], names: Iterable[str] | None = None, quick: Iterable[str] = (),
) -> list[str]:
    """Replace the functions `names` in a module's `namespace` by their boundaries; `dir` then lists ``__all__``.

    By default `names` are the names in the namespace that are neither private nor modules. The functions `quick` get no
    boundary, because it would take longer than they do. Returns ``__all__``.
    """
    assemble_layers()
    if names is None:
        names = [n for n, value in namespace.items() if not n.startswith("_") and not isinstance(value, ModuleType)]
    listed = namespace["__all__"] = sorted(names)
    namespace.setdefault("__dir__", functools.partial(list_names, namespace))
    for name in names:
        namespace[name] = make_public_form(namespace["__name__"], name, namespace[name], name not in quick)
    return listed
