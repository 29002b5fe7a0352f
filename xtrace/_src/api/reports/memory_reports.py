"""Reports of the memory that a compiled program takes: its arrays, their source lines and their lifetimes."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._late_imports import late_modules
from xtrace._src.api.jit.captured_constants import find_captured_constants
from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core.callables import result_paths
from xtrace._src.core.diagnostics.text_tables import format_size, format_table
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.xla.device_memory import find_memory_of_each
from xtrace._src.xla.executables import executables
from xtrace._src.xla.hlo.buffer_assignment import read_assignment
from xtrace._src.xla.hlo.hlo_programs import read_program
from xtrace._src.xla.hlo.lifetimes import ARGUMENT, RESULT, TEMPORARY, Lifetimes, Value
from xtrace._src.xla.plugins import absent_devices
from xtrace._src.xla.source_locations import Place

with late_modules(globals()):
    from xtrace._src.api.reports import memory_fits

# The kind of a parameter that is an array in the function's closure.
CONSTANT = "constant"

_MAX_ROWS = 10


class Memory(NamedTuple):
    """The bytes that a program takes on each device.

    `aliased` is the size of the results in the memory of donated arguments.
    """

    arguments: int
    results: int
    temporaries: int
    code: int
    aliased: int

    @property
    def total(self) -> int:
        """The bytes in use while the program runs."""
        return self.arguments + self.results + self.temporaries + self.code - self.aliased


class Buffer(NamedTuple):
    """An array in a program's memory.

    kind: ``argument``, ``constant`` (an array in the function's closure), ``literal`` (an array in the program's code),
    ``result`` or ``temporary``.
    name: the user's expression, such as ``params['w']``; for a temporary, the name of XLA's instruction.
    type, size: its XLA type and its size in bytes. operation: the operation that makes it, with its scopes.
    place: the user's line that makes it, or None. first, last: the first and the last step that needs it.
    first_place, last_place: the user's lines of these steps. at_peak: whether it is in memory at the peak.
    """

    kind: str
    name: str
    type: str
    size: int
    operation: str
    place: Place | None
    first: int
    last: int
    first_place: Place | None
    last_place: Place | None
    at_peak: bool


class Fit(NamedTuple):
    """Whether a program fits a device; a condition is its answer, and its text is a sentence.

    needed, capacity: bytes; the capacity is None if unknown. note: the basis of the answer, if the program was not
    compiled for the device.
    """

    name: str
    device: str
    needed: int
    capacity: int | None
    note: str = ""

    def __bool__(self) -> bool:
        if self.capacity is None:
            raise ValueError(
                f"how much memory {self.device} has is not known, so {self.name} neither fits nor does not. Give the "
                "number of bytes: fits(16 << 30)"
            )
        return self.needed <= self.capacity

    def __str__(self) -> str:
        start = f"{self.name} takes {format_size(self.needed)} on {self.device}"
        if self.capacity is None:
            return f"{start}, whose memory is not known{self.note}"
        left = self.capacity - self.needed
        verdict = f"fits, {format_size(left)} are left" if left >= 0 else f"DOES NOT FIT, {format_size(-left)} too much"
        return f"{start}, which has {format_size(self.capacity)}: {verdict}{self.note}"


class Parameter(NamedTuple):
    """A parameter of a program: its kind, its name and, for a constant, the first line that reads it."""

    kind: str
    name: str
    place: Place | None = None


class Source(NamedTuple):
    """The source of a program: its jaxpr, the user's function if known, and the names of arguments and results."""

    closed: ClosedJaxpr
    function: Callable[..., Any] | None
    arguments: Callable[[], Sequence[str]]
    results: Callable[[], Sequence[str]]

    def parameters(self) -> list[Parameter]:
        """Return the program's parameters: the large constants of the function's closure, then its arguments."""
        constants = [
            Parameter(CONSTANT, one.name or "a constant", one.place)
            for one in find_captured_constants(self.closed, self.function) if one.is_parameter
        ]
        return [*constants, *[Parameter(ARGUMENT, path) for path in self.arguments()]]


def make_source(
    traced: TracedFunction, kept: Sequence[int] | None, function: Callable[..., Any] | None = None,
    around: TracedFunction | None = None,
) -> Source:
    """Return the source of a traced function's program; `kept` are the positions of its inputs, None for all.

    around: the trace of the user's function with references, if `traced` is the function of their arrays.
    """
    users = traced if around is None else around
    closure = [] if around is None else ["a reference closed over"] * len(around.consts)

    def arguments() -> Sequence[str]:
        paths = [*closure, *users.debug_info.argument_paths()]
        return paths if kept is None else [paths[i] for i in kept]

    return Source(traced.closed, function, arguments, lambda: result_paths(users.out_tree))


