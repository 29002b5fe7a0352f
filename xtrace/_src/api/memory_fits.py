"""Whether a program fits a device that need not be here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from xtrace._src.api.memory_reports import Fit, MemoryReport
from xtrace._src.xla import targets
from xtrace._src.xla.device_memory import memory_of_host
from xtrace._src.xla.executables import CompileError

# How a compiler says how much the program takes that it gave up.
_USED = re.compile(r"Used (\d+(?:\.\d+)?)([KMGT]?) of")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def fit_target(report: MemoryReport, target: str, compile_for: Callable[[str], Any]) -> Fit:
    """Return whether the program of `report` fits a target; `compile_for` compiles it for one.

    ValueError for an unknown target, and for one with other numbers of devices than the program is partitioned over.
    """
    if target == "cpu":
        note = "" if report.device == "cpu" else f" (as compiled for {report.device})"
        return Fit(report.name, target, report.peak, memory_of_host(), note)
    kind = targets.kind_of(target)
    capacity = targets.memory_of(kind)
    try:
        needed = compile_for(target).memory_analysis().peak
    except ImportError as error:
        return Fit(report.name, kind, report.peak, capacity, f" (as compiled for {report.device}; {error})")
    except CompileError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        used = _USED.search(str(error))
        needed = int(float(used[1]) * _UNITS[used[2]]) if used is not None else report.peak
        needed = max(needed, (capacity or 0) + 1)
        return Fit(report.name, kind, needed, capacity, " (the compiler found no room for it)")
    return Fit(report.name, kind, needed, capacity)
