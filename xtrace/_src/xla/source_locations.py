"""Locations in the user's code: expressions and lines."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

# The folder of the package `xtrace`; code that xtrace generates has file names that begin with ``<xtrace ``.
PACKAGE_FOLDER = os.path.join(os.path.abspath(__file__).rpartition(os.path.join("", "_src", ""))[0], "")


def name_file(file: str) -> str:
    """Return a file's name as its user knows it: ``In[3]`` for a cell of a notebook, whose file is a temporary one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    describe = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)
    kind_and_name = describe(file)
    return kind_and_name[1] if kind_and_name is not None else file


class Place(NamedTuple):
    """A line of the user's code, and its function. A file below the working directory is printed relative to it."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        folder = os.path.join(os.getcwd(), "")
        return f"{name_file(self.file).removeprefix(folder)}:{self.line}"


class Location(NamedTuple):
    """An expression: its file, its function, and the range of lines (from 1) and columns (from 0, in bytes of UTF-8).

    Columns are 0 where they are not known.
    """

    file: str
    function: str
    line: int
    end_line: int
    column: int
    end_column: int

    @property
    def place(self) -> Place:
        """The first line of the expression."""
        return Place(self.file, self.line, self.function)

    def __str__(self) -> str:
        return f"{name_file(self.file)}:{self.line} ({self.function})"
