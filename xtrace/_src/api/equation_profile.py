"""Profiles of the number of equations from each line of the user's code, in the format of pprof.

Source: the messages Profile, Sample, Location, Function and Label of google/pprof, proto/profile.proto.
"""

from __future__ import annotations

import gzip
from collections import Counter, deque

from xtrace._src.core.ir import Jaxpr, find_jaxprs
from xtrace._src.core.source import resolve
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
                line = _number(1, functions[function, file]) + _number(2, number)
                locations += _message(4, _number(1, lines[place]) + _message(4, line))
        label = _number(1, _index(texts, "primitive")) + _number(2, _index(texts, primitive))
        identifiers = b"".join(_varint(lines[place]) for place in places)
        samples += _message(2, _message(1, identifiers) + _message(2, _varint(count)) + _message(3, label))
    kind = _number(1, _index(texts, "equations")) + _number(2, _index(texts, "count"))
    comment = _message(13, _varint(_index(texts, name)))
    shown = b"".join(
        _message(5, _number(1, i) + _number(2, _index(texts, function)) + _number(4, _index(texts, file)))
        for (function, file), i in functions.items()
    )
    strings = b"".join(_message(6, text.encode()) for text in texts)
    return gzip.compress(_message(1, kind) + samples + locations + shown + strings + comment)


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


def _varint(value: int) -> bytes:
    """Return a non-negative integer in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
