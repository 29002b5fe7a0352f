"""Platforms, their clients and compile options (``jax.extend.backend``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xtrace._src.api.compilation.compilation import get_compiler_options
from xtrace._src.api.jit.jit_cache import clear_caches
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.primitive import forget_programs
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.settings import config
from xtrace._src.core.tables import clear_with_tables
from xtrace._src.runtime.transfer import current_device, forget_first_device
from xtrace._src.xla import clients
from xtrace._src.xla.clients import Client, Factory
from xtrace._src.xla.executables import executables

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend",
    "get_compile_options", "get_default_device", "register_backend_cache", "register_backend_factory",
]


def backends() -> dict[str, Client]:
    """Start the clients of all platforms of this machine, and return them.

    Returns:
        A dict from the names of platforms to jaxlib's clients.

    Raises:
        RuntimeError: a platform in the setting ``jax_platforms`` does not start.

    Example:
        >>> xtrace.extend.backend.backends()["cpu"].platform
        'cpu'
    """
    return clients.start_all()


def get_backend(platform: str | Client | None = None) -> Client:
    """Return the client of a platform.

    Args:
        platform: its name, such as ``"cpu"``; None for the default platform. A client is returned unchanged.

    Returns:
        jaxlib's client.

    Raises:
        RuntimeError: there is no such platform, or it does not start.

    Example:
        >>> xtrace.extend.backend.get_backend("cpu").platform
        'cpu'
    """
    return clients.client(platform)


# JAX keeps what it returned, and tests empty that; here the clients themselves are looked up.
get_backend.cache_clear = lambda: None  # type: ignore[attr-defined]


def get_default_device() -> Any:
    """Return the default device of arrays.

    Returns:
        The device of the setting ``jax_default_device``, or the first one.

    Example:
        >>> xtrace.extend.backend.get_default_device() == xtrace.local_devices()[0]
        True
    """
    return current_device()


def backend_xla_version(platform: str | None = None) -> int | None:
    """Return the version of XLA in a platform's plugin.

    Args:
        platform: the name of the platform; None for the default platform.

    Returns:
        An integer; None for platforms without a plugin, such as CPU, and for plugins that do not report it.

    Raises:
        RuntimeError: there is no such platform, or it does not start.

    Example:
        >>> xtrace.extend.backend.backend_xla_version("cpu") is None
        True
    """
    return clients.xla_version(platform)


def clear_backends(_crash: bool = False) -> None:
    """Forget the clients of all platforms and all compiled programs; their next use starts new clients.

    Existing arrays stay on the devices of their client, and programs run on them there.

    Args:
        _crash: not used; a client lives as long as its arrays.

    Raises:
        RuntimeError: the program runs in several processes, which share the clients.

    Example:
        >>> callable(xtrace.extend.backend.clear_backends)  # a call would change the devices of this page
        True
    """
    clients.clear_clients()
    clear_caches()
    forget_first_device()


def clear_in_memory_compilation_cache() -> None:
    """Forget the compiled programs of operations called outside of `jit`.

    Functions made by `jit` keep their programs, as in JAX; `xtrace.clear_caches` forgets these programs, too.

    Example:
        >>> xtrace.extend.backend.clear_in_memory_compilation_cache()
    """
    forget_programs()


def get_compile_options(
    num_replicas: int, num_partitions: int, device_assignment: Any = None,
    env_options_overrides: Mapping[str, Any] | None = None, fdo_profile: bytes | None = None,
    detailed_logging: bool = True, backend: Client | None = None,
) -> Any:
    """Return XLA's options for the compilation of a module, with the options in the settings.

    Args:
        num_replicas: the number of copies of the program.
        num_partitions: the number of devices for each copy.
        device_assignment: an array of devices, or of their numbers, with the shape (num_replicas, num_partitions); the
            last axis may be missing if it is 1. None for the runtime's choice.
        env_options_overrides: flags of XLA by name, or None.
        fdo_profile: a profile of the program that the compiler may use, or None.
        detailed_logging: whether XLA's logs may describe the program.
        backend: the client; not used.

    Returns:
        jaxlib's CompileOptions.

    Raises:
        TypeError: a number is not an integer.
        ValueError: the shape of `device_assignment` does not agree with the numbers.

    Example:
        >>> xtrace.extend.backend.get_compile_options(1, 2).num_partitions
        2
    """
    numbers = {"num_replicas": num_replicas, "num_partitions": num_partitions}
    for name, number in numbers.items():
        if not isinstance(number, (int, np.integer)):
            raise TypeError(f"get_compile_options: {name} must be an integer, got {abbreviate(number)}")
    grid = None if device_assignment is None else np.array(device_assignment, object)
    if grid is not None:
        given = grid.shape
        if grid.ndim == 1:
            grid = grid[:, None]
        if grid.shape != (num_replicas, num_partitions):
            raise ValueError(
                f"get_compile_options: device_assignment has the shape {given}, and must have "
                f"({num_replicas}, {num_partitions}): a row for each replica, with a device for each partition"
            )
    levels = {"memory_fitting_level": config.memory_fitting_level.value}
    options = levels | get_compiler_options() | dict(env_options_overrides or {})
    return executables.options_for_copies(
        int(num_replicas), int(num_partitions), grid, options, fdo_profile, detailed_logging
    )


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Register a cache: `xtrace.clear_caches` and `clear_backends` empty it, too.

    Args:
        cache: an object with a method ``cache_clear()``, such as a function decorated by `functools.lru_cache`.
        for_what: the purpose of the cache, for messages.

    Raises:
        TypeError: `cache` has no such method.

    Example:
        >>> import functools
        >>> squares = functools.lru_cache(lambda n: n * n)
        >>> xtrace.extend.backend.register_backend_cache(squares, "squares")
        >>> squares(3), xtrace.clear_caches(), squares.cache_info().currsize
        (9, None, 0)
    """
    clear: Any = getattr(cache, "cache_clear", None)
    if not callable(clear):
        raise TypeError(
            f"register_backend_cache: the cache for {for_what} must have a method cache_clear(), like the results of "
            f"functools.lru_cache; got {abbreviate(cache)}"
        )
    clear_with_tables(clear)


