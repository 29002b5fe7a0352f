"""Run published tests and programs of libraries under jax and under xtrace; write docs/compatibility.md."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tools.compatibility.environments import InstallationError, make_environments
from tools.compatibility.libraries import LIBRARIES
from tools.compatibility.page import RESULTS, write_page
from tools.compatibility.program_runs import programs_of, run_program, time_import
from tools.compatibility.published_tests import run_tests


def main() -> int:
    """Run the libraries that the command line names; the exit status is 1 if one fails where it passes on jax."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=f"one of {', '.join(LIBRARIES)}; all otherwise")
    parser.add_argument("--sample", action="store_true", help="few tests of each, and keep no results")
    parser.add_argument("--programs", action="store_true", help="programs and times of imports alone")
    parser.add_argument("--page", action="store_true", help="write docs/compatibility.md from the kept results alone")
    given = parser.parse_args()
    unknown = [name for name in given.libraries if name not in LIBRARIES]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(LIBRARIES)}")
    if given.page:
        write_page()
        return 0
    try:
        environments = make_environments()
    except InstallationError as error:
        if not (given.sample and error.offline):
            raise
        print(f"skipped: {error}")
        return 0
    failed = False
    for name in given.libraries or LIBRARIES:
        library = LIBRARIES[name]
        path = RESULTS / f"{name}.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        result = {"version": library.version, "tests": kept.get("tests")}
        if library.tests and not given.programs:
            result["tests"] = tests = run_tests(library, environments, given.sample)
            failed |= bool(tests["failures"])
            print(f"{name}: {tests['pass_on_xtrace']} of the {tests['pass_on_jax']} tests that pass on jax", end=" ")
            print(f"({tests['seconds']['xtrace']} s instead of {tests['seconds']['jax']} s)", flush=True)
            for test, fault in tests["failures"].items():
                print(f"  {test}: {fault.splitlines()[0] if fault else fault}")
        result["programs"] = programs = {
            p.stem: run_program(p, environments)
            for p in programs_of(library)
            if not given.sample or p.stem in library.sample
        }
        for program, run in programs.items():
            failed |= bool(run["faults"])
            print(f"{program}: {run['results']} results, {run['seconds']}", *run["faults"], sep="\n  ", flush=True)
        if not given.sample:
            result["import_seconds"] = time_import(library, environments)
            _keep(path, result)
    if not given.sample:
        write_page()
    return int(failed)


def _keep(path: Path, result: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
