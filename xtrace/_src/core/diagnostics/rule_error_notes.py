"""Notes on errors of rules: the operation, the types of its operands, and the user's line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.diagnostics.source import Position, describe, user_position
from xtrace._src.core.primitive import Primitive
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.core.diagnostics import excerpts


def note_rule(
    error: BaseException, rule: str, primitive: Primitive, operands: Sequence[Any], source: Position | None = None
) -> None:
    """Add to `error`, raised by the rule called `rule`, the operation with the types of its operands and its place.

    With `source`, the place of an equation, the note shows the lines there; otherwise the operation is being called,
    and they are in the traceback. Operations that hold jaxprs get no note: the notes of their equations say more.
    """
    if primitive.linearize is not None:
        return
    types = ", ".join(_type(x) for x in operands)
    at = f" {describe(user_position())}" if source is None else f"\n{format_source(source)}"
    error.add_note(f"in the {rule} rule of the operation {primitive.name} on ({types}), called at{at}")


def format_source(source: Position) -> str:
    """Return the place of an equation, and the user's lines there with the expression marked."""
    # Imported late: only errors need it.
    return excerpts.excerpt(source)


def _type(value: Any) -> str:
    aval = value.aval if hasattr(value, "aval") else aval_of(value) if is_array_like(value) else None
    return aval.str_short(True) if aval is not None else type(value).__name__
