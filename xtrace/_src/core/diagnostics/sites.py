"""The place in the user's program where an error is raised: its expression, and the meaning of names there."""

from __future__ import annotations

import builtins
import sys
from types import FrameType, ModuleType
from typing import Any

from xtrace._src.core.diagnostics.excerpts import Expression, excerpt, expression_at, marked_span
from xtrace._src.core.diagnostics.source import Position, calling_frames, find_position, is_internal, resolve
from xtrace._src.xla.source_locations import Location

# Libraries whose callers are at fault: the libraries themselves do not know traced values.
_LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "pandas", "matplotlib", "seaborn", "sklearn", "PIL"}


class Site:
    """The place where an error is raised. It holds a frame, and must not outlive the composition of the message."""

    def __init__(self, frame: FrameType | None) -> None:
        self.frame = frame
        self.position: Position | None = find_position(frame) if frame is not None else None
        self.expression: Expression | None = expression_at(self.position) if self.position is not None else None

    @classmethod
    def here(cls) -> Site:
        """Return the innermost place outside xtrace and outside libraries that do not know traced values."""
        innermost = None
        for frame in calling_frames():
            if find_position(frame) is not None and not is_internal(frame.f_code.co_filename):
                innermost = innermost or frame
                if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _LIBRARIES:
                    return cls(frame)
        return cls(innermost)

    def excerpt(self) -> str:
        """Return the lines of the place with its expression marked; nothing if the place is unknown."""
        return excerpt(self.position) if self.position is not None else ""

    def contains(self, position: Position | None) -> bool:
        """Whether a position is in the marked expression."""
        if position is None or self.position is None:
            return False
        here, there = resolve(self.position), resolve(position)
        if here.file != there.file or not there.end_column:
            return False
        outer, inner = marked_span(self.position), marked_span(position)
        if outer is None or inner is None:
            return _begin(here) <= _begin(there) and _end(there) <= _end(here)
        return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]

    def lookup(self, name: str) -> Any:
        """Return the value of a name here, or None."""
        if self.frame is None:
            return None
        for scope in (self.frame.f_locals, self.frame.f_globals, vars(builtins)):
            if name in scope:
                return scope[name]
        return None

    def alias(self, module: str) -> str:
        """Return the name of a module here, such as ``jnp`` for ``xtrace.numpy``."""
        parent, _, last = module.rpartition(".")
        if self.frame is not None:
            for scope in (self.frame.f_globals, self.frame.f_locals):
                for name, value in list(scope.items()):
                    if isinstance(value, ModuleType) and value.__name__ == module:
                        return name
        return f"{self.alias(parent)}.{last}" if parent else last

    def find_function_name(self, name: str) -> str:
        """Return the name of a function of xtrace's top level here: ``jit``, or ``xtrace.jit``."""
        function = self.lookup(name)
        own = getattr(function, "__module__", None)
        known = isinstance(own, str) and own.partition(".")[0] == "xtrace"
        return name if known else f"{self.alias('xtrace')}.{name}"


def _begin(location: Location) -> tuple[int, int]:
    return location.line, location.column


def _end(location: Location) -> tuple[int, int]:
    return location.end_line, location.end_column
