"""Errors of the Python functions that compiled programs call, kept until the program's own error reaches the caller.

XLA hands on the text of an error and nothing else; so the text says which one it was.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.xla.executables import CompileError

_MARK = re.compile(r"\[xtrace callback ([0-9]+)\]")
_LIMIT = 16
_kept: dict[int, Failure] = {}
_numbers = itertools.count()


class Failure(NamedTuple):
    """An error that a callback raised, and the callback in words."""

    error: BaseException
    callback: str

    def make_error(self) -> BaseException:
        """Return the error for whoever called the program: XLA's class, with the callback's error as its cause.

        An error that is no `Exception`, such as KeyboardInterrupt, is meant for the whole process and is left as it is.
        """
        error = self.error
        if not isinstance(error, Exception):
            return error
        text = f"INTERNAL: {self.callback} raised {type(error).__name__}: {error}"
        raised: BaseException = CompileError(text)
        raised.__cause__ = error
        return raised


def keep(failure: Failure) -> str:
    """Keep a failure, and return the text that finds it again; only the last ones are kept."""
    hide_frames(failure.error)
    number = next(_numbers)
    _kept[number] = failure
    _kept.pop(number - _LIMIT, None)
    return f"[xtrace callback {number}] {failure.callback} raised {type(failure.error).__name__}: {failure.error}"


def failure_behind(error: BaseException) -> BaseException | None:
    """Return the error to raise in place of the runtime's `error`, if a callback is behind that."""
    mark = _MARK.search(str(error))
    failure = _kept.get(int(mark[1])) if mark is not None else None
    return None if failure is None else failure.make_error()
