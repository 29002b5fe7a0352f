"""Public modules: boundaries around their functions, names that load when first asked for, and ``dir``."""

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
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.source import is_internal
from xtrace._src.xla.late_modules import LateName, record_imports

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
        _register(module, name, value.__module__, value.__qualname__)
        _name_module(module, name, value)
    if not isinstance(value, FunctionType) or not is_internal(value.__code__.co_filename):
        return value
    wrapped = _boundaries.get(value)
    if wrapped is None:
        of_arrays = not _OF_ARRAYS.isdisjoint(module.split(".")[1:2])
        wrap = operation if of_arrays else boundary
        wrapped = _boundaries[value] = wrap(value) if bounded else value
    return wrapped


def _register(module: str, name: str, origin: str, attribute: str) -> None:
    """Let messages call a function or class that is public in `module` by its public `name`.

    A distribution's functions have the name of its module before theirs, unless several distributions share them.
    """
    above, _, own = module.rpartition(".")
    if name.endswith("_p"):
        return  # the alias of a primitive, which knows its name
    if above != "xtrace.scipy.stats":
        public_names.setdefault((origin, attribute), name)
    elif origin == module:
        public_names[origin, attribute] = f"{own}.{name}"


def _name_module(module: str, name: str, value: Any) -> None:
    """Let a function or class of xtrace's say that it is from a public module, as pickles and tracebacks show it.

    That is the innermost one around its file that has it by its name, otherwise `module`, where it is called `name`.
    """
    if not value.__module__.startswith("xtrace"):
        return
    home = value.__module__
    # A module of the same name as a function of its own is not that function.
    while home and (not _lists(home, value.__name__) or f"{home}.{value.__name__}" in sys.modules):
        home = home.rpartition(".")[0]
    value.__module__ = home or module
    if not home and not _lists(module, value.__name__):
        value.__qualname__ = name
    elif "." not in value.__qualname__:
        # It was public under an abbreviation until its own module was loaded.
        value.__qualname__ = value.__name__


def _lists(module: str, name: str) -> bool:
    """Whether `module` is a public one that has the name, as one that has not been loaded is: it was named by hand."""
    if module not in sys.modules:
        return True
    namespace = vars(sys.modules[module])
    return "__dir__" in namespace and name in namespace["__all__"]


def make_public(
    namespace: MutableMapping[str, Any], names: Iterable[str] | None = None, quick: Iterable[str] = (),
) -> list[str]:
    """Put boundaries in the place of the functions among `names` in a module's `namespace`; `dir` lists ``__all__``.

    Without `names`, they are the names in the namespace that are neither private nor modules. Those among `quick` stay
    as they are: a boundary would take longer than they do. Returns ``__all__``.
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

    Type checkers and editors see the imports as they stand. ``__all__`` and ``dir`` have the names if they are
    `listed`.
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
    """Return what `name` stands for in `module`; AttributeError for other names than those that load late."""
    if name not in late:
        where = ""
        if sys.modules.get("jax") is sys.modules["xtrace"]:
            where = "; docs/compatibility.md in xtrace's repository says what is outside of it"
        raise AttributeError(f"module {module!r} has no attribute {name!r}{where}")
    origin, attribute = late[name]
    if origin == module:
        return importlib.import_module(f"{module}.{attribute}")
    value = public(module, name, getattr(importlib.import_module(origin), attribute))
    setattr(sys.modules[module], name, value)
    return value


def _list_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the public names of a module, and load none of them."""
    return list(namespace["__all__"])
