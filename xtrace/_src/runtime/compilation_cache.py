"""The cache of compiled programs on disk; the key of a program is its module's text and all that it depends on."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from xtrace._src.core import monitoring
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.core.tables import memoize
from xtrace._src.runtime.checked_bytes import WrongBytesError
from xtrace._src.runtime.disk_cache import PROGRAM, TRACE, DiskCache, Entry
from xtrace._src.xla.clients import Device
from xtrace._src.xla.executables import executables
from xtrace._src.xla.executables.stripped_executables import StrippedExecutable, strip_executable
from xtrace._src.xla.processes import distributed

REQUESTS = "/jax/compilation_cache/compile_requests_use_cache"
HITS = "/jax/compilation_cache/cache_hits"
MISSES = "/jax/compilation_cache/cache_misses"
RETRIEVAL = "/jax/compilation_cache/cache_retrieval_time_sec"
SAVED = "/jax/compilation_cache/compile_time_saved_sec"

# A string, which is kept, or a source location, which is removed.
_LOCATIONS = re.compile(r'"(?:[^"\\]|\\.)*"| loc\((?:#loc\d*|"(?:[^"\\]|\\.)*")\)')


class CompilationCacheInfo(NamedTuple):
    """The state of the compilation cache on disk.

    Attributes:
        directory: the folder, None if compiled programs are not kept.
        entries: the number of programs in the folder.
        size: the size of these programs in bytes.
        hits: the number of programs that this process loaded from the folder.
        misses: the number of programs without a usable entry, which were compiled.
        stored: the number of programs that this process wrote.
        wrong: the number of damaged entries, which were moved aside.
        rejected: the number of undamaged entries that XLA refused to load.
        failed: the number of failures to read or write the folder.
        not_cacheable: the number of programs that are compiled each time, because they call Python functions from
            other devices than CPUs.
        traces: the number of traces in the folder (see the setting ``xtrace_trace_cache``).
        trace_hits: the number of functions whose trace was found, and which were neither traced nor lowered.
        trace_misses: the number of functions without a usable trace, which were traced.
        trace_uncertain: the number of functions that were traced because their dependencies could not be determined.
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
# Each problem is reported once, up to a limit.
_warned: set[str] = set()
_MAX_WARNINGS = 64


_Result = TypeVar("_Result")
# The arguments of `executables.compile_text`.
_Compilation: TypeAlias = tuple[
    str, Sequence[Device], Mapping[str, Any] | None, Sequence[Callable[..., Any]], executables.Partitioned | None
]


def compile_or_load(*compilation: *_Compilation) -> tuple[Any, KeptCode | None]:
    """Load the executable of a module from the folder ``jax_compilation_cache_dir``, or compile and store it.

    The second result is the code of a loaded executable, None for a compiled one.
    compilation: the arguments of `executables.compile_text`. A program is stored only if its compilation took long
    enough. Errors of the folder are warnings, or raised with the setting ``jax_raise_persistent_cache_errors``. Raises
    the errors of `compile_text`.

    The processes of a program load it only if all of them can: compilers of some platforms exchange data, so none may
    compile alone. The first process that uses a folder stores it.
    """
    place = _find_place(*compilation, counted=True)
    loaded = _read_program(place, *compilation)
    text, devices = compilation[:2]
    agreement = distributed.agree_on_program(text, devices, loaded is not None, place[0].directory if place else "")
    executable, code = _count(place, loaded if agreement.all_loaded else None)
    if executable is None:
        return _compile_and_keep(place if agreement.stores else None, compilation, agreement.program), None
    distributed.remember_program(executable, agreement.program)
    return executable, code


def load(*compilation: *_Compilation) -> tuple[Any, KeptCode | None]:
    """Load the executable of a module from the folder as `compile_or_load` does; None for both if it is not there."""
    return load_at(_find_place(*compilation, counted=True), *compilation)


def compile_and_keep(*compilation: *_Compilation) -> tuple[Any, KeptCode | None]:
    """Compile and store the executable of a module that `load` did not find; see `compile_or_load`."""
    return _compile_and_keep(_find_place(*compilation), compilation), None


_Place = tuple[DiskCache, bytes]


