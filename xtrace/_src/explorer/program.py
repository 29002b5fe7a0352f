"""The data of one program: the lines of its stages, their origins and their costs. See docs/explorer_data.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from xtrace._src.core.jaxprs.printer import format_lines
from xtrace._src.explorer import costs, instruction_links, sources
from xtrace._src.explorer.origins import (
    ORIGINS,
    Equations,
    NumberedModule,
    Origin,
    find_span,
    make_argument_origins,
    make_equation_origins,
    read_stablehlo,
)
from xtrace._src.stablehlo import attributes
from xtrace._src.xla.hlo import hlo_text
from xtrace._src.xla.hlo.hlo_collectives import Collective, count_runs, read_collectives
from xtrace._src.xla.hlo.hlo_frames import Frames
from xtrace._src.xla.source_locations import Location, name_file

_WIDTH = 120


class Parts(NamedTuple):
    """The parts of a description: a function's name, its stages, and its device.

    optimised: the text of the optimised HLO; None without compilation, and `why` has the reason. paths: the paths of
    the arguments. definition: the code of the function. devices: the number of devices. memory: the memory in use
    over the schedule, None if unknown.
    """

    name: str
    closed: ClosedJaxpr
    module: NumberedModule
    optimised: str | None
    why: str
    paths: Sequence[str]
    device_kind: str
    target: str
    definition: CodeType | None
    devices: int
    memory: dict[str, Any] | None


class Description(NamedTuple):
    """The data of a program, and the traced code objects of each file."""

    data: dict[str, Any]
    codes: dict[str, set[CodeType]]


def describe_program(parts: Parts) -> Description:
    """Return the data of a program; its spans have names of files, which `combine` replaces by numbers."""
    equations = Equations(parts.closed.jaxpr)
    code = parts.definition
    definition: Location | None = None
    if code is not None:
        definition = Location(code.co_filename, code.co_name, code.co_firstlineno, code.co_firstlineno, 0, 0)
    origins = make_equation_origins(equations.all)
    first_argument = len(origins)
    origins += make_argument_origins(parts.closed, parts.paths, definition)
    places = _find_location_origins(parts.module, equations, origins)
    jaxpr_lines, jaxpr_origins = _make_jaxpr_pane(parts.closed.jaxpr, equations, first_argument)
    if parts.optimised is not None and ORIGINS not in parts.optimised:
        classes = _merge_indistinguishable(origins)
        places, jaxpr_origins = [
            [sorted({classes[i] for i in own}) for own in rows] for rows in (places, jaxpr_origins)
        ]
    stablehlo = _make_stablehlo_pane(parts.module, places, origins)
    data: dict[str, Any] = {
        "name": parts.name, "target": parts.target, "device": None,
        "arguments": [{"path": o.name, "type": o.type} for o in origins if o.kind == "argument"],
        "results": [v.aval.str_short(True) for v in parts.closed.jaxpr.outvars],
        "jaxpr": {"lines": jaxpr_lines, "origins": jaxpr_origins, "missing": ""},
        "stablehlo": stablehlo,
        "hlo": {"lines": [], "origins": [], "instructions": [], "missing": parts.why},
        "cost": None, "coverage": {}, "collectives": [], "memory": parts.memory,
    }
    seconds: list[list[float]] = [[0.0, 0.0, 0.0] for _ in origins]
    if parts.optimised is not None:
        device = costs.get_device_peaks(parts.device_kind)
        data["device"] = device._asdict()
        data["hlo"], data["coverage"], data["cost"] = _make_hlo_pane(parts.optimised, origins, places, device, seconds)
        if parts.devices > 1:
            data["collectives"] = list(map(_describe_collective, read_collectives(parts.optimised, parts.devices)))
    spans = {o.span: 0 for o in origins if o.span is not None}
    numbers = {span: i for i, span in enumerate(spans)}
    data["spans"] = [list(span) for span in spans]
    data["origins"] = [
        _describe_origin(o, numbers, cost) for o, cost in zip(origins, seconds, strict=True)
    ]
    codes = _codes_by_file(equations.all)
    if code is not None:
        codes.setdefault(code.co_filename, set()).add(code)
    return Description(data, codes)


def _describe_origin(origin: Origin, spans: dict[Location, int], cost: Sequence[float]) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": origin.kind, "name": origin.name}
    if origin.scope:
        described["scope"] = origin.scope
    if origin.type:
        described["type"] = origin.type
    if origin.span is not None:
        described["span"] = spans[origin.span]
    if any(cost):
        described["cost"] = [float(f"{x:.6g}") for x in cost]
    return described


def _describe_collective(collective: Collective) -> dict[str, Any]:
    return {
        "kind": collective.kind, "bytes": collective.size, "times": collective.times, "at_least": collective.at_least,
        "file": name_file(collective.file) if collective.file is not None else None, "line": collective.line,
    }


def _codes_by_file(equations: Iterable[JaxprEqn]) -> dict[str, set[CodeType]]:
    codes: dict[str, set[CodeType]] = {}
    for equation in equations:
        if equation.source is not None:
            codes.setdefault(equation.source[0].co_filename, set()).add(equation.source[0])
    return codes


def _find_location_origins(module: NumberedModule, equations: Equations, origins: list[Origin]) -> list[list[int]]:
    """Return the origins of each place; a place without an equation becomes a new origin."""
    by_place = equations.find(module.places)
    for number, (position, path) in enumerate(module.places):
        if not by_place[number] and position is not None:
            by_place[number] = [len(origins)]
            origins.append(Origin("operation", path.rpartition("/")[2], path.rpartition("/")[0], find_span(position)))
    return by_place


def _merge_indistinguishable(origins: Sequence[Origin]) -> list[int]:
    """Return for each origin the first one that looks the same in a program without numbers."""
    first: dict[Any, int] = {}
    return [
        first.setdefault((o.kind, o.name, o.span if o.kind != "argument" else i), i) for i, o in enumerate(origins)
    ]


def _make_jaxpr_pane(jaxpr: Jaxpr, equations: Equations, first_argument: int) -> tuple[list[str], list[list[int]]]:
    lines, begun, names = format_lines(jaxpr, _WIDTH)
    origins: list[list[int]] = [[] for _ in lines]
    # The indentation and number of the open equations: lines with more indentation belong to the last one.
    around: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        equation = begun.get(number)
        while around and around[-1][0] >= indent and not (equation is None and line[indent : indent + 1] in "])"):
            around.pop()
        if equation is not None:
            around.append((indent, equations.numbers[id(equation)]))
        if around and (equation is not None or "{ lambda" not in line):
            origins[number] = [around[-1][1]]
    _mark_arguments(jaxpr, lines, names, origins, first_argument)
    return [sources.shorten(x) for x in lines], origins


def _mark_arguments(
    jaxpr: Jaxpr, lines: Sequence[str], names: dict[Var, str], origins: list[list[int]], first_argument: int
) -> None:
    """Link the lines of the jaxpr's head with their arguments."""
    starts = [i for i, line in enumerate(lines) if line.startswith("{ lambda")]
    binders = {f"{names[v]}:{v.aval.str_short(True)}": i for i, v in enumerate(jaxpr.invars) if v in names}
    for number in range(starts[-1] if starts else 0, len(lines)):
        line = lines[number].replace("{ lambda", "").replace(";", " ")
        head, end, _ = line.partition(". let")
        named = [first_argument + binders[word.rstrip(".")] for word in head.split() if word.rstrip(".") in binders]
        origins[number] = [*origins[number], *named]
        if end:
            break


