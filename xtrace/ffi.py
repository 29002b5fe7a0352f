"""Foreign functions: compiled code of the user's own in XLA programs, as ``jax.ffi`` has them."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.ops.ffi import ffi_call, ffi_lowering
from xtrace._src.xla import ffi as _ffi

__all__ = [
    "ffi_call", "ffi_lowering", "include_dir", "pycapsule", "register_ffi_target",
    "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id",
]


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a handler under the name that `ffi_call` uses.

    fn: a capsule of the handler, see `pycapsule`, or a dict of capsules for the stages ``instantiate``, ``prepare``,
    ``initialize`` and ``execute``. platform: ``cpu``, ``cuda``, ``rocm`` or ``tpu``. api_version: 1 for XLA's typed
    interface, 0 for the older one. TypeError if `name` is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"register_ffi_target: name must be a string, got {abbreviated(name)}")
    if type(fn).__name__ not in ("PyCapsule", "dict"):
        raise TypeError(
            f"register_ffi_target: fn must be a capsule, see ffi.pycapsule, or a dict of them; got {abbreviated(fn)}"
        )
    _ffi.register_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register a type that handlers keep state in: a dict with the capsules ``type_id`` and ``type_info``."""
    _ffi.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Register the id, a capsule, of a type that handlers keep state in."""
    _ffi.register_type(name, obj, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that calls of the handler may be split over devices along their batch axes."""
    _ffi.mark_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """Return a function pointer of ctypes, such as ``library.Handler``, as the capsule that XLA takes."""
    return _ffi.capsule(funcptr)


def include_dir() -> str:
    """Return the folder of the header files that handlers are compiled with."""
    return _ffi.include_folder()


_make_public(globals(), __all__)
