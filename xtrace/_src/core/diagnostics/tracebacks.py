"""Removal of xtrace's own frames from the tracebacks of errors that reach the user.

Every function that users call is a boundary: it ends in ``except BaseException as error: hide_frames(error); raise``,
which costs nothing without an error. The setting ``jax_traceback_filtering`` brings the frames back.
"""

from __future__ import annotations

import contextlib
import functools
import opcode
import os
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics.positions import is_internal
from xtrace._src.core.settings import config

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import cut_long_lines, name_public_function

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MARK = "xtrace's own frames"
_HIDDEN = (
    f"{_MARK} are left out of this traceback; XTRACE_TRACEBACK_FILTERING=off in the environment, or "
    "xtrace.config.update('jax_traceback_filtering', 'off'), brings them back."
)
_KEPT = (
    f"{_MARK} are in this traceback because the failure is in xtrace itself: it is a bug. Please report it with the "
    "program and all of the text above."
)

# Errors that Python raises for faults in code; raised by a `raise` statement, they are intended.
_UNFORESEEN = (ArithmeticError, AttributeError, BufferError, LookupError, NameError, SystemError)
_RAISING = frozenset(opcode.opmap[name] for name in ("RAISE_VARARGS", "RERAISE"))

# Modules through which xtrace calls its own functions; their frames are hidden, too.
_HELPERS = tuple(os.path.abspath(str(module.__file__)) for module in (contextlib, functools))


class UnfilteredStackTrace(Exception):
    """The cause of an error whose traceback was filtered: its message is the whole traceback, with causes."""


def hide_frames(error: BaseException) -> None:
    """Remove xtrace's frames from the tracebacks of `error`, of its causes and contexts, and of the errors in a group.

    A note, one for each error, says so. The frames stay if the error is an unintended failure of xtrace. With the
    setting at "tracebackhide" they stay, marked for IPython and pytest to skip; at "remove_frames" the error's cause,
    in place of the note, is an `UnfilteredStackTrace` with the whole traceback.
    """
    name_public_function(error, error.__traceback__)
    cut_long_lines(error, error.__traceback__)
    mode = config.traceback_filtering.value
    if mode == "off":
        return
    is_user_frame, whole = False, ""
    if mode == "remove_frames" and not isinstance(error.__cause__, UnfilteredStackTrace):
        whole = "".join(traceback.format_exception(error))
    pending: list[BaseException | None] = [error]
    seen = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        pending += [one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]
        frames = _frames(one.__traceback__)
        hidden = [_is_hidden(frames, i) for i in range(len(frames))]
        if not any(hidden):
            continue
        if mode == "tracebackhide":
            for entry in [e for e, out in zip(frames, hidden, strict=True) if out]:
                entry.tb_frame.f_locals["__tracebackhide__"] = True
        elif _is_unforeseen(one, frames[-1]):
            _note(one, _KEPT)
        else:
            is_user_frame = True
            _relink(one, [e for e, out in zip(frames, hidden, strict=True) if not out])
    if is_user_frame and mode != "remove_frames":
        _note(error, _HIDDEN)
    elif is_user_frame and whole:
        error.__cause__ = UnfilteredStackTrace(f"The traceback with {_MARK}:\n\n{whole}")


def _frames(entry: TracebackType | None) -> list[TracebackType]:
    frames = []
    while entry is not None:
        frames.append(entry)
        entry = entry.tb_next
    return frames


def _is_hidden(frames: list[TracebackType], position: int) -> bool:
    """Whether a frame is xtrace's, or belongs to a module through which xtrace called a function."""
    filename = frames[position].tb_frame.f_code.co_filename
    if is_internal(filename):
        return True
    return filename in _HELPERS and position > 0 and _is_hidden(frames, position - 1)


def _is_unforeseen(error: BaseException, innermost: TracebackType) -> bool:
    """Whether the error was raised in xtrace's code unintentionally."""
    code = innermost.tb_frame.f_code
    # A boundary that hid the frames inside of it has judged the error; now the innermost frame is the one outside.
    if not is_internal(code.co_filename) or _HIDDEN in getattr(error, "__notes__", ()):
        return False
    if isinstance(error, AssertionError):
        return True
    return isinstance(error, _UNFORESEEN) and code.co_code[innermost.tb_lasti] not in _RAISING


def _relink(error: BaseException, kept: list[TracebackType]) -> None:
    """Make `kept` the traceback of `error`."""
    following = None
    for entry in reversed(kept):
        entry.tb_next = following
        following = entry
    error.__traceback__ = following


def _note(error: BaseException, text: str) -> None:
    """Add a note, unless the error already has one of these notes."""
    if not any(_MARK in str(note) for note in getattr(error, "__notes__", ())):
        error.add_note(text)


def boundary(function: _Function) -> _Function:
    """Return a function that calls `function` and hides frames; `function` itself if it hides frames already.

    For functions that are called rarely or do much: the extra call takes a tenth of a microsecond. A function that
    was made by another gets its plain name, which Python's errors about arguments say.
    """
    if "<locals>" in function.__qualname__ and function.__qualname__ == function.__code__.co_qualname:
        function.__qualname__ = function.__name__
    if "hide_frames" in function.__code__.co_names:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    # A wrapper of a user's function keeps its `__wrapped__`.
    call.__wrapped__ = getattr(function, "__wrapped__", function)
    return call  # type: ignore[return-value]
