"""The capabilities of `xtrace.numpy`, for the inspection methods of the Python array API standard."""

from __future__ import annotations

from typing import Any

from xtrace._src.api.devices import devices
from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings import config

# Names of dtypes by kind; the 64-bit dtypes exist with x64 only.
_KINDS = {
    "bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"), "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}
_WITH_X64_ONLY = frozenset(["int64", "uint64", "float64", "complex128"])


class NamespaceInfo:
    """Capabilities, devices and dtypes of `xtrace.numpy`, by the standard's inspection methods."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities of all arrays, traced ones included: their shapes must not depend on values."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return None: the setting ``default_device`` gives the device of new arrays."""
        return None

    def devices(self) -> list[Any]:
        """Return the devices that hold arrays; None stands for the default one."""
        return [None, *devices()]

    def default_dtypes(self, *, device: object = None) -> dict[str, Any]:
        """Return the dtypes of results whose dtype is not given; `device` is ignored."""
        x64 = config.enable_x64.value
        return {
            "real floating": dtypes.default_float(x64), "complex floating": dtypes.default_complex(x64),
            "integral": dtypes.default_int(x64), "indexing": dtypes.default_int(x64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the standard's dtypes by name, of one kind or several; ValueError for an unknown kind."""
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        by_name: dict[str, Any] = {}
        for requested in kinds:
            if requested not in _KINDS and requested not in _UNIONS:
                raise ValueError(
                    f"dtypes: kind must be one of {[*_KINDS, *_UNIONS]}, or a tuple of them; got "
                    f"{abbreviate(requested)}"
                )
            for part in _UNIONS.get(requested, (requested,)):
                by_name |= {name: getattr(dtypes, "bool_" if name == "bool" else name) for name in _KINDS[part]}
        return {name: d for name, d in by_name.items() if config.enable_x64.value or name not in _WITH_X64_ONLY}


def __array_namespace_info__() -> NamespaceInfo:
    """Return an object that describes the module by the inspection methods of the array API standard.

    Returns:
        An object with `capabilities`, `default_device`, `default_dtypes`, `devices` and `dtypes`.

    Example:
        >>> jnp.__array_namespace_info__().capabilities()["boolean indexing"]
        False
    """
    return NamespaceInfo()
