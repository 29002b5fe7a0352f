"""Traced values that outlived their trace: which, made where, by which function, and what holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xtrace.core.errors import UnexpectedTracerError
from xtrace.core.ir import DebugInfo
from xtrace.core.source import Position, describe, resolve

if TYPE_CHECKING:
    from xtrace.core.trace import Tracer


def unexpected_tracer(
    tracer: Tracer, made_at: Position | None, debug_info: DebugInfo | None, holder: str = ""
) -> UnexpectedTracerError:
    """The error of a tracer used after its trace ended, or found alive when it ended; `holder` says what holds it."""
    where = f" on line {describe(made_at)}" if made_at is not None else ""
    owner = f"the function {debug_info}" if debug_info is not None else f"a function under {tracer.owner!r}"
    made = f", made{where}," if where else ""
    leaker = f" ({resolve(made_at).function})" if made_at is not None else ""
    return UnexpectedTracerError(
        f"Encountered an unexpected tracer. A traced value of type {tracer.aval.str_short()}{made} "
        f"was used after the trace of {owner} had ended: it leaked{leaker} through a side effect, such as a global, "
        "an attribute or a list outside the function.\n"
        "Return the value from the function instead of storing it. "
        "`with xtrace.checking_leaks():` around the call finds the leak where it happens."
    )
