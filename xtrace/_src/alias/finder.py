"""The import hook of the alias: ``jax`` and its modules are xtrace's, one module object under both names."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from xtrace._src.alias.placeholders import KERNEL_MODULES, PLACEHOLDERS, make_placeholder
from xtrace._src.alias.private_modules import PRIVATE_MODULES, make_private_module
from xtrace._src.core.arrays import name_classes_as_jax
from xtrace._src.core.diagnostics.positions import is_internal
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.garbage_collection import freeze_until_tracing
from xtrace._src.core.settings.jax_version import version

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.metadata import Distribution, DistributionFinder
else:
    # The import of the class' module takes a millisecond.
    Loader = object

_OUTSIDE = {
    "jax.experimental.pallas": "Pallas", "jax.experimental.mosaic": "Mosaic", "jax.experimental.jax2tf": "jax2tf",
}


class JaxFinder:
    """The finder of the module ``jax``, of its submodules, and of the distribution ``jax``."""

    @staticmethod
    @boundary
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of xtrace's module; ModuleNotFoundError for a module of jax that xtrace lacks."""
        if name != "jax" and not name.startswith("jax."):
            return None
        module = _find_module(name)
        return ModuleSpec(name, _ModuleLoader(module), is_package=hasattr(module, "__path__"))

    @staticmethod
    def find_distributions(context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """Return the distribution ``jax``, if the context asks for it or for all."""
        name = None if context is None else context.name
        if name is not None and name.lower() != "jax":
            return []
        # The import of the distribution's module takes 10 ms, so it is late.
        return [importlib.import_module("xtrace._src.alias.distribution").Jax()]


class AbsentNameFinder:
    """The last finder: it explains the missing names of ``from jax import name``."""

    @staticmethod
    @boundary
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Raise ModuleNotFoundError for a name below ``xtrace``."""
        if name.startswith("xtrace.") and not name.startswith("xtrace._src"):
            jax_name = f"jax{name[6:]}"
            raise ModuleNotFoundError(_explain_absence(jax_name, listed=True), name=jax_name)


def _parse_version() -> tuple[int, ...]:
    return tuple(map(int, version().split(".")))


def _find_module(name: str) -> ModuleType:
    if name in PRIVATE_MODULES:
        return make_private_module(name, version(), _parse_version())
    if name in PLACEHOLDERS:
        return make_placeholder(name)
    own = f"xtrace{name[3:]}"
    try:
        if not name.startswith("jax._src"):
            return importlib.import_module(own)
    except ModuleNotFoundError as error:
        if error.name is None or not (f"{own}.".startswith(f"{error.name}.") or error.name == name):
            raise
    # The error names another module: Python drops the message of an error that names an item of the import list.
    raise ModuleNotFoundError(_explain_absence(name), name="jax" if name.startswith("jax._src") else name) from None


def _explain_absence(name: str, listed: bool = False) -> str:
    """Return the message for a missing module of jax, or for a missing name `listed` in an import from a module."""
    outside = next((shown for prefix, shown in _OUTSIDE.items() if f"{name}.".startswith(f"{prefix}.")), None)
    if outside is not None:
        why = f"{outside} is outside of what xtrace does; call kernels of your own with xtrace.ffi"
    elif name.startswith("jax._src"):
        why = "it is private to jax; xtrace.alias_names() lists the private modules that xtrace has for libraries"
    else:
        why = "xtrace does not have it; docs/compatibility.md in its repository says what runs, and what is outside"
    parent, _, last = name.rpartition(".")
    is_name = listed or (parent in PRIVATE_MODULES and parent != "jax._src")
    absence = f"cannot import name {last!r} from {parent!r}" if is_name else f"No module named {name!r}"
    return f"{absence}: jax is xtrace in this process (xtrace.as_jax), and {why}{_find_importer()}"


def _find_importer() -> str:
    """Return a sentence with the importing line; empty if it is unknown."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen") and not is_internal(file):
            return f". Imported at {file}:{frame.f_lineno} ({frame.f_globals.get('__name__', '?')})"
        frame = frame.f_back
    return ""


class _ModuleLoader(Loader):
    """Loads a module that exists already, and keeps its spec."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced the spec by the spec of the other name.
        module.__spec__ = self.spec


def as_jax() -> None:
    """Make ``import jax`` import xtrace, in this process, from now on.

    Each public module of jax is xtrace's module, one object under both names. ``jax.__version__`` and the version of
    the distribution ``jax`` are of the release with xtrace's behaviour. jax need not be installed. A second call does
    nothing. On the command line use ``python -m xtrace run script.py``, in pytest ``-p xtrace.pytest_plugin``, and in
    a notebook ``%load_ext xtrace``.

    Raises:
        RuntimeError: jax was imported before.

    Example:
        >>> xtrace.as_jax()  # doctest: +SKIP
        >>> import jax.numpy as jnp  # doctest: +SKIP
    """
    package = sys.modules["xtrace"]
    imported = sys.modules.get("jax")
    if imported is package:
        return
    if imported is not None:
        raise RuntimeError(
            f"as_jax: jax {getattr(imported, '__version__', '')} is imported already, and modules that imported it "
            "would keep it. Call xtrace.as_jax() before the first import of jax and of libraries that import it, or "
            "start the program with python -m xtrace run"
        )
    package.__version__, package.__version_info__ = version(), _parse_version()  # type: ignore[attr-defined]
    sys.meta_path.insert(0, JaxFinder)
    sys.meta_path.append(AbsentNameFinder)
    # Log records come from jax's logger, with its level and handlers.
    logger = logging.getLogger("xtrace")
    logger.parent, logger.name = logging.getLogger("jax"), "jax"
    sys.modules["jax"] = package
    name_classes_as_jax()
    freeze_until_tracing()
    sys.modules["jax.version"] = package.version = _find_module("jax.version")  # type: ignore[attr-defined]
    # Libraries look it up in sys.modules, where the import of jax enters it.
    sys.modules["jax.tree_util"] = _find_module("jax.tree_util")
    sys.modules.update({name: make_placeholder(name) for name in KERNEL_MODULES})
    # Programs read private names as attributes; xtrace's own modules read none of xtrace._src so.
    sys.modules["jax._src"] = package._src = _find_module("jax._src")  # type: ignore[attr-defined]


def load_ipython_extension(ipython: object) -> None:
    """Make ``import jax`` import xtrace in a notebook; ``%load_ext xtrace`` calls this function.

    Args:
        ipython: the shell; not used.

    Raises:
        RuntimeError: jax was imported before.

    Example:
        >>> xtrace.load_ipython_extension(None)  # doctest: +SKIP
    """
    as_jax()


def alias_names() -> list[str]:
    """Return the names of jax's private modules that exist after `as_jax`.

    Returns:
        A sorted list of names.

    Example:
        >>> "jax._src.core" in xtrace.alias_names()
        True
    """
    return sorted(PRIVATE_MODULES)
