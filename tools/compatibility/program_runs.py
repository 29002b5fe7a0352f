"""Programs that use libraries, run under jax and under xtrace, and the times of imports."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.compatibility.environments import ROOT, Environment
from tools.compatibility.libraries import Library

_FOLDER = Path(__file__).parent / "programs"
_LIMIT = 1800.0


def programs_of(library: Library) -> list[Path]:
    """Return the programs that use a library: those whose names begin with its own."""
    return sorted(_FOLDER.glob(f"{library.name.replace('-', '_')}_*.py"))


def run_program(path: Path, environments: Sequence[Environment]) -> dict[str, Any]:
    """Run a program under each frontend, and compare the numbers that it prints.

    A program prints an object of JSON in its last line: `tolerance`, and `results`, nested lists of numbers by name.
    Returns the names of results, the faults, and the seconds that each frontend took.
    """
    outputs, seconds = {}, {}
    for environment in environments:
        start = time.perf_counter()
        done = environment.run([*environment.script, str(path)], ROOT, _LIMIT)
        seconds[environment.frontend] = round(time.perf_counter() - start, 1)
        if done.returncode:
            fault = done.stderr.strip().splitlines()[-1:]
            return {"results": 0, "faults": [f"on {environment.frontend}: {' '.join(fault)}"], "seconds": seconds}
        outputs[environment.frontend] = json.loads(done.stdout.strip().splitlines()[-1])
    expected, found = outputs["jax"], outputs["xtrace"]
    tolerance, faults = expected["tolerance"], []
    for name, value in expected["results"].items():
        if not _agrees(found["results"].get(name), value, tolerance):
            faults.append(f"{name}: {found['results'].get(name)!r} instead of {value!r}"[:300])
    return {"results": len(expected["results"]), "faults": faults, "seconds": seconds}


def _agrees(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether nested lists of numbers, or texts, agree within a tolerance relative to the largest number."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and _close(found, expected, tolerance)
    return _close([found], [expected], tolerance)


def _close(found: list[Any], expected: list[Any], tolerance: float) -> bool:
    ours, theirs = list(_flatten(found)), list(_flatten(expected))
    if len(ours) != len(theirs):
        return False
    numbers = [abs(x) for x in theirs if isinstance(x, (int, float)) and x == x and abs(x) != float("inf")]
    bound = tolerance * max(numbers, default=0.0)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, float) and isinstance(a, (int, float)):
            if not (a == b or abs(a - b) <= bound or (a != a and b != b)):
                return False
        elif a != b:
            return False
    return True


def _flatten(values: Any) -> Any:
    for value in values:
        if isinstance(value, list):
            yield from _flatten(value)
        else:
            yield value


def time_import(library: Library, environments: Sequence[Environment], repeats: int = 5) -> Mapping[str, float]:
    """Return the median seconds of processor time that importing a library takes under each frontend, interleaved."""
    times: dict[str, list[float]] = {e.frontend: [] for e in environments}
    for _ in range(repeats):
        for environment in environments:
            begin = "import xtrace; xtrace.as_jax(); " if environment.frontend == "xtrace" else ""
            code = f"import time; t = time.process_time(); {begin}import {library.imports}; "
            done = environment.run(["-c", f"{code}print(time.process_time() - t)"], ROOT, _LIMIT)
            if done.returncode:
                return {}
            times[environment.frontend].append(float(done.stdout.split()[-1]))
    return {frontend: round(statistics.median(values), 3) for frontend, values in times.items()}
