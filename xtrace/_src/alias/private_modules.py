"""Private modules of jax, mostly ``jax._src``, for well-known libraries that import them.

xtrace's own code uses none of them.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

# For each private module, the modules with its names, in the order of the search.
PRIVATE_MODULES: dict[str, tuple[str, ...]] = {
    "jax.version": (),
    "jax._src": (),
    "jax._src.ad_util": ("xtrace.lax", "xtrace.interpreters.ad"),
    "jax._src.api_util": ("xtrace.api_util",),
    "jax._src.checkify": ("xtrace.experimental.checkify",),
    "jax._src.core": ("xtrace.extend.core", "xtrace.core", "xtrace._src.alias.private_names"),
    "jax._src.dispatch": ("xtrace._src.alias.private_names",),
    "jax._src.dtypes": ("xtrace.dtypes", "xtrace._src.core.dtypes", "xtrace._src.alias.private_names"),
    "jax._src.earray": ("xtrace.experimental",),
    "jax._src.flatten_util": ("xtrace.flatten_util",),
    "jax._src.interpreters": ("xtrace.interpreters",),
    "jax._src.traceback_util": ("xtrace.extend.source_info_util", "xtrace._src.alias.private_names"),
    "jax._src.tree_util": ("xtrace.tree_util", "xtrace._src.alias.private_names"),
    "jax._src.random": ("xtrace.random",),
    "jax._src.numpy": ("xtrace.numpy",),
    "jax._src.test_util": ("xtrace._src.alias.random_operands", "xtrace._src.alias.test_cases", "xtrace.test_util"),
    "jax._src.typing": ("xtrace.typing", "xtrace._src.core.annotations"),
    "jax._src.config": ("xtrace._src.core.config",),
    "jax._src.util": ("xtrace.api_util", "xtrace._src.alias.private_names"),
    "jax._src.xla_bridge": ("xtrace._src.alias.private_names",),
    "jax._src.compiler": ("xtrace._src.alias.private_names",),
    "jax._src.state": ("xtrace.ref",),
    "jax._src.state.types": ("xtrace.ref",),
    "jax._src.callback": ("xtrace._src.alias.private_names",),
    "jax._src.literals": ("xtrace._src.alias.private_names",),
    "jax._src.lib": ("jaxlib",),
}


def make_private_module(name: str, version: str, version_info: tuple[int, ...]) -> ModuleType:
    """Return a new module for the private module `name` of jax."""
    module = ModuleType(name, f"Names of {name}, a private module of jax, for libraries that use them.")
    sources = PRIVATE_MODULES[name]

    def getattribute(attribute: str) -> Any:
        for source in sources:
            value = getattr(importlib.import_module(source), attribute, module)
            if value is not module:
                setattr(module, attribute, value)
                return value
        if f"{name}.{attribute}" in PRIVATE_MODULES:
            return importlib.import_module(f"{name}.{attribute}")
        raise AttributeError(
            f"module {name!r} has no attribute {attribute!r}: jax is xtrace in this process, and of jax's "
            "private modules it has only the names that well-known libraries use"
        )

    module.__getattr__ = getattribute  # type: ignore[method-assign]
    module.__path__ = []
    if name == "jax.version":
        vars(module).update(__version__=version, __version_info__=version_info)
    return module
