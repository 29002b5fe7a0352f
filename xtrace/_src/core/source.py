"""Where in the user's code something happened.

While tracing only a code object and an instruction offset are kept (never a frame: its line moves on and it keeps
every local alive); files, lines and columns are looked up when somebody asks.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.xla.source_locations import Location


class Transformation(str):
    """A scope that is a transformation; its text, such as ``jvp``, is written around the scope that follows."""

    __slots__ = ()


class Annotation(str):
    """A scope that gives operations frontend attributes, which XLA's passes read; profiles do not show it.

    pairs: keys and texts; None takes the key of an outer annotation away.
    of_place: whether it says where the operations run, in the place of an outer annotation that does. inherited:
    whether the operations of functions that are called have it, too.
    """

    pairs: tuple[tuple[str, str | None], ...]
    of_place: bool
    inherited: bool

    def __new__(
        cls, pairs: tuple[tuple[str, str | None], ...], of_place: bool = False, inherited: bool = True
    ) -> Annotation:
        kind = ("place " if of_place else "") + ("" if inherited else "call ")
        made = super().__new__(cls, kind + ", ".join([f"{key}={text!r}" for key, text in pairs]))
        made.pairs, made.of_place, made.inherited = pairs, of_place, inherited
        return made


def annotations_in(scopes: Scopes) -> tuple[Annotation, ...]:
    """Return the annotations among scopes, outermost first."""
    return tuple([scope for scope in scopes if type(scope) is Annotation])


def merge_annotations(annotations: tuple[Annotation, ...]) -> dict[str, str]:
    """Return the attributes that annotations give together: of several for a key the innermost."""
    places = [a for a in annotations if a.of_place]
    merged: dict[str, str | None] = {}
    for annotation in annotations:
        if not annotation.of_place or annotation is places[-1]:
            merged.update(annotation.pairs)
    return {key: text for key, text in merged.items() if text is not None}


# Names of `named_scope`s, transformations, and annotations, outermost first.
Scopes = tuple[str, ...]

# A code object, an instruction offset in it, and the scopes around the recorded equation.
Position = tuple[CodeType, int, Scopes]


def place_within(scopes: Scopes, position: Position | None) -> Position | None:
    """Return `position` inside `scopes`, and inside those it is in already."""
    return position and (position[0], position[1], scopes + position[2])


def drop_scopes(position: Position | None) -> Position | None:
    """Return `position` outside of all scopes."""
    return position and (position[0], position[1], ())


def scopes_of(position: Position | None) -> Scopes:
    """Return the scopes that a position is in, outermost first."""
    return position[2] if position is not None else ()


def format_scopes(scopes: Scopes) -> str:
    """Return scopes as profiles show them: ``transpose(jvp(layer))/block``."""
    parts, around = [], ""
    for scope in scopes:
        if type(scope) is Annotation:
            continue
        if type(scope) is Transformation:
            around += f"{scope}("
        else:
            parts.append(around + scope + ")" * around.count("("))
            around = ""
    return "/".join([*parts, around + ")" * around.count("(")] if around else parts)


def path_inside(path: str, name: str) -> str:
    """Return the path of what is called `name` inside of `path`: in its last transformation, if that is empty."""
    start, empty, end = path.rpartition("()")
    if empty and not end.strip(")"):
        return f"{start}({name}){end}"
    return f"{path}/{name}" if path else name


# The folder of the package `xtrace`, from `xtrace/_src/core/source.py`.
_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
_internal: dict[str, bool] = {}
# The beginnings of names of files whose frames are left out: xtrace's, and those of libraries that ask for it.
left_out: list[str] = [_PACKAGE, "<xtrace "]


def is_internal(filename: str) -> bool:
    """Whether the file is one of xtrace's, code that it wrote, or one that is left out."""
    internal = _internal[filename] = filename.startswith(tuple(left_out))
    return internal


def is_of_package(filename: str) -> bool:
    """Whether the file is one of xtrace's, or code that it wrote."""
    return filename.startswith((_PACKAGE, "<xtrace "))


def leave_out(path: str) -> None:
    """Let operations that a file makes, or those in a folder, have the place of their caller."""
    if not isinstance(path, str):
        raise TypeError(f"register_exclusion: path must be the path of a file or a folder, got {abbreviate(path)}")
    if path not in left_out:
        left_out.append(path)
        _internal.clear()


class PositionHolder(NamedTuple):
    """What stands for an equation in `call_at`: the position of recorded equations."""

    source: Position | None


def call_at(equation: object, function: Callable[..., Any], *arguments: object) -> Any:
    """Return ``function(*arguments)``; equations recorded meanwhile have the position of `equation`."""
    return function(*arguments)


_CALL_AT = call_at.__code__


def user_position(depth: int = 1) -> Position | None:
    """Return the position of the innermost frame outside xtrace, `depth` frames up or further."""
    frame = sys._getframe(depth)
    internal = _internal
    while frame is not None:
        filename = frame.f_code.co_filename
        try:
            inside = internal[filename]
        except KeyError:
            inside = is_internal(filename)
        if not inside:
            return frame.f_code, frame.f_lasti, ()
        if frame.f_code is _CALL_AT:
            return frame.f_locals["equation"].source  # type: ignore[no-any-return]
        frame = frame.f_back  # type: ignore[assignment]
    return None


def position_of(frame: FrameType) -> Position | None:
    """Return where a frame is; None for those of xtrace, except where they repeat an equation."""
    if not is_internal(frame.f_code.co_filename):
        return frame.f_code, frame.f_lasti, ()
    return frame.f_locals["equation"].source if frame.f_code is _CALL_AT else None


def resolve(position: Position) -> Location:
    """Look up the file, line and columns of a position."""
    code, offset, _ = position
    line, end_line, column, end_column = next(
        itertools.islice(code.co_positions(), max(offset, 0) // 2, None), (None, None, None, None)
    )
    first = line or code.co_firstlineno
    return Location(code.co_filename, _function_of(code), first, end_line or first, column or 0, end_column or 0)


# Before Python 3.12 they are functions of their own.
_COMPREHENSIONS = frozenset(["<listcomp>", "<setcomp>", "<dictcomp>"])


def _function_of(code: CodeType) -> str:
    """Return the name of the function that the code is of, as users see it: a comprehension belongs to its function."""
    names = [name for name in code.co_qualname.split(".") if name not in _COMPREHENSIONS and name != "<locals>"]
    return code.co_name if code.co_name not in _COMPREHENSIONS else names[-1] if names else "<module>"


def describe(position: Position | None) -> str:
    """``FILE:LINE (function)``, or a phrase saying the place is unknown."""
    return str(resolve(position)) if position is not None else "an unknown place"
