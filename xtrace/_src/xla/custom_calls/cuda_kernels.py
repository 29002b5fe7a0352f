"""The CUDA wheels' kernels (cuSOLVER, cuSPARSE, MAGMA and their own) as targets of custom calls.

XLA compiles a call only if its target is registered, which takes neither a GPU nor CUDA's libraries.
"""

from __future__ import annotations

import functools
import importlib
import threading
from typing import Any

from jaxlib import xla_client

_PLATFORM = "CUDA"
# XLA's number for handlers of its typed foreign function interface.
_TYPED = 1
_MODULES = ("_solver", "_linalg", "_sparse")

_lock = threading.Lock()
_hybrid: list[bool] = []


def register(package: str, plugin: object) -> None:
    """Register the kernels of `package`, such as ``jax_cuda12_plugin``, with a plugin that was just loaded.

    plugin: the capsule from loading it. It now also gets targets that were registered for CUDA before, such as a
    user's.
    """
    extension = importlib.import_module(f"{package}.cuda_plugin_extension")
    target = functools.partial(extension.register_custom_call_target, plugin)
    xla_client.register_custom_call_handler(_PLATFORM, target)
    xla_client.register_custom_type_handler(_PLATFORM, functools.partial(extension.register_custom_type, plugin))
    _register_types_and_handlers(extension)
    for name in _MODULES:
        _register_targets(importlib.import_module(f"{package}.{name}"))


def register_hybrid(package: str) -> None:
    """Register the kernels that also use LAPACK or MAGMA, `eig` and `geqp3`, once in a process.

    They use SciPy's LAPACK, which takes most of a second to load; without it, they abort the process.
    """
    with _lock:
        if _hybrid:
            return
        library = importlib.import_module(f"{package}._hybrid")
        library.initialize()
        _register_targets(library)
        _hybrid.append(True)


def _register_types_and_handlers(extension: object) -> None:
    """Register the plugin's own types and handlers, such as the handlers that call Python, if it has some."""
    for name, registration in getattr(extension, "ffi_types", dict)().items():
        xla_client.register_custom_type(name, registration, platform=_PLATFORM)
    for name, handler in getattr(extension, "ffi_handlers", dict)().items():
        xla_client.register_custom_call_target(name, handler, platform=_PLATFORM, api_version=_TYPED)


def _register_targets(library: Any) -> None:
    for name, function in library.registrations().items():
        xla_client.register_custom_call_target(name, function, platform=_PLATFORM, api_version=_TYPED)
