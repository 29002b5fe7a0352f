"""Scopes: the `named_scope`s and transformations around equations, which profiles show.

A recording trace has the scopes of the current block, and puts them into each equation. Equation templates have no
scopes; their equations get those of the trace in which they are instantiated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics.positions import (
    Annotation,
    PositionHolder,
    Scopes,
    Transformation,
    call_at,
    drop_scopes,
    get_scopes,
    user_position,
)
from xtrace._src.core.settings import config
from xtrace._src.core.trace import current_trace
from xtrace._src.transforms.stage import StagingTrace

with late_modules(globals()):
    from xtrace._src.transforms.jvp import JVPTrace
    from xtrace._src.transforms.linearize import Tape

_Result = TypeVar("_Result")

JVP, TRANSPOSE, VMAP = Transformation("jvp"), Transformation("transpose"), Transformation("vmap")


# The scopes of operations outside of all recorded programs.
_outside: ContextVar[Scopes] = ContextVar("scopes outside of programs", default=())


class scope:
    """A block that adds the scopes `names`, outermost first, to its operations, in every trace that records them."""

    __slots__ = ("names", "before", "outside")

    def __init__(self, *names: str) -> None:
        self.names = names

    def _inside(self, scopes: Scopes) -> Scopes:
        return scopes + self.names

    def __enter__(self) -> None:
        self.before = [(recorder, recorder.scopes) for recorder in recorders()]
        for recorder, scopes in self.before:
            recorder.scopes = self._inside(scopes)
        is_outside = not self.before or isinstance(self.before[-1][0], Tape)
        self.outside = _outside.get() if is_outside else None
        if self.outside is not None:
            try:
                _outside.set(self._inside(self.outside))
            except BaseException:  # An interrupt of the user comes after the call.
                _outside.set(self.outside)
                raise

    def __exit__(self, *_: object) -> None:
        for recorder, scopes in self.before:
            recorder.scopes = scopes
        if self.outside is not None:
            _outside.set(self.outside)


class only_scopes(scope):
    """A block whose operations have the scopes `names` and no others."""

    __slots__ = ()

    def _inside(self, scopes: Scopes) -> Scopes:
        return self.names


def recorders() -> Iterator[StagingTrace]:
    """Yield the traces that now record operations, innermost first."""
    for each in current_trace.get().enclosing():
        # A trace that linearizes records on a tape, which is not among the enclosing traces.
        recorder = each.rules if isinstance(each, JVPTrace) else each
        if isinstance(recorder, StagingTrace):
            yield recorder


def current_scopes() -> Scopes:
    """Return the current scopes of operations: in the recorded program, or outside of programs."""
    for trace in current_trace.get().enclosing():
        if type(trace) is StagingTrace:
            return trace.scopes
    return _outside.get()


@contextlib.contextmanager
def annotate(annotation: Annotation) -> Iterator[None]:
    """Annotate the operations that a block records, and all operations of programs that it runs or lowers."""
    with scope(annotation), config.frontend_annotations((*(config.frontend_annotations.value or ()), annotation)):
        yield


def call_in_scopes(function: Callable[..., _Result], *arguments: object) -> _Result:
    """Return ``function(*arguments)``, called in the scopes of the equation that is now evaluated or transposed.

    For rules that evaluate jaxprs in the place of an equation, or call functions of users: the equations recorded there
    have their own positions, which lack the scopes of the equation.
    """
    position = user_position(2)
    with scope(*get_scopes(position)):
        return call_at(PositionHolder(drop_scopes(position)), function, *arguments)


def get_program_scopes() -> Scopes:
    """Return the current scopes of the recorded program, below any tapes."""
    return next((trace.scopes for trace in current_trace.get().enclosing() if type(trace) is StagingTrace), ())


class program_scopes:
    """A block in which the current tape, if there is one, records with the scopes of the program around it.

    They replace the scopes of the tape, as in JAX's custom derivatives; with `below`, they follow them, as in its
    checkpoints.
    """

    __slots__ = ("tape", "before", "below")

    def __init__(self, below: bool = False) -> None:
        self.below = below

    def __enter__(self) -> None:
        self.tape = next((t for t in current_trace.get().enclosing() if isinstance(t, StagingTrace)), None)
        if isinstance(self.tape, Tape):
            self.before = self.tape.scopes
            around = get_program_scopes()
            self.tape.scopes = self.before + around + get_scopes(user_position(2)) if self.below else around

    def __exit__(self, *_: object) -> None:
        if isinstance(self.tape, Tape):
            self.tape.scopes = self.before
