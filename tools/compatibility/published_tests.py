"""The tests that a library publishes, run under jax and under xtrace."""

from __future__ import annotations

import re
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.compatibility.environments import Environment, fetch_sources
from tools.compatibility.libraries import Library

# A suite that takes longer than this, in seconds, is ended.
_LIMIT = 3 * 3600.0


def run_tests(library: Library, environments: Sequence[Environment], sample: bool) -> dict[str, Any]:
    """Run a library's tests, all or its sample, under each frontend.

    Returns the number of those that pass on jax, the number of those among them that pass on xtrace too, the failures
    of the others with the first lines of their messages, and the seconds that each frontend took.
    """
    sources = fetch_sources(library, environments[1].python)
    files = [name for name in library.sample if name.endswith(".py")] if sample else [str(library.tests)]
    outcomes, seconds = {}, {}
    for environment in environments:
        start = time.perf_counter()
        outcomes[environment.frontend] = _run_pytest(library, environment, sources, files)
        seconds[environment.frontend] = round(time.perf_counter() - start)
    on_jax = [name for name, fault in outcomes["jax"].items() if fault is None]
    on_xtrace = outcomes["xtrace"]
    failures = {n: on_xtrace.get(n, "was not collected") for n in on_jax if on_xtrace.get(n, "") is not None}
    return {
        "pass_on_jax": len(on_jax), "pass_on_xtrace": len(on_jax) - len(failures), "failures": failures,
        "seconds": seconds,
    }


def _run_pytest(
    library: Library, environment: Environment, sources: Path, files: Sequence[str]
) -> dict[str, str | None]:
    """Return the fault of each test that ran, None for one that passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        arguments = [
            "-m", "pytest", "-q", "-n", "2", *environment.pytest, "-p", "no:cacheprovider", f"--junitxml={report}",
            "-o", f"python_files={library.pattern}", *files,
        ]
        done = environment.run(arguments, sources, _LIMIT, dict(library.variables))
        if not report.exists():
            raise RuntimeError(f"{library.name}: pytest on {environment.frontend} ended early:\n{done.stdout[-2000:]}")
        cases = ElementTree.parse(report).iter("testcase")
        found = {f"{c.get('classname')}.{_without_address(c.get('name') or '')}": _fault_of(c) for c in cases}
    return {name: fault for name, fault in found.items() if fault != "skipped"}


def _fault_of(case: ElementTree.Element) -> str | None:
    """Return the message of a test that failed, None if it passed."""
    if case.find("skipped") is not None:
        return "skipped"
    for kind in ("failure", "error"):
        element = case.find(kind)
        if element is not None:
            return (element.get("message") or kind)[:300]
    return None


def _without_address(name: str) -> str:
    """Return the name of a test without addresses of objects, which differ between runs."""
    return re.sub(r"0x[0-9a-f]+", "0x", name)
