"""A wrong program, what its error has to say, and how it is run as a user's file."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import linecache
import pathlib
import re
import runpy
import tempfile
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.settings import config

# What every program begins with.
IMPORTS = """\
import numpy as np
import xtrace
import xtrace.numpy as jnp
from xtrace import lax, random

"""


@dataclasses.dataclass(frozen=True, eq=False)
class WrongProgram:
    """A program as people write it, the error it ends with, and the program that they meant.

    `underlined` is the source text that is marked, at its `nth` place in the program (from 0). It is marked in the
    message; `in_message` is False where the message has no excerpt, and the last line of the traceback in the user's
    file has the marker. `says` are parts of the message; `fix` is the part that says what to write instead. `jax` is
    the class of jax's error where it differs in more than its name (None: jax raises nothing), and `why` says why.
    """

    name: str
    wrong: str
    error: str
    says: Sequence[str]
    underlined: str
    fix: str
    right: str
    nth: int = 0
    in_message: bool = True
    jax: str = "same"
    why: str = ""

    @property
    def source(self) -> str:
        """The whole file."""
        return whole(self.wrong)

    @property
    def corrected(self) -> str:
        """The whole file of the program that works."""
        return whole(self.right)

    @property
    def marked(self) -> Span:
        """The range of the file that is to be marked."""
        start = len(IMPORTS) - 1
        for _ in range(self.nth + 1):
            start = self.source.index(textwrap.dedent(self.underlined), start + 1)
        return Span(*_place(self.source, start), *_place(self.source, start + len(textwrap.dedent(self.underlined))))


class Span(NamedTuple):
    """A range of a file: lines from 1, columns from 0; the end is not part of it."""

    line: int
    column: int
    end_line: int
    end_column: int


class Failure(NamedTuple):
    """How a program ended: its error's class, the message, and what is marked in the message and in the traceback.

    The message is that of a file in no folder, and has no addresses; those of the causes follow it.
    """

    kind: type[BaseException]
    message: str
    in_message: Span | None
    in_traceback: Span | None


def whole(source: str) -> str:
    """Return a program with its imports, as it is in a file."""
    return IMPORTS + textwrap.dedent(source).strip("\n") + "\n"


def _place(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1)


def run(source: str, path: pathlib.Path) -> str:
    """Write a program to a file, run it as one, and return what it prints; its errors and settings are its own."""
    path.write_text(source)
    linecache.checkcache(str(path))
    with kept_settings(), contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()


@contextlib.contextmanager
def kept_settings() -> Iterator[None]:
    """Put xtrace's settings back at the end."""
    before = dict(config.config.values)
    try:
        yield
    finally:
        for name, value in config.config.values.items():
            if value != before[name]:
                config.config.update(name, before[name])


@functools.cache
def failure(program: WrongProgram) -> Failure:
    """Run a wrong program, once in a process, and return how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{program.name}.py"
        try:
            run(program.source, path)
        except BaseException as error:
            message = str(error)
            cause = error.__cause__
            while cause is not None:
                message, cause = f"{message}\n\nbecause of {type(cause).__name__}: {cause}", cause.__cause__
            shown = re.sub(r"0x[0-9a-f]{6,}", "0x...", message.replace(str(path), path.name))
            return Failure(type(error), shown, _marked_in(message, path), _last_place(error, path))
    raise AssertionError(f"{program.name} ended without an error")


def _marked_in(message: str, path: pathlib.Path) -> Span | None:
    """Return the range that the carets of the first excerpt mark, in the file's own columns."""
    found = re.search(rf"^ *{re.escape(str(path))}:(\d+) \(.*\)\n((?: +.*\n *\^+\n?)+)", f"{message}\n", re.MULTILINE)
    if found is None:
        return None
    lines, shown = path.read_text().splitlines(), found[2].splitlines()
    ranges = []
    for number, (text, carets) in enumerate(zip(shown[::2], shown[1::2], strict=True), int(found[1])):
        # Excerpts are indented, and without the indentation that their lines share.
        moved = text.index(text.strip()) - lines[number - 1].index(text.strip())
        ranges.append((number, carets.index("^") - moved, len(carets) - moved))
    return Span(ranges[0][0], ranges[0][1], ranges[-1][0], ranges[-1][2])


def _last_place(error: BaseException, path: pathlib.Path) -> Span | None:
    """Return what Python marks in the innermost line of the traceback that is the program's."""
    found: Any = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == str(path):
            found = list(code.co_positions())[traceback.tb_lasti // 2]
        traceback = traceback.tb_next
    if found is None:
        return None
    line, end_line, column, end_column = found
    return Span(line, column, end_line, end_column)


def for_jax(source: str) -> str:
    """Return the same program written for jax."""
    source = re.sub(r"^import xtrace$", "import jax as xtrace", source, flags=re.MULTILINE)
    return re.sub(r"^(\s*)(import|from) xtrace\b", r"\1\2 jax", source, flags=re.MULTILINE)
