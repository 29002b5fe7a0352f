"""Notes on XLA's errors: the equations in question, and the user's lines behind them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from xtrace._src.api.reports import memory_reports
from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core.avals import physical_aval
from xtrace._src.core.diagnostics.excerpts import excerpt
from xtrace._src.core.diagnostics.source import Position, resolve
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, JaxprEqn, find_jaxprs
from xtrace._src.core.jaxprs.printer import format_equation
from xtrace._src.runtime.arrays import is_out_of_memory
from xtrace._src.runtime.execute import Program
from xtrace._src.stablehlo.builder import Locations
from xtrace._src.transforms.lower import LoweredModule
from xtrace._src.xla.clients import Device

_Place = tuple[Position | None, str]

# MLIR's notation for a place: in the module's text, or in the user's file.
_IN_TEXT = re.compile(r"(?:^|\s)-:(\d+):\d+: (?:error|note)", re.MULTILINE)
_IN_FILE = re.compile(r"(?:^|: )([^:\n]+):(\d+):(\d+): error", re.MULTILINE)
_IN_METADATA = re.compile(r'op_name="([^"]+)"')
_WITHOUT_KERNEL = re.compile(r"No (?:FFI handler registered for|registered implementation for .* call to) (\S+)")
_INVALID = "Failed to parse using StableHLO"
_MAX_EQUATIONS = 3


def explain_compilation(
    error: BaseException, closed: ClosedJaxpr, module: LoweredModule, devices: Sequence[Device]
) -> None:
    """Add a note to a compiler error: the equations of `closed` in question, or a report of the program's memory."""
    message = str(error)
    if is_out_of_memory(error):
        main = module.builder.functions[0]
        source = memory_reports.Source(closed, None, main.argument_names, main.result_names)
        name = module.builder.name.removeprefix("jit_")
        report = memory_reports.estimate(name, module.text(debug_info=True), source, devices)
        error.add_note(f"What the program takes, as far as that can be told before it is compiled:\n{report}")
        return
    equations = _find_named_equations(message, closed.jaxpr, module)
    name = module.builder.name
    if _INVALID in message:
        subject = "the operation below" if equations else f"an operation of {name}"
        head = (
            f"The StableHLO written for {subject} is not valid: its rules let something pass that they should have "
            "refused. That is a bug in xtrace, or in whatever defines the operation."
        )
    else:
        head = f"XLA does not compile {'this operation of ' if equations else 'the program '}{name} for {devices[0]}."
    without_kernel = _WITHOUT_KERNEL.search(message)
    if without_kernel is not None:
        target, platform = without_kernel[1], devices[0].platform
        head += (
            f" It calls {target}, and no kernel of that name is registered for {platform}. A program for another "
            f"platform runs there only; register a kernel of your own with xtrace.ffi.register_ffi_target("
            f"{target!r}, kernel, platform={platform!r})."
        )
    elif not equations:
        head += " XTRACE_DUMP_IR_TO=DIRECTORY in the environment writes the program to files."
    error.add_note("\n".join([head, *map(_describe_equation, equations[:_MAX_EQUATIONS])]))


def explain_run(error: BaseException, traced: TracedFunction, program: Program | None) -> None:
    """Add notes to an out-of-memory error of a running program: its largest operation, and its memory report."""
    if not is_out_of_memory(error):
        return
    largest = max(_equations(traced.jaxpr), key=_count_result_bytes, default=None)
    if largest is not None:
        size = _count_result_bytes(largest)
        error.add_note(
            f"The largest result of one operation of the program takes {size} bytes:\n{_describe_equation(largest)}"
        )
    if program is not None:
        source = memory_reports.make_source(traced, program.kept)
        name = traced.debug_info.function
        report = memory_reports.report_executable(
            name, program.executable, source, program.executable.local_devices()
        )
        error.add_note(f"What the program takes:\n{report}")


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """Yield the equations without inner jaxprs; an inner jaxpr's equations replace the equation that holds it."""
    for equation in jaxpr.eqns:
        inner = list(find_jaxprs(equation.parameters))
        if not inner:
            yield equation
        for each in inner:
            yield from _equations(each)


def _count_result_bytes(equation: JaxprEqn) -> int:
    stored = [physical_aval(v.aval) for v in equation.outvars]
    return sum(math.prod(a.shape) * getattr(a.dtype, "itemsize", 0) for a in stored)


def _describe_equation(equation: JaxprEqn) -> str:
    place = f"\n{excerpt(equation.source, '    ')}" if equation.source is not None else ""
    return f"  {format_equation(equation)}{place}"


def _find_named_equations(message: str, jaxpr: Jaxpr, module: LoweredModule) -> list[JaxprEqn]:
    """Return the equations that a message of XLA refers to."""
    equations = list(_equations(jaxpr))
    places = _places(message, module)
    return [e for e in equations if any(_is_at(e, place) for place in places)]


def _is_at(equation: JaxprEqn, place: _Place) -> bool:
    position, name = place
    return name.rsplit("/", 1)[-1] == equation.primitive.name and (
        position is None or equation.source is None or tuple(position) == tuple(equation.source)
    )


def _places(message: str, module: LoweredModule) -> list[_Place]:
    """Return the places in a message: for each the position, and the operation's name with its scopes."""
    locations = Locations()
    lines = module.builder.text_with(locations).split("\n")
    known = {number: place for place, number in locations.numbers.items()}

    def of_line(line: str) -> list[_Place]:
        return [known[int(number)] for number in re.findall(r"loc\(#loc(\d+)\)", line)]

    places = [place for number in _IN_TEXT.findall(message) for place in of_line(lines[int(number) - 1])]
    for file, line, column in _IN_FILE.findall(message):
        for place in known.values():
            at = resolve(place[0]) if place[0] is not None else None
            if at is not None and at.file.endswith(file) and (at.line, at.column + 1) == (int(line), int(column)):
                places.append(place)
    places += [place for name in _IN_METADATA.findall(message) for place in known.values() if place[1] == name]
    if not places:
        # A message about a foreign function has its name only.
        for line in lines:
            target = re.search(r'custom_call @([\w.$]+)|call_target_name = "([^"]+)"', line)
            if target is not None and re.search(rf"\b{re.escape(target[1] or target[2])}\b", message):
                places += of_line(line)
    return places
