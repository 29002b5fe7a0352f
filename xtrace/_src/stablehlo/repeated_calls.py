"""Calls that stay calls in XLA's program, since it would write the function out wherever a result is read.

A random key that is split, and split again, is read in several places each time: XLA computes the cipher in each of
them, and compiles four times as many instructions. Of a few calls each takes longer than what it saves, and of large
arrays the cipher should be part of the loop that reads them. The bits are the same.
"""

from __future__ import annotations

import collections
import math
import re

from xtrace._src.stablehlo.builder import ModuleBuilder

# By measurement: from so many calls on programs compile faster, for so many elements.
_MANY_CALLS = 5
_FEW_ELEMENTS = 16

_CALL = re.compile(r"\bcall @([\w.$]+)\(")
_SHAPE = re.compile(r"tensor<((?:\d+x)*)")


def keep_calls(module: ModuleBuilder, name: str) -> None:
    """Mark the calls of functions called `name`, and of those numbered after it, if there are many."""
    if module.platform != "cpu" or module.mesh is not None or not module.has_function(name):
        return
    prefix = f"call @{name}"
    times = _count_executions(module)
    places = [
        (function, i) for function in module.functions for i, line in enumerate(function.lines) if prefix in line
    ]
    if sum([times[function.name] for function, _ in places]) < _MANY_CALLS:
        return
    for function, i in places:
        line = function.lines[i]
        sizes = [math.prod(map(int, shape.split("x")[:-1])) for shape in _SHAPE.findall(line)]
        if "?" not in line and max(sizes) <= _FEW_ELEMENTS:
            function.lines[i] = line.replace(") : (", ') {mhlo.frontend_attributes = {inlineable = "false"}} : (', 1)


def _count_executions(module: ModuleBuilder) -> dict[str, int]:
    """Return how often each function is called, through others, in the text of the module; main once."""
    callees = {f.name: [name for line in f.lines for name in _CALL.findall(line)] for f in module.functions}
    times: dict[str, int] = collections.Counter()

    def visit(name: str) -> None:
        times[name] += 1
        # More than enough of them need not be counted.
        if times[name] <= _MANY_CALLS:
            for callee in callees.get(name, ()):
                visit(callee)

    visit("main")
    return times