class ReportedProgram(NamedTuple):
    """The data behind a report.

    message: returns the serialized HLO. assignment: XLA's serialized buffer assignment, empty if unknown.
    device, capacity: the device's name, and its memory in bytes or None. compile_for: compiles the program for a
    target.
    """

    name: str
    message: Callable[[], bytes]
    assignment: bytes
    source: Source
    device: str
    capacity: int | None
    compile_for: Callable[[str], Any] | None = None


class MemoryReport:
    """The memory that a program takes on each device.

    ``Compiled.memory_analysis()`` and ``xtrace.memory`` return it; users do not call the class. Sizes are in bytes.
    Printed, it is a table; a notebook adds a picture. It also has the attributes of XLA's statistics under their names
    in JAX, such as ``temp_size_in_bytes``.

    Args:
        program, memory, statistics: the parts of a report.

    Example:
        >>> report = xtrace.jit(jnp.outer).lower(jnp.ones(8), jnp.ones(4)).compile().memory_analysis()
        >>> report.memory.results, report.argument_size_in_bytes
        (128, 48)
        >>> report.buffers[0].name, report.buffers[0].type
        ('result', 'f32[8,4]')
    """

    def __init__(self, program: ReportedProgram, memory: Memory, statistics: Any = None) -> None:
        self._program, self._statistics, self.memory = program, statistics, memory

    @property
    def name(self) -> str:
        """The function's name."""
        return self._program.name

    @property
    def device(self) -> str:
        """The kind of device for which the program is compiled."""
        return self._program.device

    @property
    def capacity(self) -> int | None:
        """The memory of the device, None if it is not known."""
        return self._program.capacity

    @property
    def peak(self) -> int:
        """The bytes that the program takes at the peak: arguments, results, temporaries and code."""
        return self.memory.total

    @functools.cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays in memory, the largest first."""
        names = _Names(self._program.source, self._lifetimes)
        buffers = [names.describe(value) for value in self._lifetimes.values if value.shape.space == 0]
        return tuple(sorted(buffers, key=lambda b: -b.size))

    @functools.cached_property
    def _lifetimes(self) -> Lifetimes:
        assignment = self._program.assignment
        return Lifetimes(read_program(self._program.message()), read_assignment(assignment) if assignment else None)

    @property
    def timeline(self) -> list[int]:
        """The bytes in use in each step of the program; XLA allocates the results before the first step."""
        rest = self.peak - self.memory.temporaries
        return [rest + count for count in self._lifetimes.temporaries]

    @property
    def places(self) -> list[Place | None]:
        """The user's line of each step of the program."""
        return self._lifetimes.places

    @property
    def fullest(self) -> Place | None:
        """The user's line at the peak of memory use; None if unknown."""
        return self.places[self._lifetimes.fullest] if self.places else None

    def by_line(self) -> dict[tuple[str, int], int]:
        """Return the bytes at the peak for each source line that makes results or temporaries.

        Returns:
            A dictionary from pairs of a file and a line to bytes.

        Example:
            >>> report = xtrace.memory(lambda x: jnp.outer(x, x), jnp.ones(8))
            >>> list(report.by_line().values())
            [256]
        """
        lines: dict[tuple[str, int], int] = {}
        for buffer in self.buffers:
            if buffer.at_peak and buffer.place is not None and buffer.kind in (TEMPORARY, RESULT):
                key = buffer.place.file, buffer.place.line
                lines[key] = lines.get(key, 0) + buffer.size
        return lines

    def fits(self, target: str | int | None = None) -> Fit:
        """Return whether the program fits its device, or a target, which need not be present; printed, a sentence.

        Args:
            target: a name such as ``"h200"``, ``"tpu-v5e"`` or ``"cpu"``, or a number of bytes. The program is compiled
                for the target if its compiler is installed (the extra ``aot``); otherwise the sentence names the basis
                of its answer. None for the device for which the program is compiled.

        Returns:
            A `Fit`, which is true if the program fits.

        Raises:
            ValueError: `target` is an unknown name, or negative.

        Example:
            >>> print(xtrace.memory(lambda x: jnp.outer(x, x), jnp.ones(8)).fits(1000))
            <lambda> takes 288 B on a device, which has 1000 B: fits, 712 B are left
        """
        if isinstance(target, int) and not isinstance(target, bool):
            if target < 0:
                raise ValueError(f"fits: target is a number of bytes, 0 or more, or a name; got {target}")
            return Fit(self.name, "a device", self.peak, target)
        if target is None:
            return Fit(self.name, self.device, self.peak, self.capacity)
        # `fit_target` refuses a bool.
        return memory_fits.fit_target(
            self.name, target, self._program.compile_for, lambda: self,  # type: ignore[arg-type]
        )[0]

    def __getattr__(self, name: str) -> Any:
        statistics = self.__dict__.get("_statistics")
        if statistics is None or name.startswith("_"):
            raise AttributeError(f"a MemoryReport has no attribute {name!r}")
        return getattr(statistics, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *[n for n in dir(self._statistics) if not n.startswith("_")]})

    def to_json(self) -> str:
        """Return the report as JSON.

        Returns:
            A string; places are objects with a file, a line and a function.

        Example:
            >>> import json
            >>> json.loads(xtrace.memory(jnp.sin, jnp.ones(8)).to_json())["memory"]["results"]
            32
        """
        return json.dumps({
            "name": self.name, "device": self.device, "capacity": self.capacity, "peak": self.peak,
            "fits": None if self.capacity is None else self.peak <= self.capacity,
            "memory": self.memory._asdict(), "fullest": _place_as_dict(self.fullest), "timeline": self.timeline,
            "buffers": [_buffer_as_dict(buffer) for buffer in self.buffers],
        })

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        of = ""
        # A host's memory is shown only if it does not suffice.
        if self.capacity and not (self.device == "cpu" and self.fits()):
            of = f" of {format_size(self.capacity)}: {'fits' if self.fits() else 'DOES NOT FIT'}"
        at = f"  at their fullest in {self.fullest}" if self.memory.temporaries and self.fullest else ""
        lines = [f"{self.name} on {self.device}: {format_size(self.peak)}{of}"]
        for what, size in self.memory._asdict().items():
            if size:
                lines.append(f"  {what:<12}{format_size(size)}{at if what == 'temporaries' else ''}")
        rows, left = self._rows()
        lines += format_table("largest arrays when memory is fullest", _HEAD, rows)
        if left:
            lines.append(f"  and {left} more")
        return "\n".join(lines)

    def _rows(self) -> tuple[list[tuple[str, ...]], int]:
        """Return a row for each of the largest arrays at the peak, equal temporaries as one, and how many are left."""
        groups: dict[Any, list[Buffer]] = {}
        for buffer in self.buffers:
            if buffer.at_peak:
                alike = buffer.kind == TEMPORARY and (buffer.type, buffer.place, buffer.operation)
                groups.setdefault(alike or buffer, []).append(buffer)
        ordered = sorted(groups.values(), key=lambda group: -sum([b.size for b in group]))
        steps = len(self._lifetimes.steps)
        return [_row(group, steps) for group in ordered[:_MAX_ROWS]], sum(map(len, ordered[_MAX_ROWS:]))

    def _repr_html_(self) -> str:
        rows, left = self._rows()
        head, *body = ["".join([f"<td>{html.escape(text)}</td>" for text in row]) for row in (_HEAD, *rows)]
        figures = ", ".join([f"{what} {format_size(size)}" for what, size in self.memory._asdict().items() if size])
        table = "".join([f"<tr>{row}</tr>" for row in body])
        return (
            f"<p><b>{html.escape(str(self.fits()))}</b><br>{figures}</p>{_picture(self.timeline, self.places)}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>"
            + (f"<p>and {left} more</p>" if left else "")
        )


