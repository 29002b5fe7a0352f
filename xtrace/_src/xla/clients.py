"""PJRT clients and their devices: made on first use, one for each platform."""

from __future__ import annotations

import functools
import logging
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from jaxlib import _jax, xla_client

from xtrace._src.xla import distributed
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.xla import plugins

Client: TypeAlias = _jax.Client
Device: TypeAlias = _jax.Device

# The clients that have been made, by platform.
started_clients: dict[str, Client] = {}
_lock = threading.RLock()
_default: list[str] = []


class Request(NamedTuple):
    """The clients that are wanted.

    platforms: comma-separated, or None. cpu_devices: None or less than one for the number in XLA_FLAGS. asynchronous:
    whether programs on CPU run while Python goes on. cuda_devices, rocm_devices: comma-separated numbers, or "all".
    options: of an accelerator's client, as in ``name:value;name:value``. collectives: how CPUs of several processes
    exchange data. topology_minutes: how long they wait for the devices of their machine, and for all.
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
    """How the client of a platform is made that a user registered.

    priority: the platform with the highest one is the default; CPU has 0, GPUs 200, TPUs 300, other plugins 400. quiet:
    whether another platform is the default where the client cannot be made. experimental: whether a warning says so.
    """

    make: Callable[[], Client | None]
    priority: int = 0
    quiet: bool = True
    experimental: bool = False


# The platforms that users registered.
factories: dict[str, Factory] = {}
_PRIORITIES = {"cpu": 0, "cuda": 200, "rocm": 200, "tpu": 300}
_logger = logging.getLogger("xtrace")
_requested: list[Callable[[], Request]] = []


def request_with(settings: Callable[[], Request]) -> None:
    """Say how to ask which clients are wanted."""
    _requested[:] = [settings]


def _settings() -> Request:
    return _requested[0]() if _requested else Request()


def check_not_started(platform: str, setting: str) -> None:
    """Raise a RuntimeError if the client of `platform`, which is made as `setting` says, is there already."""
    if platform in started_clients:
        raise RuntimeError(
            f"{setting} is read when the {platform} client is made, and that has happened: set it before the first "
            f"computation, or in the environment, as {setting.upper().replace('JAX_', 'XTRACE_')}"
        )


def any_started() -> bool:
    """Return whether a client is there already."""
    return bool(started_clients)


def client(platform: str | Client | None = None) -> Client:
    """Return the client of `platform`, its name or a client, or of the default one; RuntimeError if there is none."""
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
    """Return the name of a platform; ``gpu`` means CUDA, or ROCm on a machine with an AMD GPU alone."""
    if not isinstance(platform, str):
        raise TypeError(f"a platform is named by a string, such as 'cpu', got {platform!r}")
    name = platform.lower()
    if name != "gpu":
        return name
    return "rocm" if os.path.exists("/dev/kfd") and not os.path.exists("/dev/nvidiactl") else "cuda"


def lowering_platform(device: Any) -> str:
    """Return the platform that programs for `device` are lowered for: of GPUs ``cuda`` or ``rocm``.

    jaxlib calls the devices of both ``gpu``; their client's version says which they are.
    """
    if device.platform != "gpu":
        return str(device.platform)
    client = getattr(device, "client", None)
    return "rocm" if client is not None and "rocm" in client.platform_version else "cuda"


def is_compile_only(device: Any) -> bool:
    """Return whether a device is one of a compiler without devices, which runs nothing."""
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


def _warn_of_fork() -> None:
    warnings.warn(
        "os.fork() in a process with XLA's threads: the child has none of them, so its next computation hangs. Start "
        "processes with multiprocessing.get_context('spawn'), or fork before the first computation",
        RuntimeWarning,
        stacklevel=2,
    )


def default_platform() -> str:
    """Return the platform new data goes to: the first requested one, else an accelerator if present, else CPU."""
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
    """Return the platforms that may be the default one, the likeliest first."""
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
    """Start the platforms that the settings name, or all that are here, and return the clients by platform."""
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


def forget() -> None:
    """Let the next use of a platform make its client anew; clients that arrays or programs hold live on."""
    if distributed.connection() is not None:
        raise RuntimeError(
            "clients of a program of several processes cannot be made anew: the others use them. Call "
            "xtrace.distributed.shutdown() first"
        )
    with _lock:
        started_clients.clear()
        _default.clear()


def xla_version(platform: str | Client | None) -> int | None:
    """Return the version of XLA that a plugin says of itself; None where it says none."""
    try:
        return int(client(platform).xla_version)
    except AttributeError:
        return None
