"""Errors of callbacks, the Python functions that compiled programs call, kept until the program's error is raised.

XLA passes on only the text of an error, so the text has the number of the kept error.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.xla.executables.executables import CompileError

_MARK = re.compile(r"\[xtrace callback ([0-9]+)\]")
_LIMIT = 16
_kept: dict[int, Failure] = {}
_numbers = itertools.count()


class Failure(NamedTuple):
    """An error that a callback raised, and a description of the callback."""

    error: BaseException
    callback: str

    def make_error(self) -> BaseException:
        """Return the error for the caller of the program: XLA's class, with the callback's error as its cause.

        An error that is no `Exception`, such as KeyboardInterrupt, concerns the whole process and is returned itself.
        """
        error = self.error
        if not isinstance(error, Exception):
            return error
        raised: BaseException = CompileError(f"INTERNAL: {self.callback} raised {type(error).__name__}: {error}")
        raised.__cause__ = error
        return raised


def keep_failure(failure: Failure) -> str:
    """Keep a failure, and return the text by which it is found again; only the last ones are kept."""
    hide_frames(failure.error)
    number = next(_numbers)
    _kept[number] = failure
    _kept.pop(number - _LIMIT, None)
    return f"[xtrace callback {number}] {failure.callback} raised {type(failure.error).__name__}: {failure.error}"


def find_callback_error(error: BaseException) -> BaseException | None:
    """Return the error to raise in the place of the runtime's `error`, if a callback caused it; else None."""
    mark = _MARK.search(str(error))
    failure = _kept.get(int(mark[1])) if mark is not None else None
    return None if failure is None else failure.make_error()
