"""PJRT clients and their devices: made on first use, one for each platform."""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _jax, xla_client

Client = _jax.Client
Device = _jax.Device

_clients: dict[str, Any] = {}
_lock = threading.RLock()
_default: list[str] = []
_requested: list[Callable[[], tuple[str | None, int | None]]] = []


def request_with(settings: Callable[[], tuple[str | None, int | None]]) -> None:
    """Say how to ask for the wanted platforms (comma-separated, or None) and the number of CPU devices."""
    _requested[:] = [settings]


def _settings() -> tuple[str | None, int | None]:
    return _requested[0]() if _requested else (None, None)


def client(platform: str | None = None) -> Any:
    """Return the client of `platform`, or of the default platform; RuntimeError if there is none."""
    name = canonical_platform(platform) if platform is not None else default_platform()
    found = _clients.get(name)
    if found is not None:
        return found
    with _lock:
        if name not in _clients:
            _clients[name] = _make(name)
        return _clients[name]


def canonical_platform(platform: str) -> str:
    """Return the name of a platform as devices have it; ``gpu`` means CUDA."""
    if not isinstance(platform, str):
        raise TypeError(f"a platform is named by a string, such as 'cpu', got {platform!r}")
    return {"gpu": "cuda"}.get(platform.lower(), platform.lower())


def _make(name: str) -> Any:
    if name == "cpu":
        count = _settings()[1]
        return xla_client.make_cpu_client(num_devices=count) if count else xla_client.make_cpu_client()
    if name in ("cuda", "tpu"):
        return _plugins().load(name)
    raise RuntimeError(f"there is no platform {name!r}; the platforms are cpu, cuda (or gpu) and tpu")


def _plugins() -> Any:
    # Loaded on first need: a machine without an accelerator never pays for it.
    return importlib.import_module("xtrace.xla.plugins")


def default_platform() -> str:
    """Return the platform new data goes to: the first requested one, else an accelerator if present, else CPU."""
    if _default:
        return _default[0]
    with _lock:
        if not _default:
            wanted, _ = _settings()
            if wanted:
                _default.append(canonical_platform(wanted.split(",")[0]))
            else:
                _default.append(_first_that_starts(_plugins().available()))
        return _default[0]


def _first_that_starts(platforms: Sequence[str]) -> str:
    """Return the first of the platforms whose client can be made; CPU, with a warning, if a driver is broken."""
    for name in platforms:
        try:
            client(name)
        except Exception as error:
            warnings.warn(f"the platform {name} is there but does not start ({error}); using cpu", stacklevel=4)
        else:
            return name
    return "cpu"


def devices(platform: str | None = None) -> list[Any]:
    """Return all devices of `platform`, or of the default one."""
    return list(client(platform).devices())


def local_devices(platform: str | None = None) -> list[Any]:
    """Return the devices of this process."""
    return list(client(platform).local_devices())
