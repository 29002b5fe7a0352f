"""``python -m xtrace run``: programs written for jax."""

from __future__ import annotations

import gc
import os
import runpy
import sys
from collections.abc import Sequence

import xtrace
from xtrace.cli.errors import WRONG_COMMAND, CommandError

TEXT_ENDINGS = (".mlir", ".stablehlo")
# Python runs these, although some contain null characters.
_PYTHON_ENDINGS = (".py", ".pyc", ".pyw", ".pyz", ".zip")


def run_program(words: Sequence[str]) -> None:
    """Run a file, or a module after ``-m``, as the main program, with xtrace as jax. Raises `CommandError`."""
    is_module = bool(words) and words[0] == "-m"
    rest = list(words[is_module:])
    if not rest:
        raise CommandError(
            "name a Python file, or -m and a module, such as: python -m xtrace run train.py", WRONG_COMMAND
        )
    if not is_module and not os.path.exists(rest[0]):
        raise CommandError(f"there is no file {rest[0]!r}", WRONG_COMMAND)
    # What is loaded now stays as long as the process: collections need not look at it.
    gc.freeze()
    xtrace.as_jax()
    sys.argv = rest
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(rest[0]))
    if is_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(rest[0], run_name="__main__")


def is_artifact(path: str) -> bool:
    """Return whether a file is an exported function or a StableHLO module, not a Python program.

    The ending of its name reveals MLIR text. A null character reveals bytes; Python source has none.
    """
    if path.endswith(_PYTHON_ENDINGS) or not os.path.isfile(path):
        return False
    if path.endswith(TEXT_ENDINGS):
        return True
    with open(path, "rb") as file:
        return b"\0" in file.read(1 << 20)
