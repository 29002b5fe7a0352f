"""Compiled programs that are kept on disk: found by the module's text and all else that they depend on."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core import compilation_cache_settings as cache_settings
from xtrace._src.core import monitoring
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.tables import memoize
from xtrace._src.runtime.checked_bytes import WrongBytesError
from xtrace._src.runtime.disk_cache import PROGRAM, TRACE, DiskCache, Entry
from xtrace._src.xla import executables
from xtrace._src.xla.clients import Device
from xtrace._src.xla.stripped_executables import StrippedExecutable, strip_executable

REQUESTS = "/jax/compilation_cache/compile_requests_use_cache"
HITS = "/jax/compilation_cache/cache_hits"
MISSES = "/jax/compilation_cache/cache_misses"
RETRIEVAL = "/jax/compilation_cache/cache_retrieval_time_sec"
SAVED = "/jax/compilation_cache/compile_time_saved_sec"

# A string, which stays, or a reference to a source location.
_LOCATIONS = re.compile(r'"(?:[^"\\]|\\.)*"| loc\((?:#loc\d*|"(?:[^"\\]|\\.)*")\)')


class CompilationCacheInfo(NamedTuple):
    """The state of the compilation cache on disk.

    Attributes:
        directory: the folder, None where compiled programs are not kept.
        entries: the number of programs in it.
        size: their size in bytes.
        hits: how many programs of this process were loaded from it.
        misses: how many found no entry that could be used, and were compiled.
        stored: how many this process wrote.
        wrong: how many entries differed from what was written, and were moved aside.
        rejected: how many right entries XLA refused to load.
        failed: how often the folder could not be read or written.
        not_cacheable: how many programs run in several processes, or call Python functions from other devices than
            CPUs, and are compiled each time.
        traces: the number of traces in the folder (see the setting ``xtrace_trace_cache``).
        trace_hits: how often this process found the trace of a function, and neither traced nor lowered it.
        trace_misses: how often there was no trace that could be used, and the function was traced.
        trace_uncertain: how often it could not be told what a function depends on, and it was traced.
    """

    directory: str | None
    entries: int = 0
    size: int = 0
    hits: int = 0
    misses: int = 0
    stored: int = 0
    wrong: int = 0
    rejected: int = 0
    failed: int = 0
    not_cacheable: int = 0
    traces: int = 0
    trace_hits: int = 0
    trace_misses: int = 0
    trace_uncertain: int = 0


_STATE = ("directory", "entries", "size", "traces")
_counts: dict[str, int] = {name: 0 for name in CompilationCacheInfo._fields if name not in _STATE}
_lock = threading.Lock()
# Each problem is reported once, and so many of them.
_warned: set[str] = set()
_MOST_WARNINGS = 64


def compile_or_load(*compilation: Any) -> tuple[Any, KeptCode | None]:
    """Return the executable of a module, from the folder ``jax_compilation_cache_dir`` if it is there.

    With one from there comes its code, otherwise None. compilation: the arguments of
    `executables.compile_text`. A compiled program is stored if its compilation took long enough. Errors of the folder
    are warnings, unless the setting ``jax_raise_persistent_cache_errors`` says otherwise; those of the compiler are
    `compile_text`'s.
    """
    place = _place_of(*compilation, counted=True)
    executable, code = load_at(place, *compilation)
    return (_compile_and_keep(place, compilation), None) if executable is None else (executable, code)


def load(*compilation: Any) -> tuple[Any, KeptCode | None]:
    """Return the executable of a module from the folder, or None; as `compile_or_load` otherwise."""
    return load_at(_place_of(*compilation, counted=True), *compilation)


def compile_and_keep(*compilation: Any) -> tuple[Any, KeptCode | None]:
    """Return the executable of a module that `load` has not found, compiled and stored; see `compile_or_load`."""
    return _compile_and_keep(_place_of(*compilation), compilation), None


_Place = tuple[DiskCache, bytes]


def _place_of(
    text: str, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None,
    callbacks: Sequence[Callable[..., Any]], partitioned: executables.Partitioned | None, *, counted: bool = False,
) -> _Place | None:
    """Return the folder and the key of a program; None if it cannot be kept, which may be `counted`."""
    # The text names functions in Python by their places; on other platforms they are reached through channels.
    calls_python = callbacks and devices[0].platform != "cpu"
    if calls_python or len({d.process_index for d in devices}) > 1:
        if counted:
            count("not_cacheable")
        return None
    if counted:
        monitoring.record_event(REQUESTS)
    cache = open_cache()
    if cache is None:
        return None
    return cache, _key_of(text, executables.describe_compilation(text, devices, compiler_options, partitioned))


def open_cache() -> DiskCache | None:
    """Return the folder that the settings name, None if it cannot be used, which is reported."""
    directory = os.path.abspath(os.path.expanduser(cache_settings.directory.value))
    cache: DiskCache | None = attempt("opened", lambda: _open_cache(directory))
    return cache


def key_in_cache(cache: DiskCache, *compilation: Any) -> bytes | None:
    """Return the key of a program that is in the folder, None if it is not there."""
    place = _place_of(*compilation)
    return place[1] if place is not None and cache.has(place[1]) else None


def read_trace(cache: DiskCache, key: bytes) -> bytes | None:
    """Return what was kept of a trace, None if it is not there or wrong."""
    entry = attempt("read", lambda: cache.read(key, kind=TRACE))
    return None if entry is None else bytes(entry.payload)


def keep_trace(cache: DiskCache, key: bytes, payload: bytes, seconds: float) -> None:
    """Keep what a trace gave in the folder; making it took so many seconds."""
    size = cache_settings.max_size.value
    attempt("written", lambda: cache.write(key, Entry(payload, seconds), -1 if size is None else size, TRACE))


def _compile_and_keep(place: _Place | None, compilation: tuple[Any, ...]) -> Any:
    start = time.perf_counter()
    executable = executables.compile_text(*compilation)
    seconds = time.perf_counter() - start
    if place is not None and seconds >= (cache_settings.min_compile_seconds.value or 0):
        attempt("written", lambda: _store(*place, executable, seconds))
    return executable


def compilation_cache_info() -> CompilationCacheInfo:
    """Return the state of the compilation cache on disk: its folder, its entries, and how this process used it.

    Returns:
        A named tuple with `directory`, `entries`, `size` in bytes, `traces`, and the counts of this process: `hits`,
        `misses`, `stored`, `wrong`, `rejected`, `failed`, `not_cacheable`, `trace_hits`, `trace_misses`,
        `trace_uncertain`.

    Raises:
        OSError: the folder cannot be read, or could be written by another user.

    Example:
        >>> xtrace.cache_info().directory is None
        True
    """
    directory = cache_settings.directory.value
    if directory is None or not cache_settings.enabled.value:
        return CompilationCacheInfo(None, **_counts)
    sizes, traces = count_entries(DiskCache(directory))
    return CompilationCacheInfo(directory, len(sizes), sum(sizes), traces=traces, **_counts)


def count_entries(cache: DiskCache) -> tuple[list[int], int]:
    """Return the sizes of the programs in a folder, and the number of its traces."""
    files = list(cache.files())
    sizes = [state.st_size for name, state in files if name.endswith(PROGRAM)]
    return sizes, len(files) - len(sizes)


def reset_cache() -> None:
    """Forget how this process used the compilation cache; its folder and the entries stay.

    The counts of `xtrace.cache_info` start at zero again, and the folder is checked again at the next compilation.

    Example:
        >>> from xtrace.experimental.compilation_cache.compilation_cache import reset_cache
        >>> reset_cache()
    """
    with _lock:
        _counts.update(dict.fromkeys(_counts, 0))
        _warned.clear()
    _open_cache.cache_clear()


@memoize(limit=8)
def _open_cache(directory: str) -> DiskCache:
    return DiskCache(directory)


def _key_of(text: str, compilation: bytes) -> bytes:
    if not cache_settings.include_locations.value:
        text = _LOCATIONS.sub(lambda match: match[0] if match[0].startswith('"') else "", text)
        text = "\n".join([line for line in text.split("\n") if not line.startswith("#loc")])
    return hashlib.sha256(b"%d:" % len(compilation) + compilation + text.encode()).digest()


# Bytes of the stripped code's length, at the start of a payload.
_SIZE = 8


class KeptCode(NamedTuple):
    """The code of a program in the folder: without the HLO that it runs without, if it could be stripped, and whole.

    The whole is compressed, to a fifth of its size or so.
    """

    stripped: bytes | None
    compressed: bytes

    @classmethod
    def decode(cls, payload: bytes) -> KeptCode:
        """Return the code in the payload of an entry; WrongBytesError if it is none."""
        start = _SIZE
        size = int.from_bytes(payload[:start], "little")
        if len(payload) < start + size:
            raise WrongBytesError(f"the {len(payload)} bytes are no compiled program")
        return cls(payload[start : start + size] or None, payload[start + size :])

    @classmethod
    def of_executable(cls, executable: Any) -> KeptCode:
        """Return the code of a program that was compiled here; XLA's error if the runtime cannot write it."""
        code = executables.serialize_executable(executable)
        is_cpu = executable.local_devices()[0].platform == "cpu"
        return cls(strip_executable(code) if is_cpu else None, zlib.compress(code, 1))

    def encode(self) -> bytes:
        """Return the payload of an entry."""
        stripped = self.stripped or b""
        return b"".join([len(stripped).to_bytes(_SIZE, "little"), stripped, self.compressed])

    def read(self) -> bytes:
        """Return the serialized program, whole; WrongBytesError for other bytes."""
        try:
            return zlib.decompress(self.compressed)
        except zlib.error as error:
            raise WrongBytesError(f"a compiled program cannot be decompressed: {error}") from None

    def load(self, *compilation: Any) -> Any:
        """Return the executable; XLA's error if it refuses it. compilation: what `load_executable` takes after it."""
        if self.stripped is None:
            return executables.load_executable(self.read(), *compilation)
        whole = KeptCode(None, self.compressed)
        try:
            running = executables.load_executable(self.stripped, *compilation)
        except executables.CompileError:
            return whole.load(*compilation)
        return StrippedExecutable(running, lambda: whole.load(*compilation))


