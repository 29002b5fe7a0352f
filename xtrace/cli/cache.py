"""``python -m xtrace cache``: the folder of compiled programs."""

from __future__ import annotations

import os

from xtrace._src.core.diagnostics.text_tables import format_count, format_size
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.runtime.compilation_cache import count_entries
from xtrace._src.runtime.disk_cache import DiskCache
from xtrace.cli.errors import FAILED, WRONG_COMMAND, CommandError
from xtrace.cli.results import Result


def describe_cache(directory: str | None, clear: bool, verify: bool) -> Result:
    """Clear or verify the folder, by default the folder of the environment, and return its state.

    Raises `CommandError` without a folder, for an unusable folder, and for wrong entries.
    """
    directory = directory or cache_settings.directory.value
    if not directory:
        raise CommandError(
            "name the folder of compiled programs with --directory or the variable XTRACE_COMPILATION_CACHE_DIR",
            WRONG_COMMAND,
        )
    try:
        cache = DiskCache(directory)
        about = {"directory": str(cache.directory)}
        if clear:
            deleted = cache.clear()
            return Result(f"{cache.directory}: {format_count(deleted, 'file')} deleted", {**about, "deleted": deleted})
        wrong = cache.verify()[1] if verify else []
        sizes, traces = count_entries(cache)
        aside = cache.count_wrong()
    except OSError as error:
        raise CommandError(str(error)) from None
    absent = "" if os.path.isdir(cache.directory) else "there is no such folder yet, "
    state = (
        f"{cache.directory}: {absent}{format_count(len(sizes), 'program')}, {format_size(sum(sizes))}, "
        f"{format_count(traces, 'trace')}, {aside} wrong ones set aside"
    )
    if wrong:
        raise CommandError("\n".join([state, *[f"  {name} was wrong" for name in wrong]]), FAILED)
    data = {
        **about, "programs": len(sizes), "bytes": sum(sizes), "traces": traces, "set_aside": aside, "verified": verify
    }
    return Result(state + (", all verified" if verify else ""), data)
