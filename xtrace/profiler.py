"""Recording of a program's activity and memory over time (``jax.profiler``)."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.xla import profiler as _xla
from xtrace._src.xla.profiler import ProfileData, ProfileEvent, ProfileOptions, ProfilePlane, register_subprocess

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation", "TraceAnnotation",
    "annotate_function", "device_memory_profile", "register_subprocess", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace",
]


class TraceAnnotation(_xla.Annotation):
    """A block of code with a name in the timeline; its cost is negligible while no trace runs.

    Args:
        args, kwargs: the name, and details for the timeline as keywords.

    Raises:
        TypeError: the name is not a string.

    Example:
        >>> with xtrace.profiler.TraceAnnotation("sum", size=2): jnp.ones(2).sum()
        Array(2., dtype=float32)
    """


class StepTraceAnnotation(TraceAnnotation):
    """A `TraceAnnotation` around one step of training.

    Args:
        name: the name in the timeline.
        kwargs: details, such as ``step_num=3``.

    Raises:
        TypeError: `name` is not a string.

    Example:
        >>> with xtrace.profiler.StepTraceAnnotation("train", step_num=1): jnp.ones(2).sum()
        Array(2., dtype=float32)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: object
) -> Callable[..., Any]:
    """Wrap a function: its calls have a name in the timeline.

    Args:
        func: a function.
        name: the name; None for the name of the function.
        decorator_kwargs: details for the timeline.

    Returns:
        A function with the arguments and results of `func`.

    Raises:
        TypeError: `name` is not a string.

    Example:
        >>> xtrace.profiler.annotate_function(jnp.sum, "total")(jnp.ones(3))
        Array(3., dtype=float32)
    """
    label = getattr(func, "__name__", type(func).__name__) if name is None else name

    @functools.wraps(func)
    def call(*args: object, **kwargs: object) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return call


class _State:
    """The session and the server of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: _xla.Session | None = None
        self.link = False
        self.server: Any = None


_state = _State()


def start_trace(
    log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: Any | None = None,
) -> None:
    """Start to record the program's activity on the host and on devices; `stop_trace` writes it.

    Args:
        log_dir: the folder below which the files are written; TensorBoard's profile plugin reads it with ``--logdir``.
        create_perfetto_link: whether the path of the Perfetto file is printed as well.
        create_perfetto_trace: whether ``perfetto_trace.json.gz`` is written, too, for https://ui.perfetto.dev.
        profiler_options: options of the recording, or None.

    Raises:
        OSError: the folder cannot be made.
        RuntimeError: another trace runs.

    Example:
        >>> import tempfile
        >>> xtrace.profiler.start_trace(tempfile.mkdtemp())
        >>> xtrace.profiler.stop_trace()
    """
    with _state.lock:
        if _state.session is not None:
            raise RuntimeError(
                f"start_trace: Profile has already been started, for {_state.session.folder}. Only one profile may "
                "be run at a time: call stop_trace() first"
            )
        perfetto = create_perfetto_link or create_perfetto_trace
        _state.session = _xla.Session(os.fspath(log_dir), profiler_options, perfetto)
        _state.link = create_perfetto_link


def stop_trace() -> None:
    """Stop the recording of `start_trace`, and write its files.

    Raises:
        RuntimeError: no trace runs.

    Example:
        >>> import tempfile
        >>> xtrace.profiler.start_trace(tempfile.mkdtemp())
        >>> xtrace.profiler.stop_trace()
    """
    with _state.lock:
        session, _state.session = _state.session, None
        if session is None:
            raise RuntimeError("stop_trace: No profile started; call start_trace(folder) first")
        path = session.stop()
    if path is not None and _state.link:
        print(f"Open https://ui.perfetto.dev, choose 'Open trace file', and give it {path}")


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: Any | None = None,
) -> Iterator[None]:
    """Record the activity of a block of code, with `start_trace` before it and `stop_trace` after it.

    Args:
        log_dir: the folder below which the files are written.
        create_perfetto_link: whether the path of the Perfetto file is printed as well.
        create_perfetto_trace: whether ``perfetto_trace.json.gz`` is written, too.
        profiler_options: options of the recording, or None.

    Returns:
        A context manager.

    Raises:
        OSError: the folder cannot be made.
        RuntimeError: another trace runs.

    Example:
        >>> import tempfile
        >>> with xtrace.profiler.trace(tempfile.mkdtemp()): jnp.ones(2).sum()
        Array(2., dtype=float32)
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return a profile of the arrays in the memory of a platform's devices, in the format of ``pprof``.

    Args:
        backend: the name of a platform; None for the default one.

    Returns:
        A gzipped protocol buffer, bytes.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> type(xtrace.profiler.device_memory_profile())
        <class 'bytes'>
    """
    return _xla.heap_profile(backend)


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write the profile of `device_memory_profile` to a file; ``pprof --web FILE`` shows it.

    Args:
        filename: the path of the file.
        backend: the name of a platform; None for the default one.

    Raises:
        OSError: the file cannot be written.
        RuntimeError: there is no such platform.

    Example:
        >>> xtrace.profiler.save_device_memory_profile("/dev/null")
    """
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server through which TensorBoard can record this program at any time.

    Args:
        port: the number of the port.
        requires_backend: whether the clients of devices are made first.

    Returns:
        The server, which runs as long as this object lives.

    Raises:
        ValueError: there is a server already.

    Example:
        >>> server = xtrace.profiler.start_server(9988)
        >>> xtrace.profiler.stop_server()
    """
    with _state.lock:
        if _state.server is not None:
            raise ValueError("start_server: Only one profiler server can be active at a time; call stop_server() first")
        _state.server = _xla.start_server(port, requires_backend)
        return _state.server


def stop_server() -> None:
    """Stop the server of `start_server`.

    Raises:
        ValueError: there is no server.

    Example:
        >>> server = xtrace.profiler.start_server(9989)
        >>> xtrace.profiler.stop_server()
    """
    with _state.lock:
        if _state.server is None:
            raise ValueError("stop_server: No active profiler server")
        _state.server = None


_make_public(globals(), __all__)
