"""All wrong programs by theme, and the page that shows them."""

from __future__ import annotations

import os
import pathlib

from tests.errors.programs import (
    arguments,
    arrays,
    batching,
    conditions,
    control_flow,
    derivatives,
    meshes,
    operations,
    shapes,
    tools,
    updates_and_leaks,
    values,
)
from tests.errors.wrong_program import IMPORTS, WrongProgram, failure

_MODULES = (
    conditions, values, shapes, updates_and_leaks, arguments, control_flow, derivatives, batching, arrays, operations,
    meshes, tools,
)
THEMES: dict[str, list[WrongProgram]] = {str(module.__doc__).strip(): module.PROGRAMS for module in _MODULES}
ALL = [program for programs in THEMES.values() for program in programs]

PAGE = pathlib.Path(__file__).parents[2] / "notebooks" / "wrong_programs.md"

_HEAD = """\
# Wrong programs, what xtrace says about them, and how they are put right

Written by `python -m tests.errors` from the table in `tests/errors/programs`. Each program was run as a file that
begins with

```python
{imports}
```

(lines are counted with these), and so was the one that works. Where a message has no excerpt of the source, Python's
traceback marks the expression; it is shown here below the program's line.
"""


def section(program: WrongProgram) -> str:
    """Return what the page says about one program: its source, its error as printed, and the program that works."""
    found = failure(program)
    line = f"  {program.name}.py:{program.marked.line}\n    {marked_line(program)}\n"
    place = "" if program.in_message else line
    return (
        f"### {program.name.replace('_', ' ')}\n\n```python\n{_own_part(program.source)}\n```\n\n"
        f"```text\n{place}{found.kind.__name__}: {found.message}\n```\n\n"
        f"Instead:\n\n```python\n{_own_part(program.corrected)}\n```\n"
    )


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD.format(imports=IMPORTS.strip())]
    for theme, programs in THEMES.items():
        parts.append(f"## {theme}\n")
        parts += map(section, programs)
    return "\n".join(parts)


def sections_of(text: str) -> dict[str, str]:
    """Return the parts of a page by their headings."""
    found = {}
    for part in text.split("\n### ")[1:]:
        title, _, rest = part.partition("\n")
        found[title] = f"### {title}\n{rest.partition(f'{os.linesep}## ')[0]}".rstrip() + "\n"
    return found


def _own_part(source: str) -> str:
    return source.removeprefix(IMPORTS).strip("\n")


def marked_line(program: WrongProgram) -> str:
    """Return the line that is marked and the marker below it, without the indentation of the line."""
    lines, span = program.source.splitlines(), program.marked
    text = lines[span.line - 1]
    end = span.end_column if span.end_line == span.line else len(text)
    margin = len(text) - len(text.lstrip())
    marker = " " * (span.column - margin) + "^" * (end - span.column)
    return f"{text.strip()}\n    {marker}"
