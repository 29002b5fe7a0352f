"""Small calls that XLA must not inline, because it would recompute the function at each use of a result.

Keys that are split repeatedly have several uses: XLA computes the cipher at each, and compiles four times as many
instructions. XLA makes one function of a small call, which compiles in a third of the time of its operations. One or
two calls cost more than they save. The bits are the same.
"""

from __future__ import annotations

import collections
import math
import re

from xtrace._src.stablehlo.builder import ModuleBuilder

# Measured: programs compile faster from this number of calls on, for arrays of up to this number of elements.
_MANY_CALLS = 3
_FEW_ELEMENTS = 16

# The first keeps the call, the second has XLA make one function of it.
_ATTRIBUTES = '{mhlo.frontend_attributes = {inlineable = "false", xla_cpu_small_call = "true"}}'

_CALL = re.compile(r"\bcall @([\w.$]+)\(")
_SHAPE = re.compile(r"tensor<((?:\d+x)*)")


def keep_calls(module: ModuleBuilder, name: str) -> None:
    """Mark the calls of the functions `name`, ``name_1`` and so on as not to be inlined, if there are many."""
    prefix = f"call @{name}"
    times = _count_executions(module)
    places = [
        (function, i) for function in module.functions for i, line in enumerate(function.lines) if prefix in line
    ]
    if sum([times[function.name] for function, _ in places]) < _MANY_CALLS:
        return
    for function, i in places:
        line = function.lines[i]
        if is_small(line):
            function.lines[i] = line.replace(") : (", f") {_ATTRIBUTES} : (", 1)


def is_small(line: str) -> bool:
    """Return whether all arrays of an operation have few elements."""
    sizes = [math.prod(map(int, shape.split("x")[:-1])) for shape in _SHAPE.findall(line)]
    return "?" not in line and max(sizes) <= _FEW_ELEMENTS


def _count_executions(module: ModuleBuilder) -> dict[str, int]:
    """Return the number of executions of each function in one run of main; counts stop above `_MANY_CALLS`."""
    callees = {
        f.name: [name for line in f.lines if "call @" in line for name in _CALL.findall(line)] for f in module.functions
    }
    times: dict[str, int] = collections.Counter()

    def visit(name: str) -> None:
        times[name] += 1
        if times[name] <= _MANY_CALLS:
            for callee in callees.get(name, ()):
                visit(callee)

    visit("main")
    return times