def _find_place(
    text: str, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None,
    callbacks: Sequence[Callable[..., Any]], partitioned: executables.Partitioned | None, *, counted: bool = False,
) -> _Place | None:
    """Return the folder and the key of a program; None if it cannot be kept. counted: whether to count the request."""
    # On CPU the text names callbacks by position; on other platforms they use channels of this process.
    if callbacks and devices[0].platform != "cpu":
        if counted:
            count("not_cacheable")
        return None
    if counted:
        monitoring.record_event(REQUESTS)
    cache = open_cache()
    if cache is None:
        return None
    return cache, _make_key(text, executables.describe_compilation(text, devices, compiler_options, partitioned))


def open_cache() -> DiskCache | None:
    """Return the folder of the settings; None, after a report, if it cannot be used."""
    directory = os.path.abspath(os.path.expanduser(cache_settings.directory.value))
    return attempt("opened", lambda: _open_cache(directory))


def key_in_cache(cache: DiskCache, *compilation: *_Compilation) -> bytes | None:
    """Return the key of a program if it is in the folder, else None."""
    place = _find_place(*compilation)
    return place[1] if place is not None and cache.has(place[1]) else None


def read_trace(cache: DiskCache, key: bytes) -> bytes | None:
    """Return the payload of a trace in the folder; None if it is missing or damaged."""
    entry = attempt("read", lambda: cache.read(key, kind=TRACE))
    return None if entry is None else entry.payload


def keep_trace(cache: DiskCache, key: bytes, payload: bytes, seconds: float) -> None:
    """Write the payload of a trace to the folder, with the seconds that the trace took."""
    size = cache_settings.max_size.value
    attempt("written", lambda: cache.write(key, Entry(payload, seconds), -1 if size is None else size, TRACE))


def _compile_and_keep(
    place: _Place | None, compilation: _Compilation, shared: distributed.SharedProgram | None = None
) -> Any:
    start = time.perf_counter()
    executable = executables.compile_text(*compilation, shared)
    seconds = time.perf_counter() - start
    if place is not None and seconds >= (cache_settings.min_compile_seconds.value or 0):
        attempt("written", lambda: _store(*place, executable, seconds))
    return executable


def compilation_cache_info() -> CompilationCacheInfo:
    """Return the state of the compilation cache on disk: its folder, its entries, and the counts of this process.

    Returns:
        A named tuple with `directory`, `entries`, `size` in bytes, `traces`, and the counts of this process: `hits`,
        `misses`, `stored`, `wrong`, `rejected`, `failed`, `not_cacheable`, `trace_hits`, `trace_misses`,
        `trace_uncertain`.

    Raises:
        OSError: the folder cannot be read, or another user could write to it.

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
    """Set the counts of the compilation cache in this process to zero; the folder and its entries stay.

    `xtrace.cache_info` shows these counts. The folder is checked again at the next compilation.

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


def _make_key(text: str, compilation: bytes) -> bytes:
    if not cache_settings.include_locations.value:
        text = _LOCATIONS.sub(lambda match: match[0] if match[0].startswith('"') else "", text)
        text = "\n".join([line for line in text.split("\n") if not line.startswith("#loc")])
    return hashlib.sha256(b"%d:" % len(compilation) + compilation + text.encode()).digest()


# Bytes of the stripped code's length, at the start of a payload.
_SIZE = 8
# A serialized program is a protocol buffer, which has less than two gigabytes. Few bytes may expand to many more.
_MAX_CODE = 1 << 31