_ARGUMENT = re.compile(r' loc\("((?:[^"\\]|\\.)*)"\)$')


def _make_stablehlo_pane(module: NumberedModule, places: list[list[int]], origins: Sequence[Origin]) -> dict[str, Any]:
    lines, numbers = read_stablehlo(module.text(debug_info=True))
    arguments = {attributes.string(o.name)[1:-1]: i for i, o in enumerate(origins) if o.kind == "argument"}
    shown: list[str] = []
    linked: list[list[int]] = []
    for line, number in zip(lines, numbers, strict=True):
        if not line.startswith("  func.func public"):
            shown.append(line)
            linked.append(places[number - 1] if number else [])
            continue
        for part in _split_arguments(line):
            text, comma = part.removesuffix(","), "," if part.endswith(",") else ""
            match = _ARGUMENT.search(text)
            shown.append((text[: match.start()] if match is not None else text) + comma)
            linked.append([arguments[match[1]]] if match is not None and match[1] in arguments else [])
    return {"lines": [sources.shorten(x) for x in shown], "origins": linked, "missing": ""}


def _split_arguments(line: str) -> list[str]:
    """Return the head of a function with one argument per line."""
    head, _, rest = line.partition("(%arg0")
    arguments, arrow, results = rest.partition(") -> ")
    if not arrow:
        return [line]
    texts = ("%arg0" + arguments).split(", %arg")
    texts = [texts[0], *["%arg" + text for text in texts[1:]]]
    return [head + "(", *[f"      {text}," for text in texts[:-1]], f"      {texts[-1]}", f"  ) -> {results}"]


