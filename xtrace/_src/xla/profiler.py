"""jaxlib's profiler: one session at a time, annotations on its timeline, memory profiles, and the server."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from typing import Any

from jaxlib import _profile_data, _profiler

from xtrace._src.xla import clients

Annotation = _profiler.TraceMe
ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfileOptions = _profiler.ProfileOptions
ProfilePlane = _profile_data.ProfilePlane


class Session:
    """A recording, from the construction of this object until `stop`, in a folder."""

    def __init__(self, folder: str, options: Any | None, perfetto: bool) -> None:
        # Plugins have profilers of their devices, and are loaded with the client.
        clients.client()
        self.folder, self.perfetto = folder, perfetto
        os.makedirs(folder, exist_ok=True)
        self._session = _profiler.ProfilerSession(ProfileOptions() if options is None else options)

    def stop(self) -> str | None:
        """Write the recording, and return the path of the trace for Perfetto if that was requested."""
        self._session.stop_and_export(self.folder)
        return _write_for_perfetto(self.folder) if self.perfetto else None


def _write_for_perfetto(folder: str) -> str | None:
    """Copy the newest trace of the folder into a file that Perfetto's viewer reads; return its path."""
    runs = os.path.join(folder, "plugins", "profile")
    newest = max(os.listdir(runs), key=lambda name: os.path.getmtime(os.path.join(runs, name)))
    run = os.path.join(runs, newest)
    target = os.path.join(run, "perfetto_trace.json.gz")
    for name in os.listdir(run):
        if name.endswith(".trace.json.gz"):
            with gzip.open(os.path.join(run, name), "rt", encoding="utf-8") as file:
                trace = json.load(file)
            # With metadata, the viewer would expect another format.
            trace.pop("metadata", None)
            with gzip.open(target, "wt", encoding="utf-8") as file:
                json.dump(trace, file)
            return target
    return None


def heap_profile(platform: str | None = None) -> bytes:
    """Return the memory in use on the devices of a platform, as a compressed profile for ``pprof``."""
    return gzip.compress(clients.client(platform).heap_profile())


def start_server(port: int, requires_backend: bool) -> Any:
    """Start a server for profiling tools on `port` and return it; it stops when it is freed."""
    if requires_backend:
        clients.client()
    return _profiler.start_server(port)


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Record the activity of another process, too.

    Args:
        pid: the number of the process.
        port: the port of its server.

    Returns:
        A function without arguments that ends the registration.

    Raises:
        RuntimeError: `pid` is this process, or is registered.

    Example:
        >>> import os
        >>> server = xtrace.profiler.start_server(9990)
        >>> xtrace.profiler.register_subprocess(os.getppid(), 9990)()
        >>> xtrace.profiler.stop_server()
    """
    return _profiler.register_subprocess(pid, port)
