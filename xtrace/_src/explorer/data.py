"""The data of several programs with common source files. See docs/explorer_data.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

from xtrace._src.explorer.program import Description
from xtrace._src.explorer.sources import column_in_utf16, describe_file

VERSION = 1


def combine(descriptions: Sequence[Description]) -> dict[str, Any]:
    """Return the data of programs and of their source files; programs with one name are numbered."""
    codes: dict[str, set[CodeType]] = {}
    for description in descriptions:
        for file, own in description.codes.items():
            codes.setdefault(file, set()).update(own)
    files = [describe_file(name, own) for name, own in codes.items()]
    numbers = {name: i for i, name in enumerate(codes)}
    names = _make_names_distinct([d.data["name"] for d in descriptions], [d.data["target"] for d in descriptions])
    programs = []
    for name, description in zip(names, descriptions, strict=True):
        data = description.data | {"name": name}
        data["spans"] = [_describe_span(span, files, numbers) for span in data["spans"]]
        data["lines"] = _cost_by_line(data)
        programs.append(data)
    head = {"format": "xtrace-explorer", "version": VERSION}
    return {**head, "files": files, "programs": programs}


def _make_names_distinct(names: Sequence[str], targets: Sequence[str]) -> list[str]:
    if len(set(targets)) > 1:
        names = [f"{name} on {target}" for name, target in zip(names, targets, strict=True)]
    made: list[str] = []
    for name in names:
        count = sum(other == name for other in names)
        made.append(f"{name} ({sum(n.rpartition(' (')[0] == name for n in made) + 1})" if count > 1 else name)
    return made


def _describe_span(span: Sequence[Any], files: Sequence[dict[str, Any]], numbers: dict[str, int]) -> list[Any]:
    """Return a span with the number of its file, and columns in units of UTF-16."""
    file, function, line, end_line, column, end_column = span
    number = numbers[file]
    lines: list[str] = files[number]["lines"] or []
    first = lines[line - 1] if line <= len(lines) else ""
    last = lines[end_line - 1] if end_line <= len(lines) else ""
    start, end = column_in_utf16(first, column), column_in_utf16(last, end_column)
    return [number, line, start, end_line, end, function]


def _cost_by_line(data: dict[str, Any]) -> list[list[float]]:
    """Return for each line its file, line, operations, bytes, least seconds, and share of the program's seconds."""
    costs: dict[tuple[int, int], list[float]] = {}
    for origin in data["origins"]:
        if "cost" in origin and "span" in origin:
            span = data["spans"][origin["span"]]
            own = costs.setdefault((span[0], span[1]), [0.0, 0.0, 0.0])
            for i, value in enumerate(origin["cost"]):
                own[i] += value
    whole = data["cost"]["seconds"] if data["cost"] else 0.0
    return [
        [*line, *_round_values([*cost, cost[2] / whole if whole else 0.0])] for line, cost in sorted(costs.items())
    ]


def _round_values(values: Iterable[float]) -> list[float]:
    return [float(f"{x:.6g}") for x in values]
