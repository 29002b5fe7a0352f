"""The tests that a library publishes, run under jax and under xtrace."""

from __future__ import annotations

import json
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.compatibility.drawn_tests import VARIABLE, without_address
from tools.compatibility.environments import ROOT, Environment, cache_folder, fetch_sources
from tools.compatibility.libraries import Library

# A suite that takes longer than this, in seconds, is ended.
_LIMIT = 3 * 3600.0


def run_tests(library: Library, environments: Sequence[Environment], sample: bool) -> dict[str, Any]:
    """Run a library's tests, all or its sample, under each frontend.

    What came out on jax is kept beside the environments, and used again: it changes with a library's version only.
    Returns the number of those that pass on jax, the number of those among them that pass on xtrace too, the failures
    of the others with the first lines of their messages, and the seconds that each frontend took.
    """
    sources = fetch_sources(library, environments[1].python)
    files = [name for name in library.sample if name.endswith(".py")] if sample else [str(library.tests)]
    outcomes, seconds = {}, {}
    for environment in environments:
        frontend = environment.frontend
        path = cache_folder() / f"{frontend}-{library.name}-{library.version}-{library.one_of}.json"
        if frontend == "jax" and path.exists() and not sample:
            outcomes[frontend], seconds[frontend] = json.loads(path.read_text())
            continue
        start = time.perf_counter()
        outcomes[frontend] = _run_pytest(library, environment, sources, files, 1 if sample else library.one_of)
        seconds[frontend] = round(time.perf_counter() - start)
        if not sample:
            path.write_text(json.dumps([outcomes[frontend], seconds[frontend]], indent=1))
    on_jax = [name for name, fault in outcomes["jax"].items() if fault is None]
    on_xtrace = outcomes["xtrace"]
    failures = {n: on_xtrace.get(n, "was not collected") for n in on_jax if on_xtrace.get(n, "") is not None}
    if not on_jax:
        raise RuntimeError(f"{library.name}: no test passes on jax")
    return {
        "pass_on_jax": len(on_jax), "pass_on_xtrace": len(on_jax) - len(failures), "failures": failures,
        "seconds": seconds,
    }


def _run_pytest(
    library: Library, environment: Environment, sources: Path, files: Sequence[str], one_of: int
) -> dict[str, str | None]:
    """Return the fault of each test that ran, None for one that passed. one_of: of how many tests one is run."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        arguments = [
            "-m", "pytest", "-q", "-n", "2", *environment.pytest, "-p", "no:cacheprovider", f"--junitxml={report}",
            "-o", f"python_files={library.pattern}", "-p", "tools.compatibility.drawn_tests",
            "-p", "tools.compatibility.separate_modules",
            "--continue-on-collection-errors", *files,
        ]
        variables = {"PYTHONPATH": str(ROOT), VARIABLE: str(one_of), **dict(library.variables)}
        done = environment.run(arguments, sources, _LIMIT, variables)
        if not report.exists():
            raise RuntimeError(f"{library.name}: pytest on {environment.frontend} ended early:\n{done.stdout[-2000:]}")
        cases = ElementTree.parse(report).iter("testcase")
        found = {f"{c.get('classname')}.{without_address(c.get('name') or '')}": _fault_of(c) for c in cases}
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
