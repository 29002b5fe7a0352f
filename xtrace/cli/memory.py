"""``python -m xtrace memory``: the memory of a user's function, and whether it fits a device."""

from __future__ import annotations

import json
from typing import Any

from xtrace._src.api.reports.memory_fits import fit_target
from xtrace.cli.inspection import Request, attempt, trace_function
from xtrace.cli.results import Result


def describe_memory(request: Request) -> Result:
    """Return the memory report of the requested function, and whether it fits the target. Raises `CommandError`."""
    name, traced = trace_function(request)
    lowered = attempt(f"lowering {name} to StableHLO failed", traced.lower)

    def compile_for(target: str) -> Any:
        return lowered.compile(**request.compile_options)

    def report_here() -> Any:
        return lowered.compile().memory_analysis()

    target = request.device
    if target is None:
        report = attempt(f"compiling {name} failed", report_here)
        return Result(str(report), json.loads(report.to_json()))
    fit, report = attempt(
        f"compiling {name} failed", lambda: fit_target(lowered.fun_name, target, compile_for, report_here)
    )
    return Result(
        f"{report}\n\n{fit}", json.loads(report.to_json()) | {"target": fit._asdict(), "fits": bool(fit)}
    )
