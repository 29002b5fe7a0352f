"""Paired measurement of two libraries, each in processes of its own, taking turns.

A *measure* is either `Fresh`, a script that runs in a new process and prints one number, or a picklable callable
`measure(library) -> Sampler`, whose `run(count)` does an operation `count` times and returns the seconds it took.
Measures of the second kind run in a worker process that imports that one library only: neither side pays for the
other's objects in a garbage collection, nor for bytecode that was specialised to the other's types.
"""

import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NamedTuple

from benchmarks.programs import Library, load

REPOSITORY = pathlib.Path(__file__).parent.parent


@dataclass(frozen=True)
class Fresh:
    """A script for a new Python process that prints one number; `{library}` in it becomes the library's name."""

    script: str


class Sampler(NamedTuple):
    """A prepared measure; results are seconds for each of the `parts` of an operation."""

    run: Callable[[int], float]
    parts: int = 1


WarmMeasure = Callable[[Library], Sampler]
Measure = Fresh | WarmMeasure


@dataclass(frozen=True)
class Row:
    """One line of the table: `measure` on the subject over `baseline` on the reference.

    `baseline` is by default the same measure; a row that compares two measures of the subject sets it and
    `within_subject`. `target` bounds the ratio from above. `against_spread` in its place asks that the ratio lie
    within what a second process of the reference gives against the first (its 90th percentile). `devices` are the CPU
    devices of the processes.
    """

    name: str
    measure: Measure
    target: float | None = None
    unit: str = "us"
    baseline: Measure | None = None
    within_subject: bool = False
    against_spread: bool = False
    devices: int = 1


@dataclass(frozen=True)
class Plan:
    """How much to measure: each round has new worker processes; pairs of samples fill the budget of a row and round."""

    rounds: int = 3
    pairs: tuple[int, int] = (4, 20)
    budget_seconds: float = 1.5
    sample_seconds: float = 0.01


QUICK = Plan(rounds=1, pairs=(3, 8), budget_seconds=0.4, sample_seconds=0.004)


@dataclass
class Result:
    """The samples of one row, pair by pair, in seconds or bytes per operation; `control` is empty in most rows."""

    row: Row
    subject: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)
    control: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def ratios(self) -> list[float]:
        return [mine / other for mine, other in zip(self.subject, self.reference)]

    @property
    def target(self) -> float | None:
        if self.row.against_spread:
            return percentiles([other / first for other, first in zip(self.control, self.reference)]).high
        return self.row.target

    @property
    def met(self) -> bool | None:
        """Whether the median ratio is at most the target; None for a row without one."""
        return None if self.target is None else percentiles(self.ratios).median <= self.target


class Percentiles(NamedTuple):
    """The 10th, 50th and 90th."""

    low: float
    median: float
    high: float


def percentiles(values: Sequence[float]) -> Percentiles:
    """Percentiles of one value or more, interpolated."""
    deciles = statistics.quantiles(values, n=10, method="inclusive") if len(values) > 1 else list(values) * 9
    return Percentiles(deciles[0], deciles[4], deciles[8])


class Worker:
    """A process that holds one library and measures on demand."""

    def __init__(self, library: str, measures: dict[str, WarmMeasure], sample_seconds: float) -> None:
        # Fork would hand the child whatever the parent has imported.
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there, library, measures, sample_seconds), daemon=True)
        self.process.start()
        there.close()

    def sample(self, name: str) -> float:
        """Seconds per operation of the measure of that name; RuntimeError with the worker's traceback if it failed."""
        self.pipe.send(name)
        try:
            answer: float | str = self.pipe.recv()
        except EOFError:
            raise RuntimeError(f"the worker process died while it measured {name!r}") from None
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def close(self) -> None:
        self.pipe.close()
        self.process.join()


