"""How long programs take to compile and to run, by the level of optimisation, beside jax: a table in Markdown.

    python -m benchmarks.compilation [--programs FOLDER] [NAME ...]

FOLDER is the parent of a package ``programs`` with `registry()` and `build(library, name)`, for more programs than
those of this folder. Compilation is counted in processor time, all threads together, which a busy machine changes
little; the time of a run is the least of several on the wall. ``quick`` is what jit's ``compilation="quick"`` does.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.applications import APPLICATIONS
from benchmarks.random_programs import RANDOM_PROGRAMS

LEVELS: dict[str, dict[str, Any]] = {f"level {n}": {"xla_backend_optimization_level": n} for n in range(4)}
# What makes the quick way quick, an option after the other.
LEVELS["no fusion emitters"] = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
LEVELS["quick"] = {**LEVELS["no fusion emitters"], "xla_cpu_parallel_codegen_split_count": 1}
WAYS = ("jax", "full", *LEVELS)


def makers(folder: str | None) -> dict[str, Callable[[Any], tuple[Any, Any, Any]]]:
    """The programs by name, each as a maker of a new function, arguments, and static keyword arguments."""
    found: dict[str, Callable[[Any], tuple[Any, Any, Any]]] = {}
    for name, build in (APPLICATIONS | RANDOM_PROGRAMS).items():
        found[name] = lambda root, build=build: (*build(root)[:2], {})  # type: ignore[misc]
    if folder is not None:
        sys.path.insert(0, folder)
        package = importlib.import_module("programs")
        for name in package.registry():
            found[name] = lambda root, name=name: package.build(root, name)[:3]  # type: ignore[misc]
    return found


def measure(root: Any, make: Callable[[Any], tuple[Any, Any, Any]], options: dict[str, Any]) -> tuple[float, float]:
    """The processor seconds of compiling a program, and the seconds of running it."""
    seconds, spent = [], 0.0
    while len(seconds) < 3 and spent < 6:
        function, arguments, static = make(root)
        lowered = root.jit(function, static_argnames=tuple(static)).lower(*arguments, **static)
        start = time.process_time()
        compiled = lowered.compile(options)
        seconds.append(time.process_time() - start)
        spent += seconds[-1]
    arguments = root.device_put(arguments)
    runs, deadline = [], time.perf_counter() + 0.5
    while len(runs) < 3 or (len(runs) < 1000 and time.perf_counter() < deadline):
        start = time.perf_counter()
        root.block_until_ready(compiled(*arguments))
        runs.append(time.perf_counter() - start)
    return min(seconds), min(runs)


def samples(library: str, folder: str | None, names: list[str]) -> Iterator[tuple[str, str, float, float]]:
    """Measure in this process, which has the library alone."""
    root = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    root.jit(lambda x: x + 1).lower(1.0).compile()
    ways = {"jax": {}} if library == "jax" else {"full": {}, **LEVELS}
    for name, make in makers(folder).items():
        if not names or name in names:
            for way, options in ways.items():
                yield (name, way, *measure(root, make, options))


def run_worker(library: str, folder: str | None, names: list[str]) -> list[Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.compilation", "--library", library, *names]
    command += ["--programs", folder] if folder is not None else []
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def table(rows: list[Any]) -> str:
    """Both figures of each way: milliseconds of compilation, and of a run after a stroke."""
    found: dict[str, dict[str, str]] = {}
    for name, way, compiling, running in rows:
        found.setdefault(name, {})[way] = f"{compiling * 1e3:.0f} / {running * 1e3:.3g}"
    lines = ["| ms of compiling / of a run | " + " | ".join(WAYS) + " |", "|---" * (len(WAYS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join([row.get(way, "") for way in WAYS]) + " |" for name, row in found.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilation", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--programs")
    parser.add_argument("--library")
    given = parser.parse_args()
    if given.library is not None:
        warnings.simplefilter("ignore")
        for sample in samples(given.library, given.programs, given.names):
            print(json.dumps(sample), flush=True)
        return
    names = given.names or list(makers(given.programs))
    for name in names:
        rows = [*run_worker("jax", given.programs, [name]), *run_worker("xtrace", given.programs, [name])]
        text = table(rows)
        print(text if name == names[0] else text.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
