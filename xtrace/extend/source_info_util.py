"""Places of operations in a user's code (``jax.extend.source_info_util``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from xtrace._src.core.diagnostics import source
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.source import Transformation
from xtrace._src.core.jaxprs.source_info import (
    NameStack,
    SourceInfo,
    Traceback,
    check_scope_name,
    name_stack,
    source_info,
)
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.transforms.scopes import current_scopes, only_scopes, recorders, scope

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack", "summarize",
    "transform_name_stack", "user_context",
]


def register_exclusion(path: str) -> None:
    """Register an exclusion: operations in a library's file get the place of the line that called it.

    Args:
        path: the path of the file, or of a folder.

    Raises:
        TypeError: `path` is not a string.

    Example:
        >>> xtrace.extend.source_info_util.register_exclusion("/opt/library")
    """
    source.register_exclusion(path)


def new_name_stack(name: str = "") -> NameStack:
    """Return the names of one scope or of no scope.

    Args:
        name: the name of the scope; the empty string for no scope.

    Returns:
        A `NameStack`.

    Raises:
        TypeError: `name` is not a string.

    Example:
        >>> xtrace.extend.source_info_util.new_name_stack("model")
        NameStack(stack=(Scope(name='model'),))
    """
    return name_stack((name,) if check_scope_name(name) else ())


def current_name_stack() -> NameStack:
    """Return the names of the current scopes and transformations.

    Returns:
        A `NameStack`.

    Example:
        >>> with xtrace.named_scope("model"):
        ...     str(xtrace.extend.source_info_util.current_name_stack())
        'model'
    """
    return name_stack(current_scopes())


def new_source_info() -> SourceInfo:
    """Return an unknown place.

    Returns:
        A `SourceInfo`.

    Example:
        >>> xtrace.extend.source_info_util.new_source_info()
        SourceInfo(traceback=None, name_stack=NameStack(stack=()))
    """
    return source_info(None)


def current() -> SourceInfo:
    """Return the current place: the place of an equation recorded now.

    Returns:
        A `SourceInfo`.

    Example:
        >>> with xtrace.named_scope("model"):
        ...     str(xtrace.extend.source_info_util.current().name_stack)
        'model'
    """
    scopes = current_scopes()
    return source_info(source.add_scopes(scopes, source.user_position(2)), scopes)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Describe a place in one line, for messages.

    Args:
        source_info: the place.
        num_frames: not used; a place has one line.

    Returns:
        The file, the line, the column and the function; the empty string for an unknown place.

    Raises:
        TypeError: `source_info` is not a `SourceInfo`.

    Example:
        >>> equation = xtrace.make_jaxpr(lambda x: x + 1.0)(1.0).eqns[0]
        >>> xtrace.extend.source_info_util.summarize(equation.source_info).endswith("(<lambda>)")
        True
    """
    if not isinstance(source_info, SourceInfo):
        raise TypeError(f"summarize: source_info must be the source_info of an equation, got {abbreviate(source_info)}")
    line = source_info.traceback
    return "" if line is None else f"{line.file}:{line.line}:{line.column} ({line.function})"


class extend_name_stack:
    """A block of operations in a scope, like `xtrace.named_scope`.

    Args:
        name: the name of the scope.

    Example:
        >>> from xtrace.extend import source_info_util
        >>> with source_info_util.extend_name_stack("model") as names:
        ...     str(names)
        'model'
    """

    __slots__ = ("name", "_scope")

    def __init__(self, name: str) -> None:
        self.name = check_scope_name(name, function=type(self).__name__)

    def __enter__(self) -> NameStack:
        self._scope = self._make_scope()
        self._scope.__enter__()
        return current_name_stack()

    def _make_scope(self) -> scope:
        return scope(self.name)

    def __exit__(self, *_: object) -> None:
        self._scope.__exit__()


class transform_name_stack(extend_name_stack):
    """A block of operations inside a transformation.

    Args:
        name: the name of the transformation.

    Example:
        >>> from xtrace.extend import source_info_util
        >>> with source_info_util.transform_name_stack("double"), xtrace.named_scope("model"):
        ...     str(source_info_util.current_name_stack())
        'double(model)'
    """

    __slots__ = ()

    def _make_scope(self) -> scope:
        return scope(Transformation(self.name))


class set_name_stack:
    """A block of operations in the scopes of a `NameStack`, and in no others.

    Args:
        name_stack: the names.

    Example:
        >>> from xtrace.extend import source_info_util
        >>> with source_info_util.set_name_stack(source_info_util.new_name_stack("model")):
        ...     str(source_info_util.current_name_stack())
        'model'
    """

    __slots__ = ("name_stack", "_scope")

    def __init__(self, name_stack: NameStack) -> None:
        if not isinstance(name_stack, NameStack):
            raise TypeError(f"set_name_stack: name_stack must be a NameStack, got {abbreviate(name_stack)}")
        self.name_stack = name_stack

    def __enter__(self) -> None:
        self._scope = only_scopes(*self.name_stack.scopes)
        self._scope.__enter__()

    def __exit__(self, *_: object) -> None:
        self._scope.__exit__()


@contextlib.contextmanager
def reset_name_stack() -> Iterator[None]:
    """Leave all scopes for a block of operations.

    Yields:
        None.

    Example:
        >>> from xtrace.extend import source_info_util
        >>> with xtrace.named_scope("model"), source_info_util.reset_name_stack():
        ...     len(source_info_util.current_name_stack())
        0
    """
    with only_scopes():
        yield


class user_context:
    """A block of operations with a given place.

    Args:
        traceback: the ``source_info.traceback`` of an equation; None for the operations' own lines.
        name_stack: the scopes of the operations; None for their own scopes.

    Example:
        >>> from xtrace.extend import source_info_util
        >>> names = source_info_util.new_name_stack("model")
        >>> def double(x):
        ...     with source_info_util.user_context(None, name_stack=names): return x * 2.0
        >>> str(xtrace.make_jaxpr(double)(1.0).eqns[0].source_info.name_stack)
        'model'
    """

    __slots__ = ("traceback", "name_stack", "_starts")

    def __init__(self, traceback: Traceback | None, *, name_stack: NameStack | None = None) -> None:
        if traceback is not None and not isinstance(traceback, Traceback):
            raise TypeError(
                "user_context: traceback must be None or the source_info.traceback of an equation, got "
                f"{abbreviate(traceback)}"
            )
        if name_stack is not None and not isinstance(name_stack, NameStack):
            raise TypeError(f"user_context: name_stack must be None or a NameStack, got {abbreviate(name_stack)}")
        self.traceback, self.name_stack = traceback, name_stack

    def __enter__(self) -> None:
        self._starts = [(recorder, len(recorder.equations)) for recorder in recorders()]

    def __exit__(self, *_: object) -> None:
        # Equations get the place at the end of the block, so that recording stays fast.
        for recorder, start in self._starts:
            for equation in recorder.equations[start:]:
                place = equation.source if self.traceback is None else self.traceback.position
                own = source.get_scopes(equation.source)
                scopes = own if self.name_stack is None else self.name_stack.scopes
                equation.source = source.add_scopes(scopes, source.drop_scopes(place))


_make_public(globals(), __all__)