def register_backend_factory(
    name: str, factory: Callable[[], Client | None], *, priority: int = 0, fail_quietly: bool = True,
    experimental: bool = False, make_topology: Callable[..., Any] | None = None, c_api: object = None,
) -> None:
    """Register a platform, by the function that makes its client at its first use.

    Args:
        name: the platform's name, for functions such as `xtrace.devices`. The platform of the client's devices decides
            the lowering of programs.
        factory: a function without arguments that returns jaxlib's client.
        priority: the platform with the highest priority is the default one, unless a setting names another one or
            another one is started already. CPU has 0, GPUs 200, TPUs 300, plugins 400.
        fail_quietly: whether another platform becomes the default if the factory raises an error.
        experimental: whether to log a warning when the client is made.
        make_topology: not used; `xtrace.experimental.topologies` describes devices of other machines.
        c_api: not used.

    Raises:
        TypeError: `name` is not a string, or `factory` is not a function.

    Example:
        >>> from xtrace.extend import backend
        >>> backend.register_backend_factory("example", lambda: backend.get_backend("cpu"))
        >>> xtrace.devices("example") == xtrace.devices("cpu")
        True
    """
    if not isinstance(name, str):
        raise TypeError(f"register_backend_factory: name must be a string, got {abbreviate(name)}")
    if not callable(factory):
        raise TypeError(f"register_backend_factory: factory must be a function, got {abbreviate(factory)}")
    clients.factories[name.lower()] = Factory(factory, priority, fail_quietly, experimental)


_make_public(globals(), __all__)
