"""The parts of xtrace's times, for the rows that miss their targets: `python -m benchmarks.parts` prints three tables.

A process from its start to the first result, a call of one array, and a function on its way to text.
"""

import argparse
import gc
import json
import operator
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from benchmarks.applications import build_any
from benchmarks.measure import run_script
from benchmarks.programs import Library, load
from benchmarks.report import table
from xtrace._src.core.jaxprs.ir import walk_jaxprs

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
library = programs.load("{library}")
function, arguments = applications.build_any(library, "{program}")
traced = library.root.jit(function).trace(*arguments)
end("trace")
lowered = traced.lower()
lowered.as_text()
end("lower")
library.root.devices()
end("client")
compiled = lowered.compile()
end("compilation")
library.root.block_until_ready(compiled(*arguments))
end("run")
import json
print(json.dumps(ends, separators=(",", ":")))
"""


def measure_start(program: str) -> dict[str, float]:
    """Return the milliseconds of each part of a process, from its start to the first result: medians of nine."""
    rows = []
    for _ in range(10):
        began = str(time.clock_gettime(time.CLOCK_MONOTONIC))
        ends = json.loads(run_script(START.replace("{program}", program), "xtrace", began))
        starts = [0.0, *ends.values()]
        rows.append({name: 1e3 * (stop - start) for (name, stop), start in zip(ends.items(), starts)})
    return {name: statistics.median([row[name] for row in rows[1:]]) for name in rows[0]}


def measure_call(run: Callable[[], Any], count: int = 5000) -> float:
    """Return the least microseconds of processor time of this thread for a call."""
    timer = timeit.Timer(run, gc.enable, time.thread_time)
    timer.timeit(count // 2 + 1)
    return min(timer.repeat(9, count)) / count * 1e6


def measure_calls(library: Library) -> dict[str, tuple[float, float]]:
    """Return the microseconds of calls of one array, and those of jaxlib's functions in them."""
    root, jnp = library.root, library.numpy
    x, rows = jnp.ones(8), {}
    for name, function in {"jit(f)(x)": root.jit(lambda x: x + 1), "-x": operator.neg, "jnp.exp(x)": jnp.exp}.items():
        jitted = root.jit(lambda x, function=function: function(x))
        jitted(x)
        (program,) = jitted._xtrace_jitted.cache.programs.values()
        execute, handlers, operands = program.execute, program.handlers, [x.buffer]
        jaxlib = measure_call(lambda e=execute, o=operands, h=handlers: e(o).consume_with_handlers(h))
        rows[name] = measure_call(lambda f=function: f(x)), jaxlib
    return rows


def count_calls(run: Callable[[], Any]) -> int:
    """Return the number of calls of Python functions in ``run()``."""
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
    run()
    sys.setprofile(None)
    return len(calls)


def measure_text(library: Library, name: str) -> list[float]:
    """Return the equations of a program, and for each the microseconds and calls of tracing, and of lowering."""
    arguments = build_any(library, name).arguments

    def trace() -> Any:
        return library.root.jit(build_any(library, name).function).trace(*arguments)

    equations = sum(len(jaxpr.eqns) for jaxpr in walk_jaxprs(trace().jaxpr.jaxpr))

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
    argparse.ArgumentParser(prog="python -m benchmarks.parts", description=__doc__).parse_args()
    starts = {name: measure_start(name) for name in ("selu", "mlp", "trained perceptron")}
    parts = list(starts["selu"])
    print_table(["ms", *parts], [[name, *[f"{row[part]:.0f}" for part in parts]] for name, row in starts.items()])
    library = load("xtrace")
    calls = measure_calls(library)
    print_table(
        ["us of a call", "all", "of these jaxlib's"], [[name, f"{a:.2f}", f"{b:.2f}"] for name, (a, b) in calls.items()]
    )
    lines = []
    for name in ("straightline 5,000", "gradient of a transformer, 12 layers", "trained perceptron", "escape times"):
        equations, *each = measure_text(library, name)
        lines.append([name, f"{equations:.0f}", *[f"{number:.1f}" for number in each]])
    print_table(["for each equation", "equations", "us of tracing", "calls", "us of lowering", "calls"], lines)


if __name__ == "__main__":
    main()
