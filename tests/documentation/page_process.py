"""The process in which the programs of a page run, as a reader would run them: reads JSON, and writes what they print.

Standard input has a list of programs; they share one namespace. Of each, the last line of standard output has what it
printed, and the error that ended it.
"""

import contextlib
import io
import json
import linecache
import sys

FILE = "example.py"


def run(program: str, before: str, scope: dict[str, object]) -> str:
    """Run a program and return what it printed; its lines are counted as in a file that has those before, too."""
    # Messages and the explorer show the source, which they take from here as they take that of notebooks.
    text = before + program
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    padded = "\n" * before.count("\n") + program
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(compile(padded, FILE, "exec"), scope)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return out.getvalue()


if __name__ == "__main__":
    scope: dict[str, object] = {"__name__": "__main__"}
    programs = json.load(sys.stdin)
    printed = [run(program, "".join(f"{p}\n" for p in programs[:i]), scope) for i, program in enumerate(programs)]
    print(json.dumps(printed))
