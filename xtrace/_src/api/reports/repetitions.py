"""Repetitions in a traced program: functions called again with the same operations, and rounds of loops.

XLA compiles each copy; it compiles the body of a ``lax.scan`` once.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core.diagnostics.positions import is_internal, resolve
from xtrace._src.core.jaxprs.ir import Jaxpr, JaxprEqn, find_jaxprs, walk_equations, walk_jaxprs
from xtrace._src.core.trace import current_trace
from xtrace._src.transforms.stage import StagingTrace
from xtrace._src.xla.source_locations import Place

# A repetition is reported from this number of rounds, and this number of saved operations, on.
_MIN_TIMES, _MIN_SAVED = 3, 20
# The number of distances between equal operations that are tried as the length of a round.
_MAX_DISTANCES = 12


class Repetition(NamedTuple):
    """A group of operations that a program contains several times.

    what: the called function, or the lines of a loop. place: the line of the call, or the first line of the loop.
    times, operations: the number of copies, and the number of operations in each. of_all: the number of the program's
    operations from the same expressions, operations of derivatives included.
    """

    what: str
    place: Place
    times: int
    operations: int
    of_all: int

    def __str__(self) -> str:
        return (
            f"{self.what} {self.times} times, in {self.place}, with the same {self.operations} operations; "
            f"{self.of_all} of the program's come from there"
        )


class _Call(NamedTuple):
    """A call of a user's function: its code, the line of the call, and the equations that it recorded."""

    code: CodeType
    caller: CodeType
    line: int
    equations: list[JaxprEqn]
    start: int
    end: int


def find_repetitions(trace: Callable[[], Jaxpr]) -> list[Repetition]:
    """Return the repetitions in the program that ``trace()`` traces, the most operations first."""
    with _Recorder() as recorder:
        jaxpr = trace()
    finder = _Finder(jaxpr)
    finder.add_calls(recorder.calls)
    for one in walk_jaxprs(jaxpr):
        finder.add_rounds(one.eqns)
    return sorted(finder.repetitions, key=lambda r: -(r.times - 1) * r.operations)


