"""The contents of a jitted function's cache: ``f.cache_info()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xtrace._src.api.jit.argument_paths import list_argument_paths
from xtrace._src.api.pages.notebook_views import write_cache_html
from xtrace._src.api.reports.cache_miss_reports import describe_type, get_signature_type, static_values
from xtrace._src.core.avals import ShapedArray, short_repr
from xtrace._src.core.callables import make_debug_info
from xtrace._src.core.diagnostics.text_tables import format_count
from xtrace._src.core.settings import config
from xtrace._src.runtime.arrays import Placement


class CacheEntry(NamedTuple):
    """One trace, and the program compiled from it.

    arguments: maps the path of each array among the arguments to its type, as in ``{"params['w']": "f32[3]"}``, with
    the device if that is not the default one. static: maps names of static arguments to values. settings: the settings
    that differ from their defaults, and mapped axes around the call. trace_seconds, lower_seconds, compile_seconds: the
    duration of each step; tracing includes the functions called inside. A duration is None if the step was not needed:
    the trace may be a part of another function's program, or only lowered. calls: the counted calls of the program.
    is_specialised: whether the program has specialised code, whose calls are not counted.
    """

    arguments: dict[str, str]
    static: dict[str, Any]
    settings: dict[str, Any]
    trace_seconds: float | None
    lower_seconds: float | None
    compile_seconds: float | None
    calls: int
    is_specialised: bool


_HEAD = ("calls", "trace", "lower", "compile", "keyed on")


class CacheInfo(NamedTuple):
    """The cache of a jitted function under its options; ``repr`` is a table.

    function: its name and place. entries: the entries, oldest first. hits: the number of calls that found their
    program; after a few calls of a signature, its calls are not counted. misses: the number of calls that compiled a
    program, since the start or since caches were cleared; more than the entries if old ones were evicted. A call inside
    another traced function calls no program, and counts for neither.
    """

    function: str
    entries: tuple[CacheEntry, ...]
    hits: int
    misses: int

    @property
    def _title(self) -> str:
        more = "+" if any(e.is_specialised for e in self.entries) else ""
        counts = (
            format_count(len(self.entries), "entry", "entries"), format_count(f"{self.hits}{more}", "hit"),
            format_count(self.misses, "miss", "misses"),
        )
        return f"{self.function}: {', '.join(counts)}"

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        return write_cache_html(self._title, _HEAD, [_row(e) for e in self.entries])

    def __repr__(self) -> str:
        title = self._title
        if not self.entries:
            return title
        rows = [_HEAD, *[_row(e) for e in self.entries]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row[:-1], widths, strict=False)) for row in rows]
        return "\n".join([title, *(f"  {line}  {row[-1]}" for line, row in zip(lines, rows, strict=True))])


def _row(entry: CacheEntry) -> tuple[str, str, str, str, str]:
    keyed = [f"{path}: {kind}" for path, kind in entry.arguments.items()]
    keyed += [f"static {name}={short_repr(value)}" for name, value in entry.static.items()]
    keyed += [f"{name}={value!r}" for name, value in entry.settings.items()]
    seconds = [_format_time(s) for s in (entry.trace_seconds, entry.lower_seconds, entry.compile_seconds)]
    return (f"{entry.calls}{'+' * entry.is_specialised}", seconds[0], seconds[1], seconds[2], ", ".join(keyed))


def _format_time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f} ms"


def cache_info(function: Callable[..., Any], cache: Any) -> CacheInfo:
    """Return the contents of `cache`, the cache of a jitted function."""
    programs = dict(cache.compiled.entries)
    traces = dict(cache.traced.entries)
    entries = [_entry(function, key, compiled.seconds, compiled) for key, compiled in programs.items()]
    # The key of a trace is the key of its programs without devices.
    compiled = {_drop_devices(key) for key in programs}
    entries += [
        _entry(function, key, (traced.seconds, None, None), None) for key, traced in traces.items()
        if _drop_devices(key) not in compiled
    ]
    info = make_debug_info("jit", function)
    name = f"{info.function} at {info.place}" if info.file is not None else info.function
    return CacheInfo(name, tuple(entries), cache.hits(), cache.misses)


def _drop_devices(key: Any) -> Any:
    return (*key[:3], *map(get_signature_type, key[3:]))


def _entry(function: Callable[..., Any], key: Any, seconds: tuple[Any, Any, Any], compiled: Any) -> CacheEntry:
    settings, static, tree, *signatures = key
    settings, axes = settings if isinstance(settings, tuple) else (settings, ())
    paths = list_argument_paths(function, static, tree)
    arguments = {path: _argument(signature) for path, signature in zip(paths, signatures, strict=True)}
    count = len(tree.children()[0].children()) + len(static.positional)
    changed = config.changed_settings(settings) | ({"mapped axes": axes} if axes else {})
    calls = compiled.earlier + sum(compiled.calls.values()) if compiled is not None else 0
    specialised = compiled is not None and compiled.specialised
    return CacheEntry(arguments, static_values(function, static, count), changed, *seconds, calls, specialised)


def _argument(signature: ShapedArray | Placement) -> str:
    kind = describe_type(get_signature_type(signature))
    return f"{kind} on {signature.describe_place()}" if type(signature) is Placement else kind
