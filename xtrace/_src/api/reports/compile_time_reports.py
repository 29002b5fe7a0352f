"""Reports of compile time: the lines with the most instructions, repetitions, and large constants."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from xtrace._src.api.jit.captured_constants import CapturedConstant, find_captured_constants
from xtrace._src.api.jit.jit import get_jitted, jit
from xtrace._src.api.reports.memory_reports import describe_devices
from xtrace._src.api.reports.repetitions import Repetition, find_repetitions
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.positions import resolve
from xtrace._src.core.diagnostics.text_tables import format_count, format_size, format_table
from xtrace._src.core.jaxprs.ir import Jaxpr, walk_equations
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.xla.executables import executables
from xtrace._src.xla.hlo.hlo_programs import HloProgram, read_program
from xtrace._src.xla.source_locations import Place

_MAX_ROWS = 10
# Instructions without code.
_FREE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast"))


class Line(NamedTuple):
    """A line of the user's code: the numbers of operations, and of HLO instructions before and after XLA's passes."""

    place: Place
    operations: int
    before: int
    after: int


class CompileTimeReport:
    """A report of the compile time of a function, made by `explain_compile_time`; printed, it is a table.

    Args:
        name, device: the names of the function and of the device.
        seconds: the durations of tracing, lowering and compiling.
        operations, before, after: the numbers of operations, and of instructions before and after XLA's passes.
        lines: the lines of operations and instructions; the first ones have the most instructions.
        repetitions: the repeated parts of the program.
        constants: the large arrays that the function closes over.

    Example:
        >>> report = xtrace.explain_compile_time(lambda x: jnp.sin(x) + 1, 1.0)
        >>> report.operations, report.repetitions
        (2, [])
    """

    def __init__(
        self, name: str, device: str, seconds: dict[str, float], operations: int, before: int, after: int,
        lines: list[Line], repetitions: list[Repetition], constants: list[CapturedConstant],
    ) -> None:
        self.name, self.device, self.seconds = name, device, seconds
        self.operations, self.before, self.after = operations, before, after
        self.lines, self.repetitions, self.constants = lines, repetitions, constants

    def to_json(self) -> str:
        """Return the report as JSON.

        Returns:
            A text with the report's attributes; places are objects of a file, a line and a function.

        Example:
            >>> import json
            >>> json.loads(xtrace.explain_compile_time(jnp.sin, 1.0).to_json())["operations"]
            1
        """
        return json.dumps(vars(self) | {
            "lines": [one._asdict() | {"place": one.place._asdict()} for one in self.lines],
            "repetitions": [one._asdict() | {"place": one.place._asdict()} for one in self.repetitions],
            "constants": [
                one._asdict() | {"place": one.place._asdict() if one.place is not None else None}
                for one in self.constants
            ],
        })

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        times = ", ".join([f"{what} {seconds:.3g} s" for what, seconds in self.seconds.items()])
        lines = [
            f"{self.name} on {self.device}: {times}",
            f"{format_count(self.operations, 'operation')}, {format_count(self.before, 'instruction')} before XLA's "
            f"passes, {self.after} after them",
            *([f"repeated: {one}" for one in self.repetitions] or ["repeated: nothing"]),
        ]
        if self.repetitions:
            lines.append("  lax.scan over stacked parameters would compile these operations once")
        lines += format_table("lines with the most instructions", ("operations", "before", "after", "line"), [
            (str(one.operations), str(one.before), str(one.after), f"{one.place} ({one.place.function})")
            for one in self.lines[:_MAX_ROWS]
        ])
        if len(self.lines) > _MAX_ROWS:
            lines.append(f"  and {len(self.lines) - _MAX_ROWS} more")
        if self.constants:
            lines += format_table("arrays closed over, which the program takes as arguments", _CONSTANTS_HEAD, [
                (format_size(one.size), one.type, one.name or "-", str(one.place or "-"))
                for one in self.constants[:_MAX_ROWS]
            ])
        return "\n".join(lines)


_CONSTANTS_HEAD = ("bytes", "type", "variable", "line that reads it first")


def explain_compile_time(fun: Callable[..., Any], /, *args: object, **kwargs: object) -> CompileTimeReport:
    """Return a report of a function's compile time: it is traced twice, lowered and compiled once, and not run.

    The report has the seconds of each step, the lines with the most instructions, functions and loops of Python that
    repeat the same operations and would be compiled once under ``lax.scan``, and the large arrays that the function
    closes over, with their variables. The folder of compiled programs is not used.

    Args:
        fun: a function of pytrees of arrays, jitted or not.
        args: its arguments, which may be ShapeDtypeStructs.
        kwargs: its keyword arguments, likewise.

    Returns:
        A `CompileTimeReport`, which prints a table; ``to_json()`` is for programs.

    Raises:
        TypeError: `fun` is not callable, or an argument is no array.

    Example:
        >>> def f(x, weights):
        ...     for w in weights:
        ...         x = jnp.tanh(x @ w) * 2 + 1
        ...     return x
        >>> report = xtrace.explain_compile_time(f, jnp.ones(3), [jnp.ones((3, 3))] * 8)
        >>> report.repetitions[0].times, report.repetitions[0].operations
        (8, 4)
    """
    check_callable(fun)
    jitted, before = get_jitted(fun)
    start = time.perf_counter()
    traced = jitted.trace(*before, *args, **kwargs)
    after_tracing = time.perf_counter()
    lowered = traced.lower()
    after_lowering = time.perf_counter()
    lowered._shares_program = False
    with cache_settings.enabled(False):
        executable = lowered.compile().runtime_executable()
    end = time.perf_counter()
    seconds = {
        "tracing": after_tracing - start, "lowering": after_lowering - after_tracing, "compiling": end - after_lowering
    }

    @functools.wraps(jitted.fun)
    def again(*args: object, **kwargs: object) -> Any:
        # A new function object, because the user's function has a cached trace now.
        return jitted.fun(*args, **kwargs)

    options = jitted.options
    fresh: Any = jit(again, static_argnums=options.static_numbers, static_argnames=options.static_names)
    repetitions = find_repetitions(lambda: fresh.trace(*before, *args, **kwargs).jaxpr.jaxpr)
    given = executables.unoptimised_hlo(lowered.as_text(debug_info=True)).as_serialized_hlo_module_proto()
    made = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    operations = _operations_by_line(traced.jaxpr.jaxpr)
    given_by_line, made_by_line = _instructions_by_line(read_program(given)), _instructions_by_line(read_program(made))
    places = operations.keys() | given_by_line.keys() | made_by_line.keys()
    lines = [Line(at, operations[at], given_by_line[at], made_by_line[at]) for at in places if at is not None]
    constants = [one for one in find_captured_constants(traced.jaxpr, fun) if one.is_parameter]
    lines.sort(key=lambda one: (-one.after, -one.before, one.place))
    return CompileTimeReport(
        jitted.name, describe_devices(executable.local_devices())[0], seconds, operations.total(),
        given_by_line.total(), made_by_line.total(), lines, repetitions, sorted(constants, key=lambda one: -one.size),
    )


def _operations_by_line(jaxpr: Jaxpr) -> Counter[Place | None]:
    counts: Counter[Place | None] = Counter()
    for equation in walk_equations(jaxpr.eqns):
        at = resolve(equation.source) if equation.source is not None else None
        counts[at.place if at is not None else None] += 1
    return counts


def _instructions_by_line(program: HloProgram) -> Counter[Place | None]:
    return Counter([
        one.place for computation in program.computations.values() for one in computation.instructions
        if one.opcode not in _FREE
    ])
