"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from xtrace._src.core.source import is_internal, resolve, user_position


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with `message` at the line of the innermost frame outside xtrace."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def warn_each_time(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with `message` at the user's line, also if that line has had this warning before."""
    place = user_position()
    file, line = (resolve(place).file, resolve(place).line) if place is not None else ("<unknown>", 0)
    warnings.warn_explicit(message, category, file, line)
