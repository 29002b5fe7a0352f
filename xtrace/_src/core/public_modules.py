"""Public modules: boundaries around their functions, names that load at their first use, and ``dir``."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from types import FunctionType, ModuleType
from typing import Any

from xtrace._src.core.array_protocol import operation
from xtrace._src.core.diagnostics.messages import public_names
from xtrace._src.core.diagnostics.source import is_internal
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.xla.late_modules import LateName, record_imports

# The public modules whose functions are operations on arrays.
_ARRAY_MODULES = frozenset(("image", "lax", "nn", "numpy", "ops", "random", "scipy"))

# Maps each public function to its boundary; never evicted.
_boundaries: dict[Callable[..., Any], Callable[..., Any]] = {}


def public(module: str, name: str, value: object, bounded: bool = True) -> Any:
    """Return the public form of `value` in `module`: for a plain function of xtrace its boundary, else `value` itself.

    The form is the same object each time, and its ``__module__`` is public. bounded: whether a function gets a
    boundary; the quickest ones do not, because a boundary takes longer than they do.
    """
    if isinstance(value, (type, FunctionType)):
        _register(module, name, value.__module__, value.__qualname__)
        _name_module(module, name, value)
    if not isinstance(value, FunctionType) or not is_internal(value.__code__.co_filename):
        return value
    wrapped = _boundaries.get(value)
    if wrapped is None:
        wrap = boundary if _ARRAY_MODULES.isdisjoint(module.split(".")[1:2]) else operation
        wrapped = _boundaries[value] = wrap(value) if bounded else value
    return wrapped


def _register(module: str, name: str, origin: str, attribute: str) -> None:
    """Let messages use the public `name` of a function or class in `module`.

    The functions of a distribution get the name of its module as a prefix, unless several distributions share them.
    """
    above, _, own = module.rpartition(".")
    if name.endswith("_p"):
        return  # the alias of a primitive, which has its own name
    if above != "xtrace.scipy.stats":
        public_names.setdefault((origin, attribute), name)
    elif origin == module:
        public_names[origin, attribute] = f"{own}.{name}"


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
    namespace = vars(sys.modules[module])
    return "__dir__" in namespace and name in namespace["__all__"]


def make_public(
    namespace: MutableMapping[str, Any], names: Iterable[str] | None = None, quick: Iterable[str] = (),
) -> list[str]:
    """Replace the functions `names` in a module's `namespace` by their boundaries; `dir` then lists ``__all__``.

    By default `names` are the names in the namespace that are neither private nor modules. The functions `quick` get no
    boundary, because it would take longer than they do. Returns ``__all__``.
    """
    if names is None:
        names = [n for n, value in namespace.items() if not n.startswith("_") and not isinstance(value, ModuleType)]
    listed = namespace["__all__"] = sorted(names)
    namespace.setdefault("__dir__", functools.partial(_list_names, namespace))
    for name in names:
        namespace[name] = public(namespace["__name__"], name, namespace[name], name not in quick)
    return listed


@contextlib.contextmanager
def late_imports(namespace: dict[str, Any], listed: bool = True) -> Iterator[None]:
    """Let each name that a block imports into the module of `namespace` load at its first use.

    Type checkers and editors see ordinary imports. listed: whether ``__all__`` and ``dir`` have the names.
    """

    with record_imports(namespace):
        yield
    names = {name: value for name, value in namespace.items() if type(value) is LateName}
    for name in names:
        del namespace[name]
    late = namespace.setdefault("_late", {})
    late |= names
    for name, origin in names.items():
        _register(namespace["__name__"], name, *origin)
    namespace["__all__"] = sorted({*namespace.get("__all__", ()), *(names if listed else ())})
    namespace["__getattr__"] = functools.partial(_load, namespace["__name__"], late)
    namespace["__dir__"] = functools.partial(_list_names, namespace)


def _load(module: str, late: Mapping[str, LateName], name: str) -> Any:
    """Load and return the object `name` of `module`; AttributeError if it is no name that loads late."""
    if name not in late:
        where = ""
        if sys.modules.get("jax") is sys.modules["xtrace"]:
            where = "; docs/compatibility.md in xtrace's repository lists the parts of JAX that are missing"
        raise AttributeError(f"module {module!r} has no attribute {name!r}{where}")
    origin, attribute = late[name]
    if origin == module:
        return importlib.import_module(f"{module}.{attribute}")
    value = public(module, name, getattr(importlib.import_module(origin), attribute))
    setattr(sys.modules[module], name, value)
    return value


def _list_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the public names of a module without loading them."""
    return list(namespace["__all__"])
