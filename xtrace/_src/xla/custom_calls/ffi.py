"""XLA's foreign functions: compiled code of users, registered under names that programs call."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import jaxlib
from jaxlib import xla_client

# Maps JAX's names of platforms to the names under which XLA registers handlers.
_PLATFORMS = {"gpu": ("CUDA", "ROCM"), "cuda": ("CUDA",), "rocm": ("ROCM",)}


def list_platform_names(platform: str) -> tuple[str, ...]:
    """Return XLA's names of a platform: ``cpu``, ``cuda``, ``rocm``, ``gpu`` for both of these, ``tpu``."""
    return _PLATFORMS.get(platform, (platform,))


def register_target(name: str, function: object, platform: str, api_version: int, **details: object) -> None:
    """Register a handler: a capsule, or a dict of capsules for the stages of a call."""
    for each in list_platform_names(platform):
        xla_client.register_custom_call_target(name, function, platform=each, api_version=api_version, **details)


def register_type(name: str, registration: object, platform: str) -> None:
    """Register a type of handlers' state: a capsule of its id, or a dict of capsules."""
    for each in list_platform_names(platform):
        xla_client.register_custom_type(name, registration, platform=each)


def mark_batch_partitionable(name: str) -> None:
    """Allow calls of the handler to be split over devices along their batch axes."""
    xla_client.register_custom_call_as_batch_partitionable(name)


def capsule(pointer: Any) -> Any:
    """Return a ctypes function pointer as a capsule for XLA."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(pointer, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


def include_folder() -> str:
    """Return the folder of XLA's header files."""
    return os.path.join(os.path.abspath(*jaxlib.__path__), "include")
