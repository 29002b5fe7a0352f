"""Whether a program fits into a device's memory; the device need not be present."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from xtrace._src.api.reports.memory_reports import Fit, MemoryReport
from xtrace._src.xla.device_memory import find_memory_of_host
from xtrace._src.xla.executables.executables import CompileError
from xtrace._src.xla.plugins import absent_devices

# The number of bytes in the compilers' messages about too little memory.
_USED = re.compile(r"(?:Used |required for [\w ]+ \()(\d+(?:\.\d+)?)([KMGT]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def fit_target(
    name: str, target: str, compile_for: Callable[[str], Any] | None, report_here: Callable[[], MemoryReport]
) -> tuple[Fit, MemoryReport]:
    """Return whether the program `name` fits a target, and the report behind the answer.

    compile_for: compiles the program for a target; None for a program without its function. report_here: returns the
    report for the present device; it is called if the target's compiler is not installed or runs out of memory.
    Raises ValueError for an unknown target, and for a number of devices that differs from the program's mesh.
    """
    if target == "cpu":
        report = report_here()
        note = "" if report.device == "cpu" else f" (as compiled for {report.device})"
        return Fit(name, target, report.peak, find_memory_of_host(), note), report
    kind = absent_devices.get_device_kind(target)
    capacity = absent_devices.get_device_memory(kind)
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