class KeptCode(NamedTuple):
    """The code of a program in the folder, twice: stripped of the HLO (None if that failed), and whole, compressed.

    Compression reduces the whole code to about a fifth.
    """

    stripped: bytes | None
    compressed: bytes

    @classmethod
    def decode(cls, payload: bytes) -> KeptCode:
        """Return the code in the payload of an entry; WrongBytesError for other bytes."""
        start = _SIZE
        size = int.from_bytes(payload[:start], "little")
        if len(payload) < start + size:
            raise WrongBytesError(f"the {len(payload)} bytes are no compiled program")
        return cls(payload[start : start + size] or None, payload[start + size :])

    @classmethod
    def of_executable(cls, executable: Any) -> KeptCode:
        """Return the code of a program compiled in this process; XLA's error if the runtime cannot write it."""
        code = executables.serialize_executable(executable)
        is_cpu = executable.local_devices()[0].platform == "cpu"
        return cls(strip_executable(code) if is_cpu else None, zlib.compress(code, 1))

    def encode(self) -> bytes:
        """Return the payload of an entry."""
        stripped = self.stripped or b""
        return b"".join([len(stripped).to_bytes(_SIZE, "little"), stripped, self.compressed])

    def read(self) -> bytes:
        """Return the whole serialized program; WrongBytesError if the bytes are damaged."""
        stream = zlib.decompressobj()
        try:
            code = stream.decompress(self.compressed, _MAX_CODE)
        except zlib.error as error:
            raise WrongBytesError(f"a compiled program cannot be decompressed: {error}") from None
        if not stream.eof or stream.unused_data:
            raise WrongBytesError(f"a compiled program is no compressed one of less than {_MAX_CODE} bytes")
        return code

    def load(self, *compilation: Any) -> Any:
        """Return the executable, or raise XLA's error. compilation: the other arguments of `load_executable`."""
        if self.stripped is None:
            return executables.load_executable(self.read(), *compilation)
        whole = KeptCode(None, self.compressed)
        try:
            running = executables.load_executable(self.stripped, *compilation)
        except executables.CompileError:
            return whole.load(*compilation)
        return StrippedExecutable(running, lambda: whole.load(*compilation))


class _Loaded(NamedTuple):
    """A program that was read from the folder; `saved` are the seconds of its compilation, `seconds` of the reading."""

    executable: Any
    code: KeptCode
    saved: float
    seconds: float


def load_at(place: _Place | None, *compilation: *_Compilation) -> tuple[Any, KeptCode | None]:
    """Load the executable at a place as `compile_or_load` does; None for both if it is missing, damaged or refused."""
    return _count(place, _read_program(place, *compilation))


def _read_program(
    place: _Place | None, text: str, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None,
    callbacks: Sequence[Callable[..., Any]], partitioned: executables.Partitioned | None,
) -> _Loaded | None:
    if place is None:
        return None
    cache, key = place
    start = time.perf_counter()
    entry = attempt("read", lambda: cache.read(key))
    if entry is None:
        return None
    options = executables.with_safe_fusions(text, devices[0], compiler_options)
    try:
        code = KeptCode.decode(entry.payload)
        executable = code.load(devices, options, partitioned, callbacks)
    except (executables.CompileError, WrongBytesError) as error:
        count("rejected")
        cache.set_aside(key)
        _report(f"XLA refused a program in {cache.directory}, and it is compiled again: {error}", error)
        return None
    return _Loaded(executable, code, entry.seconds, time.perf_counter() - start)


def _count(place: _Place | None, loaded: _Loaded | None) -> tuple[Any, KeptCode | None]:
    """Count the use of a place, and return the executable and the code that were loaded from there, or None."""
    if loaded is None:
        if place is not None:
            count("misses")
            monitoring.record_event(MISSES)
        return None, None
    count("hits")
    monitoring.record_event(HITS)
    monitoring.record_event_duration_secs(RETRIEVAL, loaded.seconds)
    monitoring.record_event_duration_secs(SAVED, loaded.saved - loaded.seconds)
    return loaded.executable, loaded.code


def _store(cache: DiskCache, key: bytes, executable: Any, seconds: float) -> None:
    payload = KeptCode.of_executable(executable).encode()
    if len(payload) >= (cache_settings.min_entry_size.value or 0):
        size = cache_settings.max_size.value
        if cache.write(key, Entry(payload, seconds), -1 if size is None else size):
            count("stored")


def attempt(verb: str, action: Callable[[], _Result]) -> _Result | None:
    """Return ``action()``; None, after a report, if the folder or an entry fails. verb: for the report."""
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
        warned = message in _warned or len(_warned) >= _MAX_WARNINGS
        if not warned:
            _warned.add(message)
    if not warned:
        warn_user(message)


def count(name: str) -> None:
    """Count an event of this process, by a field of `CompilationCacheInfo`."""
    with _lock:
        _counts[name] += 1
