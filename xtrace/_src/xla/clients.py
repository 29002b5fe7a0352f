"""PJRT clients and their devices: one client for each platform, made at its first use."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from jaxlib import _jax, xla_client

from xtrace._late_imports import late_modules
from xtrace._src.xla.processes import distributed

with late_modules(globals()):
    from xtrace._src.xla.plugins import plugins

Client: TypeAlias = _jax.Client
Device: TypeAlias = _jax.Device

# Maps the name of a platform to its client, once that is made.
started_clients: dict[str, Client] = {}
_lock = threading.RLock()
_is_forked = False
_default: list[str] = []


class Request(NamedTuple):
    """The settings of clients.

    platforms: comma-separated names, or None. cpu_devices: the number of CPU devices; None or less than one for the
    number in XLA_FLAGS. asynchronous: whether programs on CPU run while Python goes on. cuda_devices, rocm_devices:
    comma-separated numbers, or "all". options: options of an accelerator's client, as ``name:value;name:value``.
    collectives: the library for exchanges between CPUs of several processes. topology_minutes: the time limits for the
    devices of this machine, and for all devices.
    """

    platforms: str | None = None
    cpu_devices: int | None = None
    asynchronous: bool = True
    cuda_devices: str | None = None
    options: str | None = None
    collectives: str | None = "gloo"
    topology_minutes: tuple[int, int] = (2, 5)
    rocm_devices: str | None = None


class Factory(NamedTuple):
    """A platform that a user registered: `make` makes its client.

    priority: the platform with the highest priority is the default; CPU has 0, GPUs 200, TPUs 300, other plugins 400.
    quiet: whether another platform becomes the default if the client cannot be made. experimental: whether a warning
    says that the platform is experimental.
    """

    make: Callable[[], Client | None]
    priority: int = 0
    quiet: bool = True
    experimental: bool = False


# Maps the name of a platform to a user's factory of its client.
factories: dict[str, Factory] = {}
_PRIORITIES = {"cpu": 0, "cuda": 200, "rocm": 200, "tpu": 300}
_logger = logging.getLogger("xtrace")
_requested: list[Callable[[], Request]] = []


def set_request(settings: Callable[[], Request]) -> None:
    """Set the function that returns the settings of clients."""
    _requested[:] = [settings]


def _settings() -> Request:
    return _requested[0]() if _requested else Request()


def check_not_started(platform: str, setting: str) -> None:
    """Raise RuntimeError if the client of `platform` is made already, so that `setting` comes too late."""
    if platform in started_clients:
        raise RuntimeError(
            f"{setting} is read when the {platform} client is made, and that has happened: set it before the first "
            f"computation, or in the environment, as {setting.upper().replace('JAX_', 'XTRACE_')}"
        )


def any_started() -> bool:
    """Return whether any client is made already."""
    return bool(started_clients)


def client(platform: str | Client | None = None) -> Client:
    """Return the client of a platform, by default of the default one; RuntimeError if there is none.

    A client is returned unchanged.
    """
    if isinstance(platform, _jax.Client):
        return platform
    name = canonical_platform(platform) if platform is not None else default_platform()
    known = started_clients.get(name)
    if known is not None:
        return known
    with _lock:
        if name not in started_clients:
            started_clients[name] = _make(name)
        return started_clients[name]


def canonical_platform(platform: str) -> str:
    """Return the name of a platform; ``gpu`` is CUDA, or ROCm on a machine with only AMD GPUs."""
    if not isinstance(platform, str):
        raise TypeError(f"a platform is named by a string, such as 'cpu', got {platform!r}")
    name = platform.lower()
    if name != "gpu":
        return name
    return "rocm" if os.path.exists("/dev/kfd") and not os.path.exists("/dev/nvidiactl") else "cuda"


def lowering_platform(device: Any) -> str:
    """Return the platform for which programs on `device` are lowered: ``cuda`` or ``rocm`` for a GPU.

    jaxlib calls the platform of both ``gpu``; their client's version tells them apart.
    """
    if device.platform != "gpu":
        return str(device.platform)
    client = getattr(device, "client", None)
    return "rocm" if client is not None and "rocm" in client.platform_version else "cuda"


def is_compile_only(device: Any) -> bool:
    """Return whether a device is for compiling only, and cannot run programs."""
    return isinstance(getattr(device, "client", None), _jax.CompileOnlyPyClient)


def _make(name: str) -> Client:
    _watch_forks()
    if name in factories:
        return _make_registered(name, factories[name])
    request = _settings()
    if name == "cpu":
        count = {"num_devices": request.cpu_devices} if (request.cpu_devices or 0) > 0 else {}
        together = distributed.cpu_client_options(request.collectives, request.topology_minutes)
        return xla_client.make_cpu_client(asynchronous=request.asynchronous, **count, **together)
    if plugins.is_known(name):
        chosen = {"cuda": request.cuda_devices, "rocm": request.rocm_devices}.get(name)
        numbers = plugins.device_numbers(f"jax_{name}_visible_devices", chosen)
        together = distributed.plugin_client_options()
        return plugins.load(name, visible_devices=numbers, more_options=request.options, **together)
    raise RuntimeError(
        f"there is no platform {name!r}; the platforms are cpu, cuda (or gpu), rocm, tpu, and those that "
        "PJRT_NAMES_AND_LIBRARY_PATHS or an installed package with a PJRT plugin names"
    )


def _make_registered(name: str, factory: Factory) -> Client:
    if factory.experimental:
        _logger.warning("the platform %s is registered as experimental: programs may fail on it", name)
    try:
        made = factory.make()
    except Exception as error:
        raise RuntimeError(f"the platform {name!r} does not start: {error}") from error
    if not isinstance(made, _jax.Client):
        raise TypeError(f"the factory of the platform {name!r} must return jaxlib's Client, got {made!r}")
    return made


@functools.cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn_of_fork)


_FORKED = (
    "has none of XLA's threads, without which computations hang. Start processes with "
    "multiprocessing.get_context('spawn'), or fork before the first computation"
)


def _warn_of_fork() -> None:
    warnings.warn(
        f"os.fork() in a process with XLA's threads: the child {_FORKED}", RuntimeWarning, stacklevel=2
    )


def note_fork() -> bool:
    """Note, in a forked process, whether the parent's clients are here without their threads, and return it."""
    global _is_forked
    _is_forked = any_started()
    for each in started_clients.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))  # its destructor would wait for the threads
    return _is_forked


