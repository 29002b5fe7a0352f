"""The origins of equations for programs that walk jaxprs: the scopes around an equation, and the user's line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.positions import Annotation, Position, Scopes, Transformation, format_scopes, resolve
from xtrace._src.core.value_objects import EqualByKey
from xtrace._src.xla.source_locations import Location


@dataclass(frozen=True)
class Scope:
    """A named scope in a `NameStack`."""

    name: str


@dataclass(frozen=True)
class Transform:
    """A transformation in a `NameStack`."""

    name: str


class NameStack(EqualByKey):
    """The names of the scopes and transformations around an equation, outermost first.

    Args:
        stack: the `stack` of another NameStack.

    Example:
        >>> from xtrace.extend.source_info_util import NameStack
        >>> str(NameStack().extend("model").transform("jvp").extend("layer"))
        'model/jvp(layer)'
    """

    __slots__ = ("scopes",)

    def __init__(self, stack: Iterable[Scope | Transform] = ()) -> None:
        self.scopes: Scopes = tuple([
            Transformation(each.name) if isinstance(each, Transform) else str(each.name) for each in stack
        ])

    @property
    def stack(self) -> tuple[Scope | Transform, ...]:
        """The scopes and transformations, outermost first; objects with a `name`."""
        return tuple([
            Transform(str(each)) if type(each) is Transformation else Scope(each)
            for each in self.scopes if type(each) is not Annotation
        ])

    def extend(self, name: str) -> NameStack:
        """Return the names with a further innermost scope."""
        return name_stack((*self.scopes, check_scope_name(name)))

    def transform(self, transform_name: str) -> NameStack:
        """Return the names with a further innermost transformation."""
        return name_stack((*self.scopes, Transformation(check_scope_name(transform_name))))

    def __add__(self, other: NameStack) -> NameStack:
        return name_stack(self.scopes + other.scopes) if isinstance(other, NameStack) else NotImplemented

    def __getitem__(self, index: slice) -> NameStack:
        return NameStack(self.stack[index])

    def __len__(self) -> int:
        return len(self.stack)

    def _key(self) -> Any:
        return self.stack

    def __str__(self) -> str:
        return format_scopes(self.scopes)

    def __repr__(self) -> str:
        return f"NameStack(stack={self.stack})"


def name_stack(scopes: Scopes) -> NameStack:
    """Return scopes as a `NameStack`."""
    made = NameStack()
    made.scopes = scopes
    return made


def check_scope_name(name: object, *, function: str = "") -> str:
    """Return the name of a scope; TypeError unless it is a string."""
    if not isinstance(name, str):
        raise TypeError(
            f"{function or called_function()}: the name of a scope must be a string, got {abbreviate(name)}"
        )
    return name


class Traceback(Location):
    """The user's line, with its position."""

    position: Position


@dataclass(frozen=True)
class SourceInfo:
    """The origin of an equation.

    Args:
        traceback: the user's line, whose text is its file, number and function; None if it is not known.
        name_stack: the scopes around it.

    Example:
        >>> equation = xtrace.make_jaxpr(xtrace.named_call(jnp.sin, name="wave"))(1.0).eqns[0]
        >>> str(equation.source_info.name_stack)
        'wave'
    """

    traceback: Traceback | None
    name_stack: NameStack

    def replace(self, **changes: Any) -> SourceInfo:
        """Return a copy with the given fields changed."""
        return replace(self, **changes)

    @property
    def position(self) -> Position | None:
        """The position in the form of equations; None if the line is not known."""
        if self.traceback is None:
            return None
        return (*self.traceback.position[:2], self.name_stack.scopes)


def get_position(origin: SourceInfo | Position | None) -> Position | None:
    """Return the position in the form of equations."""
    return origin.position if isinstance(origin, SourceInfo) else origin


def source_info(position: Position | None, scopes: Scopes = ()) -> SourceInfo:
    """Return the user's line and the scopes of a position; for None, no line and the given `scopes`."""
    if position is None:
        return SourceInfo(None, name_stack(scopes))
    traceback = Traceback(*resolve(position))
    traceback.position = position
    return SourceInfo(traceback, name_stack(position[2]))
