"""Colours for what a terminal shows: programs by their parts, errors, and nothing where no terminal is."""

from __future__ import annotations

import os
import re
from typing import TextIO

_RESET = "\x1b[0m"
_STYLES = {"type": "36", "operation": "33", "keyword": "35", "string": "32", "value": "1", "rest": "2", "error": "1;31"}

# The parts of jaxprs, StableHLO and HLO, the first that fits: texts, what is beside the point, types, names, values.
_PARTS = re.compile(
    r"""
    (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<rest>,[ ]metadata=\{[^\n]*\} | [ ]loc\([^\n]*\)$)
    | (?P<type>
        \b(?:bool|[iufcs]\d+|bf16|f8_\w+|pred|key<\w+>)\[[^\]\n]*\](?:\{[\d,]*\})?
        | tensor<[^\n]*?>(?=[\s,)({]|$)
    )
    | (?P<keyword>\b(?:lambda|let|in|module|func\.func|return|ENTRY|ROOT)\b)
    | (?P<operation>\b(?:stablehlo|chlo|sdy)\.\w+ | (?<==\s)[a-z_]\w*(?=[\[\s]) | (?<=[\]\})]\s)[a-z][\w-]*(?=\())
    | (?P<value>%[\w.]+)
    """,
    re.VERBOSE | re.MULTILINE,
)


def has_colours(stream: TextIO) -> bool:
    """Whether text written to `stream` may have colours: it is a terminal that knows them, and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour_program(text: str, stream: TextIO) -> str:
    """Return a jaxpr, StableHLO or HLO with its parts in colours, if `stream` shows any."""
    if not has_colours(stream):
        return text
    return _PARTS.sub(lambda part: _paint(part[0], str(part.lastgroup)), text)


def colour_error(text: str, stream: TextIO) -> str:
    """Return the beginning of an error, up to its first colon, in colour, if `stream` shows any."""
    command, colon, rest = text.partition(": ")
    return f"{_paint(command + colon.rstrip(), 'error')} {rest}" if has_colours(stream) else text


def _paint(text: str, style: str) -> str:
    return f"\x1b[{_STYLES[style]}m{text}{_RESET}"
