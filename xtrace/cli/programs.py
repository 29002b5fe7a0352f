"""``python -m xtrace run``: programs written for jax."""

from __future__ import annotations

import os
import runpy
import sys
import tokenize
import traceback
from collections.abc import Sequence
from types import TracebackType

import xtrace
from xtrace.cli.errors import FAILED, WRONG_COMMAND, CommandError

TEXT_ENDINGS = (".mlir", ".stablehlo")
# Python runs these, although some contain null characters.
_PYTHON_ENDINGS = (".py", ".pyc", ".pyw", ".pyz", ".zip")
# The modules of Python that find a program.
_LOADERS = frozenset(("importlib", "pkgutil", "runpy", "zipimport"))
# How the names of files begin whose frames lead to the code of a user.
STARTING = (*(folder + os.sep for folder in xtrace.__path__), "<frozen importlib", "<frozen runpy")


def run_program(words: Sequence[str]) -> None:
    """Run a file, or a module after ``-m``, as the main program, with xtrace as jax. Raises `CommandError`."""
    is_module = bool(words) and words[0] == "-m"
    rest = list(words[is_module:])
    if not rest or (is_module and not rest[0]):
        raise CommandError(
            "name a Python file, -m and a module, an exported function or a StableHLO module, such as: "
            "python -m xtrace run train.py", WRONG_COMMAND,
        )
    if not is_module and not os.path.exists(rest[0]):
        raise CommandError(f"there is no file {rest[0]!r}", WRONG_COMMAND)
    xtrace.as_jax()
    # The plugin makes jax mean xtrace in the processes of pytest-xdist, too.
    sys.argv = [rest[0], "-p", "xtrace.pytest_plugin", *rest[1:]] if is_module and rest[0] == "pytest" else rest
    path = os.path.abspath(rest[0])  # As Python names a program in `__file__` and in tracebacks.
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(path)
    try:
        if is_module:
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(path, run_name="__main__")
    except (ImportError, OSError, SyntaxError) as error:
        if _is_of_program(error):
            raise
        if isinstance(error, SyntaxError) and (is_module or find_fault_of_source(rest[0]) is None):
            shown = "".join(traceback.format_exception_only(error)).rstrip()
            raise CommandError(f"{rest[0]} is no Python program:\n\n{shown}", FAILED) from None
        fault = str(error) if is_module or isinstance(error, ImportError) else find_fault_of_source(rest[0])
        raise CommandError(f"{rest[0]!r} cannot be run: {fault}", WRONG_COMMAND) from None


def show_error(kind: type[BaseException], error: BaseException, entry: TracebackType | None) -> None:
    """Print an error that ends the process, without the frames that led to the program: an exception hook."""
    start = entry
    while start is not None and start.tb_frame.f_code.co_filename.startswith(STARTING):
        start = start.tb_next
    entry = start or entry
    sys.__excepthook__(kind, error.with_traceback(entry), entry)


def _is_of_program(error: BaseException) -> bool:
    """Whether an error comes from a line of the user's, not from the search for the program."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(str(name).partition(".")[0] not in _LOADERS for name in modules[1:])


def find_fault_of_source(path: str) -> str | None:
    """Return why a file cannot be read as Python's source; None if it can."""
    try:
        with tokenize.open(path) as file:
            return "it contains null characters" if "\0" in file.read() else None
    except OSError as error:
        return error.strerror
    except (SyntaxError, UnicodeDecodeError) as error:
        return f"its text cannot be decoded: {error}; save it as UTF-8"


def is_artifact(path: str) -> bool:
    """Return whether a file is an exported function or a StableHLO module, not a Python program.

    The ending of its name reveals MLIR text. A null character reveals bytes; Python source has none.
    """
    if path.endswith(_PYTHON_ENDINGS) or not os.path.isfile(path):
        return False
    if path.endswith(TEXT_ENDINGS):
        return True
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(1 << 20)
    except OSError:
        return False  # `run_program` says why
