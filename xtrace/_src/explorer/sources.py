"""The source files of a program, and whether they have changed since tracing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

from xtrace._src.core.diagnostics.excerpts import source_lines
from xtrace._src.xla.source_locations import name_file

_MAX_COLUMNS = 2000
_MAX_LINES = 20_000


def describe_file(name: str, codes: Iterable[CodeType]) -> dict[str, Any]:
    """Return the data of a file: its name and lines.

    codes: the traced code objects of the file. ``lines`` is None without a source. ``missing`` has the reason, and
    ``changed`` a warning if the file has changed since tracing.
    """
    lines = source_lines(name)
    unchanged = _is_unchanged(name, lines, codes)
    if not lines or not (unchanged or os.path.exists(name)):
        # Python names all code executed from strings alike, and may know the lines of another such string.
        reason = "the file is gone" if os.path.isabs(name) and not os.path.exists(name) else (
            "this code was not read from a file: it was typed, generated or executed from a string"
        )
        return {"name": name_file(name), "lines": None, "missing": reason, "changed": ""}
    changed = "" if unchanged else (
        "the file has changed since the function was traced; line numbers refer to the older text"
    )
    cut = f"lines after {_MAX_LINES} are left out" if len(lines) > _MAX_LINES else ""
    shown = [shorten(line) for line in lines[:_MAX_LINES]]
    return {"name": name_file(name), "lines": shown, "missing": cut, "changed": changed}


def shorten(line: str, most: int = _MAX_COLUMNS) -> str:
    """Return a line, without the characters after the first `most`."""
    return line if len(line) <= most else f"{line[:most]} … {len(line) - most} characters left out"


def _is_unchanged(name: str, lines: Sequence[str], codes: Iterable[CodeType]) -> bool:
    """Return whether the text compiles to the traced code; True if the text is not Python."""
    try:
        with warnings.catch_warnings():
            # The first compilation has given these warnings.
            warnings.simplefilter("ignore")
            compiled = compile("\n".join(lines) + "\n", name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # A cell of a notebook with commands, or an unfinished edit of a file.
        return not os.path.exists(name)
    known: set[tuple[str, int, bytes]] = set()
    left = [compiled]
    while left:
        code = left.pop()
        known.add(_identify(code))
        left += [x for x in code.co_consts if isinstance(x, CodeType)]
    return all(_identify(code) in known for code in codes)


def _identify(code: CodeType) -> tuple[str, int, bytes]:
    return code.co_name, code.co_firstlineno, code.co_code


def column_in_utf16(line: str, column: int) -> int:
    """Return a column in bytes of UTF-8 as a column in units of UTF-16, as browsers count."""
    if line.isascii():
        return column
    return len(line.encode()[:column].decode(errors="ignore").encode("utf-16-le")) // 2
