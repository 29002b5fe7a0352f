"""Recording what a program does over time and which memory it uses, as ``jax.profiler`` has it."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from xtrace._src.core.late import make_public as _make_public
from xtrace._src.xla import profiler as _xla
from xtrace._src.xla.profiler import ProfileData, ProfileEvent, ProfileOptions, ProfilePlane, register_subprocess

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation", "TraceAnnotation",
    "annotate_function", "device_memory_profile", "register_subprocess", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace",
]


class TraceAnnotation(_xla.Annotation):  # type: ignore[misc]
    """A ``with`` block that the timeline shows under a name, with keyword arguments as its details.

    Nothing is recorded, and it costs next to nothing, while no trace runs. TypeError if the name is no string.
    """


class StepTraceAnnotation(TraceAnnotation):
    """A `TraceAnnotation` around one step of training, ``StepTraceAnnotation("train", step_num=n)``."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """Return `func` with every call in a `TraceAnnotation`, called as the function is if `name` is None."""
    shown = getattr(func, "__name__", type(func).__name__) if name is None else name

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


class _Running:
    """The session and the server of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: _xla.Session | None = None
        self.link = False
        self.server: Any = None


_running = _Running()


def start_trace(
    log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: Any | None = None,
) -> None:
    """Record what the program does, on the host and on devices, until `stop_trace` writes it below `log_dir`.

    TensorBoard's profile plugin reads the files, when it is started with ``--logdir`` of that folder. With
    `create_perfetto_trace` there is ``perfetto_trace.json.gz`` beside them, for https://ui.perfetto.dev; with
    `create_perfetto_link` its path is printed as well. RuntimeError while another trace runs, OSError if the folder
    cannot be made.
    """
    with _running.lock:
        if _running.session is not None:
            raise RuntimeError(
                f"start_trace: Profile has already been started, for {_running.session.folder}. Only one profile may "
                "be run at a time: call stop_trace() first"
            )
        perfetto = create_perfetto_link or create_perfetto_trace
        _running.session = _xla.Session(os.fspath(log_dir), profiler_options, perfetto)
        _running.link = create_perfetto_link


def stop_trace() -> None:
    """End the trace that `start_trace` began, and write its files. RuntimeError if none runs."""
    with _running.lock:
        session, _running.session = _running.session, None
        if session is None:
            raise RuntimeError("stop_trace: No profile started; call start_trace(folder) first")
        path = session.stop()
    if path is not None and _running.link:
        print(f"Open https://ui.perfetto.dev, choose 'Open trace file', and give it {path}")


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: Any | None = None,
) -> Iterator[None]:
    """Record what the block does, as `start_trace` and `stop_trace` around it."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return what is in the memory of the devices of a platform, as a profile that ``pprof`` reads.

    It says which arrays are alive and how large they are. RuntimeError for a platform that there is none of.
    """
    return _xla.heap_profile(backend)


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file: ``pprof --web FILE`` shows it."""
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let TensorBoard record this program at any time, through `port`. ValueError if there is a server already."""
    with _running.lock:
        if _running.server is not None:
            raise ValueError("start_server: Only one profiler server can be active at a time; call stop_server() first")
        _running.server = _xla.start_server(port, requires_backend)
        return _running.server


def stop_server() -> None:
    """Stop what `start_server` started. ValueError if there is no server."""
    with _running.lock:
        if _running.server is None:
            raise ValueError("stop_server: No active profiler server")
        _running.server = None


_make_public(globals(), __all__)
