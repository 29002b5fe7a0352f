"""The collectives of a partitioned program, read from the text of its optimised HLO."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xtrace._src.xla.hlo.hlo_frames import Frames
from xtrace._src.xla.hlo.hlo_text import PrintedComputation, read_computations
from xtrace._src.xla.hlo.hlo_types import read_array_types


class Collective(NamedTuple):
    """An operation in which devices exchange data.

    kind: its name in HLO, such as ``all-reduce``. size: the bytes on one device of the operand or the result, whichever
    is larger. groups: the numbers of the devices that exchange data. times: the number of executions in one run;
    `at_least` says that it is a lower bound, because of a loop with an unknown number of steps. file, line: the user's
    line, None if HLO has none.
    """

    kind: str
    size: int
    groups: tuple[tuple[int, ...], ...]
    times: int
    at_least: bool
    file: str | None
    line: int | None


_KINDS = (
    "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "collective-broadcast",
    "ragged-all-to-all",
)
_LISTED_GROUPS = re.compile(r"replica_groups=\{((?:\{[\d,]*\},?)*)\}")
_GRID_GROUPS = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
# A dimension of a mesh, or one of the factors of its size: ``'axis_0'`` or ``'axis_0':(2)4``.
_MESH_GROUPS = re.compile(r"replica_groups=mesh\[([^\]]*)\] ?\{([^}]*)\}")
_MESH_AXIS = re.compile(r"'([^']*)'(?:=(\d+))?(?::\((\d+)\)(\d+))?")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_CONDITION = re.compile(r"condition=%?([\w.-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


def read_collectives(text: str, devices: int) -> list[Collective]:
    """Return the collectives of a program over `devices` devices, in the order of its text."""
    frames, computations = Frames(text), read_computations(text.splitlines())
    rows = [
        (computation.name, kind, instruction) for computation in computations
        for instruction in computation.instructions.values()
        if (kind := instruction.opcode.removesuffix("-start")) in _KINDS
    ]
    calls = _calls(computations) if rows else {}
    collectives = []
    known: dict[str, tuple[int, bool]] = {}
    for caller, kind, instruction in rows:
        groups = _groups(instruction.text, devices)
        size = _size(instruction.type, is_started=instruction.opcode != kind)
        if kind == "reduce-scatter":
            size *= max(map(len, groups))
        runs = _count_computation_runs(caller, calls, known)
        collectives.append(Collective(kind, size, groups, *runs, *frames.place(instruction.text)))
    return collectives


def count_runs(computations: Sequence[PrintedComputation]) -> dict[str, int]:
    """Return the number of runs of each computation in one run of the program; a loop of unknown length counts once."""
    calls = _calls(computations)
    known: dict[str, tuple[int, bool]] = {}
    return {one.name: _count_computation_runs(one.name, calls, known)[0] for one in computations}


class _Call(NamedTuple):
    """A computation that calls another one, the number of calls in each run, and whether that is a lower bound."""

    caller: str
    times: int
    at_least: bool


def _calls(computations: Sequence[PrintedComputation]) -> dict[str, list[_Call]]:
    """Return the calls of each computation."""
    calls: dict[str, list[_Call]] = {}
    bounds = {one.name: _bound([i.text for i in one.instructions.values()]) for one in computations}
    for computation in computations:
        for instruction in computation.instructions.values():
            times: int | None = 1
            if instruction.opcode == "while":
                trips, condition = _TRIPS.search(instruction.text), _CONDITION.search(instruction.text)
                times = int(trips[1]) if trips is not None else bounds.get(condition[1] if condition else "")
            for called in instruction.called:
                calls.setdefault(called, []).append(_Call(computation.name, times or 1, times is None))
    return calls


def _bound(lines: list[str]) -> int | None:
    """Return the number of steps of a loop with this condition: a counter from zero is less than a constant."""
    compared = [re.search(r"compare\(%?[\w.-]+, %?([\w.-]+)\), direction=LT", line) for line in lines]
    names = [match[1] for match in compared if match is not None]
    for line in lines if len(names) == 1 else ():
        constant = re.search(rf"^\s*%?{re.escape(names[0])} = s\d+\[\]\S* constant\((\d+)\)", line)
        if constant is not None:
            return int(constant[1])
    return None


def _count_computation_runs(
    name: str, calls: dict[str, list[_Call]], known: dict[str, tuple[int, bool]]
) -> tuple[int, bool]:
    """Return the number of runs of a computation in one run of the program, and whether that is a lower bound."""
    if name not in calls:
        return 1, False
    if name not in known:
        times, at_least = 0, False
        for call in calls[name]:
            outer, unknown = _count_computation_runs(call.caller, calls, known)
            times, at_least = times + outer * call.times, at_least or unknown or call.at_least
        known[name] = times, at_least
    return known[name]


def _size(types: str, *, is_started: bool) -> int:
    """Return the bytes of the arrays of a type; for a started operation, of its operand or its result."""
    sizes = [one.bytes for one in read_array_types(types)]
    return max(sizes, default=0) if is_started else sum(sizes)


def _groups(line: str, devices: int) -> tuple[tuple[int, ...], ...]:
    for pattern in (_PAIRS, _LISTED_GROUPS):
        match = pattern.search(line)
        if match is not None and match[1]:
            return tuple([tuple(map(int, row.split(","))) for row in re.findall(r"\{([\d,]+)\}", match[1])])
    match = _MESH_GROUPS.search(line)
    if match is not None:
        return _read_mesh_groups(match[1], match[2])
    match = _GRID_GROUPS.search(line)
    if match is None:
        return (tuple(range(devices)),)
    shape, grid = [tuple(map(int, numbers.split(","))) for numbers in match.groups()[:2]]
    numbers = np.arange(math.prod(grid)).reshape(grid)
    if match[3]:
        numbers = numbers.transpose([int(n) for n in match[3].split(",")])
    return tuple([tuple(row) for row in numbers.reshape(shape).tolist()])


def _read_mesh_groups(mesh: str, axes: str) -> tuple[tuple[int, ...], ...]:
    """Return the groups of devices that differ along axes of a mesh, or along factors of their sizes."""
    sizes = {name: int(size) for name, size, _, _ in _MESH_AXIS.findall(mesh)}
    factors: list[int] = []
    chosen: list[int] = []
    wanted = {name: (int(before or 1), int(size or sizes[name])) for name, _, before, size in _MESH_AXIS.findall(axes)}
    for name, size in sizes.items():
        before, own = wanted.get(name, (1, 1))
        chosen += [len(factors) + 1] if name in wanted else []
        factors += [before, own, size // before // own]
    numbers = np.moveaxis(np.arange(math.prod(factors)).reshape(factors), chosen, range(-len(chosen), 0))
    return tuple([tuple(row) for row in numbers.reshape(-1, math.prod([factors[i] for i in chosen])).tolist()])
