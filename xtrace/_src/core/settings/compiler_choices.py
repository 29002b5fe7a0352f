"""Choices about compilation: the effort of XLA, the way of compiling, and the inlining of calls."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings.options import one_of, option

__all__ = ["CompilerEffortLevel", "Inline"]

_WAYS = ("full", "tiered", "quick")


@option("full", one_of(*_WAYS), name="xtrace_compilation", keyed=True)
def compilation(new_val: str | None) -> AbstractContextManager[None]:
    """'tiered' runs a quickly compiled program until a background thread has compiled it fully; 'quick' keeps that one.

    """
    ...


class CompilerEffortLevel(enum.Enum):
    """How much work XLA spends on making programs fast, or on saving their memory.

    The settings ``jax_optimization_level`` and ``jax_memory_fitting_level`` take a level, or its name.

    Example:
        >>> xtrace.CompilerEffortLevel.O2
        <CompilerEffortLevel.O2: 29>
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Inline(enum.Enum):
    """When a call of a jitted function is inlined in the caller, for `jit`'s parameter ``inline``.

    ``JAX_EARLY``: while the caller is traced, like ``inline=True``. ``JAX_LATE``: when the caller is lowered; the
    caller's jaxpr has the call. ``XLA_EARLY``, ``XLA_LATE``: the program has the call, with a mark for XLA. ``AUTO``:
    XLA decides, like ``inline=False``.

    Example:
        >>> callee = xtrace.jit(jnp.sin, inline=xtrace.Inline.JAX_LATE)
        >>> "call" in xtrace.jit(lambda x: callee(x)).lower(1.0).as_text()
        False
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def parse_inline(choice: object) -> bool | Inline:
    """Return jit's argument ``inline``: a bool says whether calls are inlined while tracing, an `Inline` when else."""
    if isinstance(choice, Inline):
        return {Inline.JAX_EARLY: True, Inline.AUTO: False}.get(choice, choice)
    return bool(choice)


def check_compilation(choice: str | None) -> str | None:
    """Return jit's argument ``compilation``; None is the setting's value. ValueError for an unknown way."""
    if choice is not None and choice not in _WAYS:
        raise ValueError(
            f"jit: compilation is {', '.join(map(repr, _WAYS))}, or None for the setting xtrace_compilation; got "
            f"{abbreviate(choice)}"
        )
    return choice
