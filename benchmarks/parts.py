"""The parts of xtrace's times, for the rows that miss their targets: `python -m benchmarks.parts` prints three tables.

A process from its start to the first result, a call of one array, and a function on its way to text.
"""

import gc
import json
import operator
import os
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from benchmarks import programs
from benchmarks.measure import REPOSITORY
from benchmarks.report import table
from benchmarks.rows import build_any
from xtrace._src.core.jaxprs.ir import find_jaxprs

# Prints the seconds from the start of the process, whose time is the argument, to the end of each part.
START = """
import sys, time
began = float(sys.argv[1])
ends = {}
def end(name):
    ends[name] = time.clock_gettime(time.CLOCK_MONOTONIC) - began
end("interpreter")
import numpy
end("numpy")
import ml_dtypes, jaxlib.xla_client
end("jaxlib")
from benchmarks import applications, programs
library = programs.load("xtrace")
if "{program}" in programs.PROGRAMS:
    function, arguments = programs.build(library, "{program}")
else:
    function, arguments = applications.build(library.root, "{program}")[:2]
traced = library.root.jit(function).trace(*arguments)
end("trace")
lowered = traced.lower()
lowered.as_text()
end("lower")
library.root.devices()
end("client")
compiled = lowered.compile()
end("XLA's compilation")
library.root.block_until_ready(compiled(*arguments))
end("run")
import json
print(json.dumps(ends))
"""


def measure_start(program: str) -> dict[str, float]:
    """Return the milliseconds of each part of a process, from its start to the first result: medians of nine."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    rows = []
    for _ in range(10):
        began = str(time.clock_gettime(time.CLOCK_MONOTONIC))
        command = [sys.executable, "-c", START.replace("{program}", program), began]
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
        ends = json.loads(done.stdout)
        starts = [0.0, *ends.values()]
        rows.append({name: 1e3 * (stop - start) for (name, stop), start in zip(ends.items(), starts)})
    return {name: statistics.median([row[name] for row in rows[1:]]) for name in rows[0]}


def measure_call(run: Callable[[], Any], count: int = 5000) -> float:
    """Return the least microseconds of processor time of this thread for a call."""
    timer = timeit.Timer(run, gc.enable, time.thread_time)
    timer.timeit(count // 2 + 1)
    return min(timer.repeat(9, count)) / count * 1e6


def measure_calls(root: Any, jnp: Any) -> dict[str, tuple[float, float]]:
    """Return the microseconds of calls of one array, and those of jaxlib's functions in them."""
    x, rows = jnp.ones(8), {}
    for name, function in {"jit(f)(x)": root.jit(lambda x: x + 1), "-x": operator.neg, "jnp.exp(x)": jnp.exp}.items():
        jitted = root.jit(lambda x, function=function: function(x))
        jitted(x)
        (program,) = jitted._xtrace_jitted.cache.programs.values()
        execute, handlers, operands = program.execute, program.handlers, [x.buffer]
        jaxlib = measure_call(lambda e=execute, o=operands, h=handlers: e(o).consume_with_handlers(h))
        rows[name] = measure_call(lambda f=function: f(x)), jaxlib
    return rows


def count_equations(jaxpr: Any) -> int:
    """Return the number of equations of a jaxpr, with those of jaxprs in them, each once."""
    seen, pending = {}, [jaxpr]
    while pending:
        jaxpr = pending.pop()
        if jaxpr not in seen:
            seen[jaxpr] = len(jaxpr.eqns)
            pending += [inner for equation in jaxpr.eqns for inner in find_jaxprs(equation.parameters)]
    return sum(seen.values())


def count_calls(run: Callable[[], Any]) -> int:
    """Return the number of calls of Python functions in ``run()``."""
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
    run()
    sys.setprofile(None)
    return len(calls)


def measure_text(root: Any, name: str) -> list[float]:
    """Return the equations of a program, and for each the microseconds and calls of tracing, and of lowering."""
    library = programs.load("xtrace")

    def trace() -> Any:
        return root.jit(build_any(library, name).function).trace(*arguments)

    arguments = build_any(library, name).arguments
    traced = trace()
    equations = count_equations(traced.jaxpr.jaxpr)

    def lower() -> str:
        return str(trace().lower().as_text())

    both, tracing = measure_call(lower, 3), measure_call(trace, 3)
    calls, calls_of_tracing = count_calls(lower), count_calls(trace)
    pairs = [(tracing, calls_of_tracing), (both - tracing, calls - calls_of_tracing)]
    return [equations, *[number / equations for pair in pairs for number in pair]]


def print_table(header: list[str], lines: list[list[str]]) -> None:
    """Print a table in Markdown, with an empty line after it."""
    print(table(header, lines), flush=True)
    print()


def main() -> None:
    """Print the tables."""
    starts = {name: measure_start(name) for name in ("selu", "mlp", "trained perceptron")}
    parts = list(starts["selu"])
    print_table(["ms", *parts], [[name, *[f"{row[part]:.0f}" for part in parts]] for name, row in starts.items()])
    import xtrace  # after the new processes, which should have the machine for themselves
    import xtrace.numpy as jnp

    calls = measure_calls(xtrace, jnp)
    print_table(
        ["us of a call", "all", "of these jaxlib's"], [[name, f"{a:.2f}", f"{b:.2f}"] for name, (a, b) in calls.items()]
    )
    lines = []
    for name in ("straightline 5,000", "gradient of a transformer, 12 layers", "trained perceptron", "escape times"):
        equations, *each = measure_text(xtrace, name)
        lines.append([name, f"{equations:.0f}", *[f"{number:.1f}" for number in each]])
    print_table(["for each equation", "equations", "us of tracing", "calls", "us of lowering", "calls"], lines)


if __name__ == "__main__":
    main()
