"""The user's source files that took part in a program, and whether they are still those that were traced."""

from __future__ import annotations

import linecache
import os
import warnings
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

_MOST_COLUMNS = 2000
_MOST_LINES = 20_000


def describe_file(name: str, codes: Iterable[CodeType]) -> dict[str, Any]:
    """Return the name, the lines, and what is wrong with a file of which `codes` were traced.

    ``lines`` is None where there is no source; ``missing`` and ``changed`` say so in words.
    """
    linecache.checkcache(name)
    lines = [line.rstrip("\r\n") for line in linecache.getlines(name)]
    if not lines:
        reason = "the file is gone" if os.path.isabs(name) and not os.path.exists(name) else (
            "this code was not read from a file: it was typed, generated or executed from a string"
        )
        return {"name": name, "lines": None, "missing": reason, "changed": ""}
    changed = "" if _is_unchanged(name, lines, codes) else (
        "the file has changed since the function was traced; places are those of the older text"
    )
    cut = f"lines after {_MOST_LINES} are left out" if len(lines) > _MOST_LINES else ""
    return {"name": name, "lines": [shorten(x) for x in lines[:_MOST_LINES]], "missing": cut, "changed": changed}


def shorten(line: str, most: int = _MOST_COLUMNS) -> str:
    """Return a line, the rest of a very long one left out."""
    return line if len(line) <= most else f"{line[:most]} … {len(line) - most} characters left out"


def _is_unchanged(name: str, lines: Sequence[str], codes: Iterable[CodeType]) -> bool:
    """Whether the text compiles to the code that was traced; true where that cannot be told."""
    try:
        with warnings.catch_warnings():
            # The code was compiled before, with the same warnings.
            warnings.simplefilter("ignore")
            compiled = compile("\n".join(lines) + "\n", name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # A cell of a notebook with commands, or a file that is being edited.
        return not os.path.exists(name)
    known: set[tuple[str, int, bytes]] = set()
    left = [compiled]
    while left:
        code = left.pop()
        known.add(_identity(code))
        left += [x for x in code.co_consts if isinstance(x, CodeType)]
    return all(_identity(code) in known for code in codes)


def _identity(code: CodeType) -> tuple[str, int, bytes]:
    return code.co_name, code.co_firstlineno, code.co_code


def column_in_utf16(line: str, column: int) -> int:
    """Return a column in bytes of UTF-8 as that of browsers, in units of UTF-16."""
    if line.isascii():
        return column
    return len(line.encode()[:column].decode(errors="ignore").encode("utf-16-le")) // 2