def check_threads(what: str) -> None:
    """Raise RuntimeError with the beginning `what` in a process that was forked after clients were made."""
    if _is_forked:
        raise RuntimeError(f"{what}: this process was forked from one with clients of devices, and {_FORKED}")


def default_platform() -> str:
    """Return the platform of new data: the first one in the settings, else an accelerator if present, else CPU."""
    if _default:
        return _default[0]
    with _lock:
        if not _default:
            wanted = _settings().platforms
            if wanted:
                _default.append(canonical_platform(wanted.split(",")[0]))
            else:
                _default.append(_first_that_starts(_candidates()))
        return _default[0]


def _candidates() -> list[str]:
    """Return the platforms that may be the default one, by priority."""
    ranks = {name: _PRIORITIES.get(name, 400) for name in plugins.available_platforms()}
    ranks |= {name: factory.priority for name, factory in factories.items() if factory.priority > 0}
    return sorted(ranks, key=ranks.__getitem__, reverse=True)


def _first_that_starts(platforms: Sequence[str]) -> str:
    """Return the first of the platforms whose client can be made; CPU, with a warning, if a driver is broken."""
    for name in platforms:
        try:
            client(name)
        except Exception as error:
            if name in factories:
                if not factories[name].quiet:
                    raise
                _logger.info("%s; another platform is the default", error)
                continue
            warnings.warn(f"the platform {name} is there but does not start ({error}); using cpu", stacklevel=4)
        else:
            return name
    return "cpu"


def devices(platform: str | None = None) -> list[Device]:
    """Return all devices of `platform`, or of the default one."""
    return list(client(platform).devices())


def local_devices(platform: str | None = None) -> list[Device]:
    """Return the devices of this process."""
    return list(client(platform).local_devices())


def start_all() -> dict[str, Client]:
    """Start the platforms in the settings, or all that are present, and return the clients by platform."""
    wanted = _settings().platforms
    if wanted:
        for name in wanted.split(","):
            client(name)
        return dict(started_clients)
    default_platform()
    for name in ("cpu", *_candidates(), *factories):
        try:
            client(name)
        except Exception as error:
            if name in factories and not factories[name].quiet:
                raise
            _logger.info("the platform %s does not start: %s", name, error)
    return dict(started_clients)


def clear_clients() -> None:
    """Forget all clients, so that the next use of a platform makes its client anew; arrays keep theirs alive."""
    if distributed.connection() is not None:
        raise RuntimeError(
            "clients of a program of several processes cannot be made anew: the others use them. Call "
            "xtrace.distributed.shutdown() first"
        )
    check_threads("the clients cannot be made anew")
    with _lock:
        started_clients.clear()
        _default.clear()


def xla_version(platform: str | Client | None) -> int | None:
    """Return a client's version of XLA; None if it has none."""
    try:
        return int(client(platform).xla_version)
    except AttributeError:
        return None