_HEAD = ("bytes", "type", "array", "made by", "line", "needed")


def _row(group: Sequence[Buffer], steps: int) -> tuple[str, ...]:
    """Return the row of one array, or of several equal temporaries."""
    first = group[0]
    times = f"{len(group)} x " if len(group) > 1 else ""
    name = first.name if first.kind != TEMPORARY else f"{len(group)} temporaries" if times else "temporary"
    start, end = min(b.first for b in group), max(b.last for b in group)
    if first.kind in (ARGUMENT, CONSTANT) and (start, end) == (0, steps - 1):
        needed = "throughout"
    else:
        places = [b.first_place for b in group if b.first == start] + [b.last_place for b in group if b.last == end]
        lines = [place.line for place in places if place is not None]
        between = f", {_range('line', min(lines), max(lines))}" if lines else ""
        needed = f"{_range('step', start, end)} of {steps}{between}"
    made = first.operation or ("the caller" if first.kind in (ARGUMENT, CONSTANT) else "XLA")
    return (
        times + format_size(first.size), first.type, name, made if first.kind != CONSTANT else "closed over",
        str(first.place or "-"), needed,
    )


def _range(what: str, first: int, last: int) -> str:
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"


def _place_as_dict(place: Place | None) -> dict[str, Any] | None:
    return place._asdict() if place is not None else None


