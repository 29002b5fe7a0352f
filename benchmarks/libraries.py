"""Libraries on xtrace and on jax: `python -m benchmarks.libraries` prints the ratios of xtrace's times to jax's.

The dispatch of training steps is timed in two processes in turns, the first step of a program in fresh ones in turns.
The environments are those of `tools.compatibility`.
"""

import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from tools.compatibility.environments import ROOT, make_environments

_WORKER = Path(__file__).with_name("library_worker.py")
_ROUNDS, _STEPS, _STARTS = 30, 100, 5
_TARGETS = {"equinox": 1.0, "nnx": 1.0, "transformer": 0.6}


def _start(environment: Any, name: str) -> Any:
    return subprocess.Popen(
        [str(environment.python), *environment.script, str(_WORKER), name], cwd=ROOT, text=True,
        env={**os.environ, **environment.variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )


def _ask(worker: Any, steps: int) -> float:
    worker.stdin.write(f"{steps}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def measure_dispatch(name: str) -> dict[str, float]:
    """Return the median seconds of a step under each frontend, and the median ratio of neighbouring measurements."""
    workers = {e.frontend: _start(e, name) for e in make_environments()}
    for worker in workers.values():
        _ask(worker, _STEPS)
    pairs = [[_ask(workers[f], _STEPS) for f in ("jax", "xtrace")] for _ in range(_ROUNDS)]
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return _summarize(pairs)


def measure_start(name: str) -> dict[str, float]:
    """Return the same of the seconds from the start of a process to the results of its first step."""
    pairs = []
    for _ in range(_STARTS):
        seconds = {}
        for environment in make_environments():
            start = time.perf_counter()
            worker = _start(environment, name)
            _ask(worker, 1)
            seconds[environment.frontend] = time.perf_counter() - start
            worker.stdin.close()
            worker.wait()
        pairs.append([seconds["jax"], seconds["xtrace"]])
    return _summarize(pairs)


def _summarize(pairs: list[list[float]]) -> dict[str, float]:
    jax, xtrace = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"jax": jax, "xtrace": xtrace, "ratio": statistics.median(x / j for j, x in pairs)}


def main() -> None:
    """Print a line for each row: the seconds, the ratio, and the target for it."""
    argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__).parse_args()
    for name in ("equinox", "nnx", "transformer"):
        row = (measure_start if name == "transformer" else measure_dispatch)(name)
        what = "first step from the start" if name == "transformer" else "dispatch of a step"
        print(f"{name}, {what}: {row['jax']:.3g} s on jax, {row['xtrace']:.3g} s on xtrace, ratio {row['ratio']:.2f}"
              f" (target {_TARGETS[name]})", flush=True)


if __name__ == "__main__":
    main()
