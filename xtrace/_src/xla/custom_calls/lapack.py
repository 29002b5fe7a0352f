"""jaxlib's LAPACK kernels as targets of custom calls: registered, with LAPACK itself loaded, at first use."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
from jaxlib import xla_client

# LAPACK's letters for the element types it knows.
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

_lock = threading.Lock()
_registered: list[bool] = []


def supports(dtype: np.dtype[Any]) -> bool:
    """Whether LAPACK has routines for elements of `dtype`."""
    return np.dtype(dtype).name in _LETTERS


def register() -> None:
    """Load LAPACK and register jaxlib's CPU targets with XLA, once in a process."""
    with _lock:
        if _registered:
            return
        library = importlib.import_module("jaxlib.lapack")
        # Preparing one routine loads all. Before, the targets' pointers are null, and a call aborts the process.
        library.prepare_lapack_call("potrf_ffi", np.dtype(np.float32))
        for platform, targets in library.registrations().items():
            for name, function, version in targets:
                xla_client.register_custom_call_target(name, function, platform=platform, api_version=version)
        _registered.append(True)


def target(routine: str, dtype: Any) -> str:
    """Return the registered custom call target of a LAPACK routine, such as ``getrf``, for elements of `dtype`.

    Raises KeyError for a dtype without routines (`supports`).
    """
    register()
    return f"lapack_{_LETTERS[np.dtype(dtype).name]}{routine}_ffi"