def serve(pipe: Connection, library_name: str, measures: dict[str, WarmMeasure], sample_seconds: float) -> None:
    """Answer names of measures with seconds per operation, or with a traceback, until the pipe closes."""
    prepared: dict[str, tuple[Sampler, int]] = {}
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        try:
            if name not in prepared:
                sampler = measures[name](load(library_name))
                prepared[name] = sampler, calibrate(sampler.run, sample_seconds)
            sampler, count = prepared[name]
            pipe.send(sampler.run(count) / (count * sampler.parts))
        except Exception:
            pipe.send(traceback.format_exc())


def calibrate(run: Callable[[int], float], seconds: float) -> int:
    """Warm up, then return the count whose sample takes about `seconds`."""
    if run(1) > 50 * seconds:
        return 1
    count = 1
    while (taken := run(count)) < seconds:
        count = max(count + 1, min(10 * count, int(1.1 * count * seconds / taken)))
    return count


def run_script(script: str, library: str, *arguments: str) -> str:
    """The last word that a script prints, run by a new process from the repository's root."""
    # A measured process may write bytecode, as a user's does: otherwise import compiles everything each time.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", script.replace("{library}", library), *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.split()[-1]


@contextmanager
def workers(
    libraries: dict[str, str], rows: Sequence[Row], sample_seconds: float
) -> Iterator[dict[tuple[str, int], Worker]]:
    """A worker for each role and number of devices, closed at the end.

    A row's baseline is its measure under the name `baseline of ...`.
    """
    made: dict[tuple[str, int], Worker] = {}
    for devices in sorted({row.devices for row in rows}):
        warm = warm_measures([row for row in rows if row.devices == devices])
        with environment({} if devices == 1 else {"JAX_NUM_CPU_DEVICES": str(devices)}):
            for role, library in libraries.items() if warm else ():
                made[role, devices] = Worker(library, warm, sample_seconds)
    try:
        yield made
    finally:
        for worker in made.values():
            worker.close()


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables for the processes that start in the block."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def warm_measures(rows: Sequence[Row]) -> dict[str, WarmMeasure]:
    named = {row.name: row.measure for row in rows}
    named |= {f"baseline of {row.name}": row.baseline for row in rows if row.baseline is not None}
    return {name: measure for name, measure in named.items() if not isinstance(measure, Fresh)}


def measure_rows(
    rows: Sequence[Row], subject: str, reference: str, plan: Plan, report: Callable[[str], None]
) -> list[Result]:
    """Measure every row in every round; a row that fails keeps its error and is left out of later rounds."""
    results = [Result(row) for row in rows]
    libraries = {"subject": subject, "reference": reference}
    if any(row.against_spread for row in rows):
        libraries["control"] = reference
    for round_number in range(1, plan.rounds + 1):
        with workers(libraries, rows, plan.sample_seconds) as made:
            for result in results:
                if not result.error:
                    report(f"round {round_number} of {plan.rounds}: {result.row.name}")
                    try:
                        measure_row(result, libraries, made, plan)
                    except RuntimeError as error:
                        result.error = str(error).strip()
    return results


def measure_row(
    result: Result, libraries: dict[str, str], made: dict[tuple[str, int], Worker], plan: Plan
) -> None:
    """Add one round's samples to a result: pairs, the side that goes first changing each time."""
    row = result.row

    def take(role: str) -> float:
        baseline = role == "reference" and row.baseline is not None
        role_measured = "subject" if row.within_subject else role
        measure = row.baseline if baseline else row.measure
        if isinstance(measure, Fresh):
            return float(run_script(measure.script, libraries[role_measured]))
        return made[role_measured, row.devices].sample(f"baseline of {row.name}" if baseline else row.name)

    roles = ["subject", "reference", "control"] if row.against_spread else ["subject", "reference"]
    if not (isinstance(row.measure, Fresh) and result.subject):
        for role in roles:
            take(role)
    fewest, most = plan.pairs
    start = time.perf_counter()
    for pair in range(most):
        if pair >= fewest and time.perf_counter() - start > plan.budget_seconds:
            break
        values = {role: take(role) for role in (roles if pair % 2 else reversed(roles))}
        result.subject.append(values["subject"])
        result.reference.append(values["reference"])
        if row.against_spread:
            result.control.append(values["control"])
