"""Frontend attributes, pairs of a key and a text for XLA's passes, which are added to written lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xtrace._src.stablehlo import attributes

Attributes = Mapping[str, str]

_KEY = re.compile(r"[A-Za-z_][\w$.]*")
# Lines that are no operations, or operations whose syntax takes no attributes.
_PLAIN = re.compile(r"\s*(?:%[\w#:]+ = )?(?:\}, \{|\^|(?:stablehlo\.|sdy\.)?return\b|stablehlo\.constant\b|sdy\.)")
_LAST = re.compile(r"\s*\}\)")
_BROADCAST = re.compile(r"\s*%\w+ = stablehlo\.broadcast_in_dim\b")
# This operation has its attributes before its operands.
_BARRIER = " = stablehlo.optimization_barrier "
_OPENING, _CLOSING = "([{", ")]}"
_GIVEN = "mhlo.frontend_attributes = {"


def annotate_lines(lines: list[str], start: int, given: Attributes) -> None:
    """Add attributes to the operations in ``lines[start:]``, also inside of regions.

    An operation keeps the texts of keys that it has. Constants get none, because several operations share them.
    """
    for i in range(start, len(lines)):
        lines[i] = annotate(lines[i], given)


def annotate(line: str, given: Attributes) -> str:
    """Return a line with attributes added; a line that can hold no attributes is returned unchanged.

    An operation with regions has its attributes in its last line.
    """
    if _PLAIN.match(line):
        return line
    # The last line of an operation with regions begins with brackets that earlier lines open.
    closing = _LAST.match(line)
    at = _find(" : ", line, closing.end() if closing is not None else 0)
    if at is None:
        return line
    before, types = line[:at], line[at:]
    inside = before.find(_GIVEN)
    if inside >= 0:
        inside += len(_GIVEN)
        own = before[inside : _find("}", before, inside)]
        added = _format({key: text for key, text in given.items() if _find(f"{_name(key)} = ", own, 0) is None})
        separator = ", " if added and own else ""
        return f"{before[:inside]}{added}{separator}{before[inside:]}{types}"
    text = f"{_GIVEN}{_format(given)}}}"
    if _BARRIER in before:
        return line.replace(_BARRIER, f"{_BARRIER}{{{text}}} ", 1)
    has_attributes = before.endswith("}") and not _ends_in_parameter(before)
    return f"{before[:-1]}, {text}}}{types}" if has_attributes else f"{before} {{{text}}}{types}"


def is_broadcast(line: str) -> bool:
    """Whether a line is a broadcast, as rules of elementwise operations write for their operands."""
    return _BROADCAST.match(line) is not None


def find_operation(lines: list[str], name: str) -> int | None:
    """Return the index of the line with the attributes of the operation with result `name`; None if there is none."""
    binder = re.compile(rf"{re.escape(name.partition('#')[0])}(?::\d+)? = ")
    for i in reversed(range(len(lines))):
        if binder.match(lines[i]):
            if not lines[i].endswith("({"):
                return i
            return next((j for j in range(i + 1, len(lines)) if lines[j].startswith("})")), None)
    return None


def _name(key: str) -> str:
    return key if _KEY.fullmatch(key) else attributes.string(key)


def _format(given: Attributes) -> str:
    return ", ".join(f"{_name(key)} = {attributes.string(text)}" for key, text in given.items())


def _find(target: str, line: str, start: int) -> int | None:
    """Return the index of `target` in ``line[start:]``, outside of strings and of brackets; None if there is none.

    The match is at `start` or after a space.
    """
    depth, quoted, i = 0, False, start
    while i < len(line):
        character = line[i]
        if quoted:
            i += character == "\\"
            quoted = character != '"'
        elif depth == 0 and line.startswith(target, i) and (i == start or target[0] in " }" or line[i - 1] == " "):
            return i
        elif character == '"':
            quoted = True
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        i += 1
    return None


def _ends_in_parameter(text: str) -> bool:
    """Whether the last bracket of `text` holds a value, such as ``x = {…}``, and no list of attributes."""
    depth = 0
    for i in reversed(range(len(text))):
        if text[i] in _CLOSING:
            depth += 1
        elif text[i] in _OPENING:
            depth -= 1
            if depth == 0:
                return not text[:i].endswith(" ") or text[:i].endswith("= ")
    return True
