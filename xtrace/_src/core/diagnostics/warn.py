"""Warnings that point at the user's line."""

from __future__ import annotations

import itertools
import warnings

from xtrace._src.core.diagnostics.source import calling_frames, is_internal, resolve, user_position


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with `message` at the line of the innermost frame outside xtrace."""
    inside = itertools.takewhile(lambda frame: is_internal(frame.f_code.co_filename), calling_frames())
    warnings.warn(message, category, stacklevel=2 + len(list(inside)))


def warn_each_time(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with `message` at the user's line, also if that line has had this warning before."""
    place = user_position()
    file, line = (resolve(place).file, resolve(place).line) if place is not None else ("<unknown>", 0)
    warnings.warn_explicit(message, category, file, line)