def load_at(
    place: tuple[DiskCache, bytes] | None, text: str, devices: Sequence[Device],
    compiler_options: Mapping[str, Any] | None, callbacks: Sequence[Callable[..., Any]],
    partitioned: executables.Partitioned | None,
) -> tuple[Any, KeptCode | None]:
    """Return the executable kept at a place, None if it is not there, is wrong, or is refused."""
    if place is None:
        return None, None
    cache, key = place
    start = time.perf_counter()
    entry = attempt("read", lambda: cache.read(key))
    executable = None
    if entry is not None:
        options = executables.with_safe_fusions(text, devices[0], compiler_options)
        try:
            code = KeptCode.decode(entry.payload)
            executable = code.load(devices, options, partitioned, callbacks)
        except (executables.CompileError, WrongBytesError) as error:
            count("rejected")
            cache.set_aside(key)
            _report(f"XLA refused a program in {cache.directory}, and it is compiled again: {error}", error)
    if entry is None or executable is None:
        count("misses")
        monitoring.record_event(MISSES)
        return None, None
    count("hits")
    monitoring.record_event(HITS)
    seconds = time.perf_counter() - start
    monitoring.record_event_duration_secs(RETRIEVAL, seconds)
    monitoring.record_event_duration_secs(SAVED, entry.seconds - seconds)
    return executable, code


def _store(cache: DiskCache, key: bytes, executable: Any, seconds: float) -> None:
    payload = KeptCode.of_executable(executable).encode()
    if len(payload) >= (cache_settings.min_entry_size.value or 0):
        size = cache_settings.max_size.value
        if cache.write(key, Entry(payload, seconds), -1 if size is None else size):
            count("stored")


def attempt(verb: str, action: Callable[[], Any]) -> Any:
    """Return ``action()``, None if the folder or an entry is at fault, which is reported."""
    try:
        return action()
    except WrongBytesError as error:
        count("wrong")
        _report(f"an entry of the compilation cache is wrong, is moved aside, and is compiled again: {error}", error)
    except (OSError, executables.CompileError) as error:
        count("failed")
        _report(f"the compilation cache could not be {verb}: {error}", error)
    return None


def _report(message: str, error: Exception) -> None:
    if cache_settings.raise_errors.value:
        error.add_note(message)
        raise error
    with _lock:
        warned = message in _warned or len(_warned) >= _MOST_WARNINGS
        if not warned:
            _warned.add(message)
    if not warned:
        warn_user(message)


def count(name: str) -> None:
    """Count an event of this process, by a field of `CompilationCacheInfo`."""
    with _lock:
        _counts[name] += 1
