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


def keep_calls(module: ModuleBuilder, name: str) -> bool:
    """Mark small calls of the functions `name`, ``name_1`` and so on as not to be inlined, if there are many calls.

    Returns whether there are.
    """
    # Functions of the user's, which may have that name, are called by ``call``.
    prefix = f"func.call @{name}"
    times = count_executions(module)
    places = [
        (function, i) for function in module.functions for i, line in enumerate(function.lines) if prefix in line
    ]
    if sum([times[function.name] for function, _ in places]) < _MANY_CALLS:
        return False

    def mark(line: str) -> str:
        is_kept = prefix in line and is_small(line)
        return line.replace(") : (", f") {_ATTRIBUTES} : (", 1) if is_kept else line

    for function, i in places:
        # An operation with regions, such as a loop, has several lines.
        function.lines[i] = "\n".join(map(mark, function.lines[i].split("\n")))
    return True


def is_small(line: str) -> bool:
    """Return whether all arrays of an operation have few elements."""
    return "?" not in line and count_elements(line) <= _FEW_ELEMENTS


def count_elements(text: str) -> int:
    """Return the number of elements of the largest of some types of arrays."""
    return max([math.prod(map(int, shape.split("x")[:-1])) for shape in _SHAPE.findall(text)])


def count_executions(module: ModuleBuilder) -> dict[str, int]:
    """Return the number of executions of each function in one run of main; counts stop above a few."""
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
