"""The users' lines of operations, from the tables at the head of the text of an HLO module."""

from __future__ import annotations

import re

from xtrace._src.xla.source_locations import Location

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ROW = re.compile(r"^(\d+) (.*)$")
_FIELD = re.compile(r"(\w+)=(\d+)")
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_FILE = re.compile(r'\bsource_file="([^"]*)"')
_LINE = re.compile(r"\bsource_line=(\d+)")


class Frames:
    """The stack frames of a module's text."""

    def __init__(self, text: str) -> None:
        tables: dict[str, dict[int, str]] = {}
        current = None
        for line in _head(text):
            if line in _TABLES:
                current = tables.setdefault(line, {})
            elif current is not None:
                row = _ROW.match(line)
                if row is not None:
                    current[int(row[1])] = row[2]
        files, functions = [
            {n: name.strip('"') for n, name in tables.get(table, {}).items()} for table in _TABLES[:2]
        ]
        locations = {
            n: Location(
                files.get(row.get("file_name_id", 0), ""), functions.get(row.get("function_name_id", 0), ""),
                row.get("line", 0), row.get("end_line", 0), _column(row, "column"), _column(row, "end_column"),
            )
            for n, row in _rows(tables.get("FileLocations", {}))
        }
        self._frames: dict[int, tuple[Location | None, int]] = {
            n: (locations.get(row.get("file_location_id", 0)), row.get("parent_frame_id", 0))
            for n, row in _rows(tables.get("StackFrames", {}))
        }

    def stack(self, line: str) -> list[Location]:
        """Return the locations of an operation's line, innermost first."""
        match = _FRAME.search(line)
        places: list[Location] = []
        number = int(match[1]) if match is not None else 0
        while number in self._frames and len(places) < len(self._frames):
            place, parent = self._frames[number]
            if place is not None:
                places.append(place)
            # The text numbers frames from 1, but a parent is its number plus 1, where 0 and 1 are no frame.
            number = parent - 1
        return places

    def place(self, line: str) -> tuple[str | None, int | None]:
        """Return the file and the line in an operation's metadata; None if there are none."""
        file, number = _FILE.search(line), _LINE.search(line)
        if file is not None and number is not None:
            return file[1], int(number[1])
        stack = self.stack(line)
        return (stack[0].file, stack[0].line) if stack else (None, None)


def _head(text: str) -> list[str]:
    """Return the lines before the first computation."""
    ends = [i for i in (text.find("\n%"), text.find("\nENTRY")) if i >= 0]
    return text[: min(ends)].splitlines() if ends else text.splitlines()


def _column(row: dict[str, int], name: str) -> int:
    # HLO counts columns from 1; an unknown column is 0 or missing.
    return max(row.get(name, 0) - 1, 0)


def _rows(table: dict[int, str]) -> list[tuple[int, dict[str, int]]]:
    return [(n, {key: int(value) for key, value in _FIELD.findall(row)}) for n, row in table.items()]
