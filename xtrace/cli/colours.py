"""Colours for programs and errors in terminals."""

from __future__ import annotations

import os
import re
from typing import TextIO

_RESET = "\x1b[0m"
_STYLES = {"type": "36", "operation": "33", "keyword": "35", "string": "32", "value": "1", "rest": "2", "error": "1;31"}

# The parts of jaxprs, StableHLO and HLO, in the order of precedence: strings, metadata, types, names, values.
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
    """Return whether `stream` shows colours: it is a terminal with colours, and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour_program(text: str, stream: TextIO) -> str:
    """Return a jaxpr, StableHLO or HLO with colours if `stream` shows them."""
    if not has_colours(stream):
        return text
    return _PARTS.sub(lambda part: _paint(part[0], str(part.lastgroup)), text)


def colour_error(text: str, stream: TextIO) -> str:
    """Return an error with its beginning, up to the first colon, in colour if `stream` shows colours."""
    command, colon, rest = text.partition(": ")
    return f"{_paint(command + colon.rstrip(), 'error')} {rest}" if has_colours(stream) else text


def _paint(text: str, style: str) -> str:
    return f"\x1b[{_STYLES[style]}m{text}{_RESET}"