def _make_hlo_pane(
    text: str, origins: Sequence[Origin], places: Sequence[Sequence[int]], device: costs.Device,
    totals: list[list[float]],
) -> tuple[dict[str, Any], dict[str, int], dict[str, Any]]:
    """Return the pane of the optimised program, the number of links by evidence, and the cost of the program.

    totals: the cost of each origin, which this adds up.
    """
    frames, lines = Frames(text), text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(("%", "ENTRY"))), 0)
    computations = hlo_text.read_computations(lines)
    linked = instruction_links.link_instructions(computations, frames, origins, places)
    costed = _cost_instructions(computations, count_runs(computations), device)
    head = lines[:1] + ([""] if start else [])
    shown = head + [hlo_text.without_metadata(line) for line in lines[max(start, 1):]]
    offset = len(head) - max(start, 1)
    pane: list[list[int]] = [[] for _ in shown]
    instructions: list[list[Any]] = []
    coverage: Counter[str] = Counter()
    total = [0.0, 0.0, 0.0]
    for number, computation in enumerate(computations):
        for instruction in computation.instructions.values():
            link = linked[computation.name, instruction.name]
            is_mapped = any(origins[i].span is not None for i in link.origins)
            coverage[link.how if is_mapped else f"{instruction_links.NONE}: {instruction.opcode}"] += 1
            pane[instruction.line + offset] = list(link.origins)
            cost = costed.get((computation.name, instruction.name))
            row: list[Any] = [instruction.line + offset, instruction.name, instruction.opcode, number, link.how]
            if cost is not None and any(cost[:3]):
                row += [float(f"{x:.6g}") for x in cost[:3]]
                if cost[3]:
                    total = [a + b for a, b in zip(total, cost[:3], strict=True)]
                # The instructions inside of a fusion have shares of its cost, and these count for lines instead.
                if not (cost[3] and instruction.opcode == "fusion" and instruction.called):
                    _add_shares(totals, link.origins, cost[:3])
            instructions.append(row)
    described = {
        "lines": [sources.shorten(x) for x in shown], "origins": pane, "instructions": instructions,
        "computations": [
            {
                "name": c.name, "line": c.line + offset, "end": c.end + offset, "entry": c.is_entry,
                "called": sorted({name for i in c.instructions.values() for name in i.called}),
            }
            for c in computations
        ],
        "missing": "",
    }
    names = ("flops", "bytes", "seconds")
    return described, dict(coverage), {k: float(f"{x:.6g}") for k, x in zip(names, total, strict=True)}


def _add_shares(totals: list[list[float]], origins: Sequence[int], cost: Sequence[float]) -> None:
    for origin in origins:
        for i in range(3):
            totals[origin][i] += cost[i] / len(origins)


# Operations, bytes and least seconds in one run of the program, and whether the instruction is scheduled by itself.
_Costed = tuple[float, float, float, bool]


def _cost_instructions(
    computations: Sequence[hlo_text.PrintedComputation], runs: dict[str, int], device: costs.Device
) -> dict[tuple[str, str], _Costed]:
    """Return the nonzero costs of instructions; instructions inside of a fusion share its time."""
    by_name = {c.name: c for c in computations}
    types = {c.name: {i.name: i.type for i in c.instructions.values()} for c in computations}
    # Computations that are fused or applied to elements run as parts of their callers.
    applied = {
        name for c in computations for i in c.instructions.values()
        if i.opcode not in ("while", "call", "conditional", "async-start") for name in i.called
    }
    costed: dict[tuple[str, str], _Costed] = {}
    for computation in computations:
        if computation.name in applied:
            continue
        times = runs.get(computation.name, 1)
        for instruction in computation.instructions.values():
            is_fusion = instruction.opcode == "fusion" and instruction.called
            fused = by_name.get(instruction.called[0]) if is_fusion else None
            if fused is None:
                own = types[computation.name]
                cost = costs.Cost(
                    costs.count_flops(instruction, own), costs.count_bytes(instruction, own),
                    costs.takes_half(instruction, own),
                )
                if cost.bytes or cost.flops:
                    costed[computation.name, instruction.name] = (
                        cost.flops * times, cost.bytes * times, device.seconds(cost) * times, True
                    )
                continue
            parts = costs.count_fused(fused, by_name)
            whole = costs.Cost(
                sum([c.flops for c in parts.values()]), sum([c.bytes for c in parts.values()]),
                any(c.is_half for c in parts.values()),
            )
            seconds = device.seconds(whole)
            is_computing = whole.flops / device.flops > whole.bytes / device.bandwidth
            costed[computation.name, instruction.name] = (
                whole.flops * times, whole.bytes * times, seconds * times, True
            )
            for name, part in parts.items():
                share = part.flops / whole.flops if is_computing else part.bytes / whole.bytes if whole.bytes else 0.0
                old = costed.get((fused.name, name), (0.0, 0.0, 0.0, False))
                costed[fused.name, name] = (
                    old[0] + part.flops * times, old[1] + part.bytes * times, old[2] + seconds * share * times, False
                )
    return costed
