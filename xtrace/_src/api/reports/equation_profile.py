"""Profiles of the number of equations from each line of the user's code, in the format of pprof.

Source: the messages Profile, Sample, Location, Function and Label of google/pprof, proto/profile.proto.
"""

from __future__ import annotations

import gzip
from collections import Counter, deque
from collections.abc import Mapping

from xtrace._src.core.diagnostics.positions import resolve
from xtrace._src.core.jaxprs.ir import Jaxpr, find_jaxprs
from xtrace._src.xla.hlo.protobuf import write_field, write_varint
from xtrace._src.xla.source_locations import Location

# A line in a profile: its function, file and number.
_Line = tuple[str, str, int]


def write_profile(jaxpr: Jaxpr, name: str) -> bytes:
    """Return the compressed profile of `jaxpr`: a sample for each primitive and place, with the places of outer loops.

    An inner jaxpr that several equations share counts once. `name` is the comment of the profile.
    """
    texts: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    lines: dict[_Line, int] = {}
    samples, locations = b"", b""
    for (primitive, places), count in _count_equations(jaxpr).items():
        for place in places:
            function, file, number = place
            functions.setdefault((function, file), len(functions) + 1)
            if place not in lines:
                lines[place] = len(lines) + 1
                line = _message({1: functions[function, file], 2: number})
                locations += write_field(4, _message({1: lines[place], 4: line}))
        label = _message({1: _index(texts, "primitive"), 2: _index(texts, primitive)})
        identifiers = b"".join(write_varint(lines[place]) for place in places)
        samples += write_field(2, _message({1: identifiers, 2: write_varint(count), 3: label}))
    kind = _message({1: _index(texts, "equations"), 2: _index(texts, "count")})
    comment = write_field(13, write_varint(_index(texts, name)))
    shown = b"".join(
        write_field(5, _message({1: i, 2: _index(texts, function), 4: _index(texts, file)}))
        for (function, file), i in functions.items()
    )
    strings = b"".join(write_field(6, text.encode()) for text in texts)
    return gzip.compress(write_field(1, kind) + samples + locations + shown + strings + comment)


def _count_equations(jaxpr: Jaxpr) -> Counter[tuple[str, tuple[_Line, ...]]]:
    """Return the number of equations for each primitive and places, the innermost line first."""
    counts: Counter[tuple[str, tuple[_Line, ...]]] = Counter()
    left: deque[tuple[Jaxpr, tuple[_Line, ...]]] = deque([(jaxpr, ())])
    seen = {jaxpr}
    while left:
        current, around = left.popleft()
        for equation in current.eqns:
            places = around
            if equation.source is not None:
                line = _make_line(resolve(equation.source))
                places = around if around[:1] == (line,) else (line, *around)
            counts[equation.primitive.name, places] += 1
            for inner in find_jaxprs(equation.parameters):
                if inner not in seen:
                    seen.add(inner)
                    left.append((inner, places))
    return counts


def _make_line(location: Location) -> _Line:
    return location.function, location.file, location.line


def _index(texts: dict[str, int], text: str) -> int:
    """Return the number of `text` in the table of strings."""
    return texts.setdefault(text, len(texts))


def _message(values: Mapping[int, int | bytes]) -> bytes:
    return b"".join([write_field(number, value) for number, value in values.items()])