def _buffer_as_dict(buffer: Buffer) -> dict[str, Any]:
    places = {key: _place_as_dict(getattr(buffer, key)) for key in ("place", "first_place", "last_place")}
    return buffer._asdict() | places


def _picture(timeline: Sequence[int], places: Sequence[Place | None]) -> str:
    """Return an SVG picture of the bytes in use in each step; its title names the line at the peak."""
    if not timeline:
        return ""
    width, height, most = 600, 120, max(timeline) or 1
    step = max(1, len(timeline) // width)
    groups = [max(timeline[i : i + step]) for i in range(0, len(timeline), step)]
    wide = width / len(groups)
    points = " ".join([
        f"{x:.1f},{height - count / most * height:.1f}"
        for i, count in enumerate(groups) for x in (i * wide, (i + 1) * wide)
    ])
    fullest = max(range(len(timeline)), key=timeline.__getitem__)
    title = f"{format_size(most)} at most" + (f", in {places[fullest]}" if places[fullest] is not None else "")
    return (
        f'<svg width="{width}" height="{height}" role="img"><title>{html.escape(title)}</title>'
        f'<polygon points="0,{height} {points} {width},{height}" fill="#aec7e8"/></svg>'
    )


class _Names:
    """The names of a program's arguments and results, for descriptions of values."""

    def __init__(self, source: Source, lives: Lifetimes) -> None:
        self._parameters, self._results, self._lives = source.parameters(), source.results(), lives
        self._at_peak = set(map(id, lives.temporaries_in(lives.fullest)))

    def describe(self, value: Value) -> Buffer:
        """Return the description of a value for users."""
        one, places = value.instruction, self._lives.places
        kind, name, place = value.kind, one.name, one.place or places[value.first]
        operation = one.scopes.partition("/")[2] or one.scopes
        if value.parameter is not None and value.parameter < len(self._parameters):
            kind, name, place = self._parameters[value.parameter]
            operation = ""
        elif kind == RESULT:
            name = ", ".join([self._results[i] for i in value.results if i < len(self._results)]) or name
        at_peak = kind in (ARGUMENT, CONSTANT, RESULT) or id(value) in self._at_peak
        return Buffer(
            kind, name, value.shape.text, value.shape.size, operation, place, value.first, value.last,
            places[value.first], places[value.last], at_peak,
        )


def read_memory_statistics(statistics: Any) -> Memory:
    """Return XLA's memory statistics of a compiled program."""
    return Memory(
        statistics.argument_size_in_bytes, statistics.output_size_in_bytes, statistics.temp_size_in_bytes,
        statistics.generated_code_size_in_bytes, statistics.alias_size_in_bytes,
    )


def report_executable(
    name: str, executable: Any, source: Source, devices: Sequence[Any], compile_for: Callable[[str], Any] | None = None,
) -> MemoryReport:
    """Return the report of a program compiled for `devices`; `compile_for` compiles it for another target."""
    statistics = executable.get_compiled_memory_stats()
    program = ReportedProgram(
        name, lambda: executable.hlo_modules()[0].as_serialized_hlo_module_proto(),
        getattr(statistics, "serialized_buffer_assignment_proto", b""), source, *describe_devices(devices), compile_for,
    )
    return MemoryReport(program, read_memory_statistics(statistics), statistics)


def describe_devices(devices: Sequence[Any]) -> tuple[str, int | None]:
    """Return a phrase for the devices of a program, and the memory of each in bytes, or None."""
    kind = devices[0].device_kind
    known = absent_devices.get_device_memory(kind)
    capacity = find_memory_of_each(devices) if known is None else known
    return f"each of {len(devices)} devices of kind {kind}" if len(devices) > 1 else kind, capacity


def estimate(name: str, text: str, source: Source, devices: Sequence[Any]) -> MemoryReport:
    """Return the report of a StableHLO module without compiling it: every operation's result counts, unfused."""
    message = executables.unoptimised_hlo(text).as_serialized_hlo_module_proto()
    program = ReportedProgram(name, lambda: message, b"", source, *describe_devices(devices))
    lives = Lifetimes(read_program(message), None)
    sizes = [sum([v.shape.size for v in lives.values if v.kind == kind]) for kind in (ARGUMENT, RESULT)]
    return MemoryReport(program, Memory(sizes[0], sizes[1], lives.temporaries[lives.fullest], 0, 0))
