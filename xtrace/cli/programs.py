"""``python -m xtrace run``: programs written for jax."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

import xtrace
from xtrace.cli.errors import WRONG_COMMAND, CommandError


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
    xtrace.as_jax()
    sys.argv = rest
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(rest[0]))
    if is_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(rest[0], run_name="__main__")
