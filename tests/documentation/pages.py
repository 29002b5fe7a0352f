"""Runs the programs of a page in Markdown, and compares what they print with what the page shows.

Blocks of a page run in order, in one namespace, in a process of their own:

- ``python``: what stands in a comment after a ``print`` is its line; a ``text`` block that follows is all that the
  program prints, and then the error that ends it, if one does.
- ``python title="model.py"``: a file, which a command must name.
- ``sh``: commands that begin with ``python -m xtrace`` run beside the files; others are for the reader.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

from tests.documentation import page_process
from tests.support.reader_environment import reader_environment

_FENCE = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"-?\d+\.?\d*(e[+-]?\d+)?")
_COMMAND = "python -m xtrace "


class Block(NamedTuple):
    """A block of code: its language, its options, its text, and the text block that follows at once, or None."""

    language: str
    options: str
    text: str
    output: str | None


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in order; those that show output belong to the block before."""
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(page):
        language, options, text = match.groups()
        follows = found and len(page[end : match.start()].split()) <= 1  # at most the word "prints" is between
        if language == "text" and follows and found[-1].output is None:
            found[-1] = found[-1]._replace(output=text)
        else:
            found.append(Block(language, options, text, None))
        end = match.end()
    return found


def saved_pages(page: str) -> list[str]:
    """Return the names of the pages of HTML that the programs of a page write."""
    return re.findall(r'\.save\("(\S+\.html)"\)', page)


def run_page(page: str, folder: pathlib.Path) -> None:
    """Run all programs and commands of a page; AssertionError where one prints something else than the page shows."""
    programs = []
    for block in blocks(page):
        if file := re.search(r'title="(.*?)"', block.options):
            assert re.search(rf"^{_COMMAND}.*{file[1]}", page, re.MULTILINE), f"no command runs {file[1]}"
            (folder / file[1]).write_text(block.text)
        elif block.language == "python":
            programs.append(block)
        elif block.language == "sh" and block.text.startswith(_COMMAND):
            _run_commands(block, folder)
        else:
            assert block.output is None, f"nothing runs this block, whose output is shown:\n{block.text}"
    for block, printed in zip(programs, run_programs([block.text for block in programs], folder), strict=True):
        comments = "\n".join(re.findall(r"^ *print\(.*\)  # (.*)$", block.text, re.MULTILINE))
        compare(printed, comments if block.output is None else block.output, block.text)


def run_programs(programs: list[str], folder: pathlib.Path) -> list[str]:
    """Return what each of a page's programs prints, in a process that has eight devices and no settings of tests."""
    if not programs:
        return []
    done = subprocess.run(
        [sys.executable, page_process.__file__], input=json.dumps(programs), cwd=folder, capture_output=True, text=True,
        env=reader_environment(XTRACE_NUM_CPU_DEVICES="8"), check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: list[str] = json.loads(done.stdout.splitlines()[-1])
    return printed


def _run_commands(block: Block, folder: pathlib.Path) -> None:
    printed = ""
    for command in block.text.replace("\\\n", " ").splitlines():
        assert command.startswith(_COMMAND), f"write {command!r} into a block of its own"
        words = [sys.executable, *shlex.split(command, comments=True)[1:]]
        done = subprocess.run(words, cwd=folder, env=reader_environment(), capture_output=True, text=True, check=False)
        printed += done.stdout + done.stderr
    compare(printed.replace(f"{folder}{os.sep}", ""), block.output or "", block.text)


def compare(printed: str, shown: str, program: str) -> None:
    """Compare texts line by line and word by word: numbers with a point to the digits that compilers agree on.

    A line that is shown with "…" at its end may go on in any way.
    """
    lines = [text.rstrip().splitlines() for text in (printed, shown)]
    report = f"\n{program}\nprints\n\n{printed}\nand the page shows\n\n{shown}"
    assert len(lines[0]) == len(lines[1]), report
    for found, expected in zip(*lines, strict=True):
        words = _words(found), _words(expected.removesuffix("…"))
        if expected.endswith("…"):
            words = words[0][: len(words[1])], words[1]
        assert len(words[0]) == len(words[1]) and all(map(_same, *words)), report


def _same(found: float | str, expected: float | str) -> bool:
    if isinstance(found, str) or isinstance(expected, str):
        return found == expected
    return math.isclose(found, expected, rel_tol=1e-5, abs_tol=1e-12)


def _words(line: str) -> list[float | str]:
    parts = re.sub(r"[\[\](),]", " ", line).split()
    return [float(part) if _NUMBER.fullmatch(part) else part for part in parts]
