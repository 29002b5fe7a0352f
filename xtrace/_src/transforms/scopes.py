"""Scopes: what is recorded in a block is inside of a `named_scope` or a transformation, as profiles show it.

A trace that records has the scopes of the block that runs now, and each equation takes them with it. Equation
templates have none of their own: their equations get the scopes of the trace that they are instantiated in.
"""

from __future__ import annotations

from xtrace._src.core.source import Scopes, Transformation
from xtrace._src.core.trace import current_trace
from xtrace._src.transforms.jvp import JVPTrace
from xtrace._src.transforms.stage import StagingTrace

JVP, TRANSPOSE, VMAP = Transformation("jvp"), Transformation("transpose"), Transformation("vmap")


class scope:
    """A block whose operations are inside of the scope `name`, in every trace that records them."""

    __slots__ = ("name", "before")

    def __init__(self, name: str) -> None:
        self.name = name
        self.before: list[tuple[StagingTrace, Scopes]] = []

    def __enter__(self) -> None:
        for each in current_trace.get().enclosing():
            # Linearizing has a tape beside its parent.
            recorder = each.rules if isinstance(each, JVPTrace) else each
            if isinstance(recorder, StagingTrace):
                self.before.append((recorder, recorder.scopes))
        for recorder, scopes in self.before:
            recorder.scopes = (*scopes, self.name)

    def __exit__(self, *_: object) -> None:
        for recorder, scopes in self.before:
            recorder.scopes = scopes
