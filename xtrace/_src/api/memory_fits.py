"""Whether a program fits a device that need not be here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from xtrace._src.api.memory_reports import Fit, MemoryReport
from xtrace._src.xla import targets
from xtrace._src.xla.device_memory import memory_of_host
from xtrace._src.xla.executables import CompileError

# How compilers say how much a program takes that they gave up.
_USED = re.compile(r"(?:Used |required for [\w ]+ \()(\d+(?:\.\d+)?)([KMGT]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def fit_target(
    name: str, target: str, compile_for: Callable[[str], Any] | None, report_here: Callable[[], MemoryReport]
) -> tuple[Fit, MemoryReport]:
    """Return whether the program `name` fits a target, and the report that the answer rests on.

    compile_for: compiles it for a target, None for a program without its function. report_here: returns its report on
    the device at hand, for which it is asked where the target's compiler is not installed or gives up. ValueError for
    an unknown target, and for one with other numbers of devices than the program is partitioned over.
    """
    if target == "cpu":
        report = report_here()
        note = "" if report.device == "cpu" else f" (as compiled for {report.device})"
        return Fit(name, target, report.peak, memory_of_host(), note), report
    kind = targets.kind_of(target)
    capacity = targets.memory_of(kind)
    if compile_for is None:
        report = report_here()
        return Fit(name, kind, report.peak, capacity, f" (as compiled for {report.device})"), report
    try:
        report = compile_for(target).memory_analysis()
        return Fit(name, kind, report.peak, capacity), report
    except ImportError as error:
        report = report_here()
        return Fit(name, kind, report.peak, capacity, f" (as compiled for {report.device}; {error})"), report
    except CompileError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        report, used = report_here(), _USED.search(str(error))
        needed = int(float(used[1]) * _UNITS[used[2]]) if used is not None else report.peak
        needed = max(needed, (capacity or 0) + 1)
        return Fit(name, kind, needed, capacity, " (its compiler found no room for it)"), report