class _Recorder:
    """A context that records the calls of users' functions with their equations."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self._open: list[tuple[FrameType, list[JaxprEqn], int]] = []
        self._records = False

    def __enter__(self) -> _Recorder:
        # A profiler of the user is left in place.
        self._records = sys.getprofile() is None
        if self._records:
            sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._records:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            if is_internal(code.co_filename) or (code.co_name.startswith("<") and code.co_name != "<lambda>"):
                return
            equations = _find_recorded_equations()
            if equations is not None:
                self._open.append((frame, equations, len(equations)))
        elif event == "return" and self._open and self._open[-1][0] is frame:
            _, equations, start = self._open.pop()
            caller = _calling_frame(frame)
            # If a trace began or ended in the call, the equations belong to another trace.
            if caller is not None and equations is _find_recorded_equations() and len(equations) > start:
                call = _Call(frame.f_code, caller.f_code, caller.f_lineno, equations, start, len(equations))
                self.calls.append(call)


def _find_recorded_equations() -> list[JaxprEqn] | None:
    """Return the equations of the program that is being recorded, None if there is none."""
    trace: Any = current_trace.get()
    while trace is not None and (not isinstance(trace, StagingTrace) or trace.is_tape):
        trace = trace.parent
    return None if trace is None else trace.equations


def _calling_frame(frame: FrameType) -> FrameType | None:
    caller = frame.f_back
    while caller is not None and is_internal(caller.f_code.co_filename):
        caller = caller.f_back
    return caller


class _Finder:
    """The repetitions of a program; each expression counts in one repetition only."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.repetitions: list[Repetition] = []
        self._counts = Counter([one.source[:2] for one in walk_equations(jaxpr.eqns) if one.source is not None])
        self._covered: set[Any] = set()

    def add_calls(self, calls: Sequence[_Call]) -> None:
        """Add the functions that one line calls several times with the same operations."""
        groups: dict[Any, list[_Call]] = {}
        for call in calls:
            key = (call.code, call.caller, call.line, _describe(call.equations[call.start : call.end]))
            groups.setdefault(key, []).append(call)
        # A function comes before the functions that it calls.
        most_saved = sorted(
            groups.values(), key=lambda group: (-_count_saved_equations(group), group[0].start - group[0].end)
        )
        for group in most_saved:
            first = group[0]
            place = Place(first.caller.co_filename, first.line, first.caller.co_name)
            name = first.code.co_name if first.code.co_name != "<lambda>" else "a lambda"
            self._add(f"{name} is called", place, len(group), first.equations[first.start : first.end])

    def add_rounds(self, equations: Sequence[JaxprEqn]) -> None:
        """Add the stretches of equations that follow one another several times."""
        numbers: dict[Any, int] = {}
        tokens = np.array([numbers.setdefault(one, len(numbers)) for one in _describe(equations)], np.int64)
        runs = [run for distance in _distances(tokens.tolist()) for run in _runs(tokens, distance)]
        taken = np.zeros(len(tokens), bool)
        for start, length, times in sorted(runs, key=lambda run: (-(run[2] - 1) * run[1], run[1])):
            part = equations[start : start + length]
            sources = [one.source for one in part if one.source is not None]
            if not sources or taken[start : start + length * times].any():
                continue
            taken[start : start + length * times] = True
            ((code, _),) = Counter([source[0] for source in sources]).most_common(1)
            lines = sorted({resolve(source).line for source in sources if source[0] is code})
            what, called = f"lines {lines[0]} to {lines[-1]} of {code.co_name} run", _called_names(part)
            if len(called) == 1:
                what = f"{called[0]} is called"
            elif lines[0] == lines[-1]:
                what = f"line {lines[0]} of {code.co_name} runs"
            self._add(what, Place(code.co_filename, lines[0], code.co_name), times, part)

    def _add(self, what: str, place: Place, times: int, part: Sequence[JaxprEqn]) -> None:
        inner = list(walk_equations(part))
        at = {one.source[:2] for one in inner if one.source is not None}
        if times < _MIN_TIMES or (times - 1) * len(inner) < _MIN_SAVED or len(at & self._covered) * 2 > len(at):
            return
        self._covered |= at
        of_all = sum([self._counts[one] for one in at])
        self.repetitions.append(Repetition(what, place, times, len(inner), of_all))


def _called_names(part: Iterable[JaxprEqn]) -> list[str]:
    """Return the names of the jitted functions that equations call."""
    named = [dict(zip(one.primitive.parameters, one.parameters, strict=True)) for one in part]
    return [one["name"] for one in named if "name" in one and "jaxpr" in one]


def _count_saved_equations(group: Sequence[_Call]) -> int:
    return (len(group) - 1) * (group[0].end - group[0].start)


def _describe(equations: Iterable[JaxprEqn]) -> tuple[Any, ...]:
    """Return a key of equations: primitives, types of operands, inner jaxprs and places."""
    return tuple([
        (
            one.primitive, tuple([x.aval for x in one.invars]), tuple(map(id, find_jaxprs(one.parameters))),
            None if one.source is None else one.source[:2],
        )
        for one in equations
    ])


def _distances(tokens: Sequence[int]) -> list[int]:
    """Return the most frequent distances between equal tokens."""
    last: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for position, token in enumerate(tokens):
        if token in last:
            counts[position - last[token]] += 1
        last[token] = position
    return [distance for distance, _ in counts.most_common(_MAX_DISTANCES)]


def _runs(tokens: np.ndarray[Any, Any], distance: int) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the length and the number of consecutive equal rounds of the length `distance`."""
    equal = tokens[distance:] == tokens[:-distance]
    position = 0
    for value, group in itertools.groupby(equal.tolist()):
        length = len(list(group))
        if value and length >= distance:
            yield position, distance, length // distance + 1
        position += length
