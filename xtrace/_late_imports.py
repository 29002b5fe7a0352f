"""Imports that take place at the first use of a name. Type checkers and editors see ordinary imports."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple


class _LateName(NamedTuple):
    """The placeholder of a name that a recorded block imports: its module, and its name there.

    has_boundary: whether the public form of a function has a boundary.
    """

    origin: str
    attribute: str
    has_boundary: bool = True


class _Origin:
    """The placeholder of a module from which a recorded block imports names."""

    def __init__(self, name: str) -> None:
        self.full_name = name

    def __getattr__(self, attribute: str) -> _LateName:
        return _LateName(self.full_name, attribute)


class _LateValue(ModuleType):
    """The placeholder of a module, function or class in a namespace; its first use puts the value in its place."""

    def __init__(self, namespace: dict[str, Any], name: str, origin: str, attribute: str | None) -> None:
        super().__init__(name)
        self._namespace, self._origin, self._attribute = namespace, origin, attribute

    def _load(self) -> Any:
        value: Any = importlib.import_module(self._origin)
        if self._attribute is not None:
            full_name = f"{self._origin}.{self._attribute}"
            is_there = hasattr(value, self._attribute)
            value = getattr(value, self._attribute) if is_there else importlib.import_module(full_name)
        self._namespace[self.__name__] = value
        return value

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._load(), attribute)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._load()(*arguments, **keywords)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._load())


class _PublicModule(ModuleType):
    """A module with late names, all of which load when its ``__dict__`` is read, as by ``vars(module)``."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        namespace = get_namespace(self)
        for name in namespace["_late"]:
            # Not all names exist with all releases of ml_dtypes.
            hasattr(self, name)
        return namespace

    def __reduce__(self) -> tuple[Any, ...]:
        # cloudpickle knows modules of the class `ModuleType` itself only.
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        # Python's own method would read the ``__dict__``.
        names: list[str] = get_namespace(self)["__dir__"]()
        return names


# Returns the namespace of a module, and loads no names.
get_namespace: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__

# Maps the module and the name of a function or class to its public name.
public_names: dict[tuple[str, str], str] = {}

# One block at a time, because a block replaces Python's import function.
_block = threading.Lock()


@contextlib.contextmanager
def _record_imports(namespace: dict[str, Any]) -> Iterator[None]:
    """Bind each name that a block imports into the module of `namespace` to a placeholder, and load nothing."""

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
def late_imports(namespace: dict[str, Any], listed: bool = True, quick: tuple[str, ...] = ()) -> Iterator[None]:
    """Let each name that a block imports into the module of `namespace` load at its first use.

    listed: whether ``__all__`` and ``dir`` have the names. quick: functions without a boundary, because it would take
    longer than they do.
    """
    with _record_imports(namespace):
        yield
    names = {name: value for name, value in namespace.items() if type(value) is _LateName}
    for name in names:
        del namespace[name]
    late = namespace.setdefault("_late", {})
    late |= names | {name: names[name]._replace(has_boundary=False) for name in quick}
    for name, late_name in names.items():
        register_public_name(namespace["__name__"], name, late_name.origin, late_name.attribute)
    namespace["__all__"] = sorted({*namespace.get("__all__", ()), *(names if listed else ())})
    namespace["__getattr__"] = functools.partial(_load, namespace["__name__"], late)
    namespace["__dir__"] = functools.partial(list_names, namespace)
    sys.modules[namespace["__name__"]].__class__ = _PublicModule


def register_public_name(module: str, name: str, origin: str, attribute: str) -> None:
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


def list_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the public names of a module without loading them."""
    return list(namespace["__all__"])


def assemble_layers() -> None:
    """Import the private layers as a whole; wait for the thread that does so already."""
    importlib.import_module(f"{__package__}._src")


# The layers set it when they are assembled.
_make_public_form: Callable[[str, str, Any, bool], Any]


def set_public_form_maker(maker: Callable[[str, str, Any, bool], Any]) -> None:
    """Set the function that makes a public form from a module, a name, a value, and whether it gets a boundary."""
    global _make_public_form
    _make_public_form = maker


def jax_is_xtrace() -> bool:
    """Return whether ``import jax`` means xtrace in this process."""
    return sys.modules.get("jax") is sys.modules["xtrace"]


# Where a name is looked for that another module lacks. Importing them takes two milliseconds; linalg would take more.
_SEARCHED = ("numpy", "lax", "nn", "random", "scipy.special")


def _find_elsewhere(name: str, is_jax: bool) -> str:
    """Return the end of a message that says which public modules have a missing name; empty if none has it."""
    if name.startswith("_"):
        return ""
    modules, own = (("tree",), name[5:]) if name.startswith("tree_") else (_SEARCHED, name)
    root = "jax" if is_jax else "xtrace"
    places = [m for m in modules if own in importlib.import_module(f"{__package__}.{m}").__all__]
    return f"; there is {' and '.join([f'{root}.{m}.{own}' for m in places])}" if places else ""


def _load(module: str, late: Mapping[str, _LateName], name: str) -> Any:
    """Load and return the object `name` of `module`; AttributeError if there is no such late name."""
    is_jax = jax_is_xtrace()
    if name not in late:
        where = _find_elsewhere(name, is_jax)
        if is_jax and not where:
            where = "; docs/compatibility.md in xtrace's repository lists the parts of JAX that are missing"
        try:
            raise AttributeError(f"module {module!r} has no attribute {name!r}{where}")
        except AttributeError as error:
            error.__traceback__ = None  # a bare `raise` adds no line of this function
            raise
    origin, attribute, has_boundary = late[name]
    if origin == module:
        # The import under jax's name enters the module into sys.modules under both names.
        package = f"jax{module[6:]}" if is_jax else module
        return importlib.import_module(f"{package}.{attribute}")
    assemble_layers()
    value = getattr(importlib.import_module(origin), attribute)
    form = _make_public_form(module, name, value, has_boundary)
    setattr(sys.modules[module], name, form)
    return form


@contextlib.contextmanager
def late_modules(namespace: dict[str, Any]) -> Iterator[None]:
    """Let each module that a block imports into the module of `namespace` load at its first use.

    Its lines are ``import module``, ``from package import module`` or ``from module import function``. The name of a
    function or class is called, has its attributes read, or is an argument of `isinstance`; it is not passed on or
    compared. Type checkers see ordinary imports.
    """
    with _record_imports(namespace):
        yield
    for name, value in list(namespace.items()):
        if isinstance(value, _LateName):
            namespace[name] = _LateValue(namespace, name, value.origin, value.attribute)
        elif isinstance(value, _Origin):
            namespace[name] = _LateValue(namespace, name, value.full_name, None)
