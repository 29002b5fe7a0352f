"""Large constants of a program, which are hidden arguments: leading arguments that the caller does not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import AbstractToken, ShapedArray, aval_of_value
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Var
from xtrace._src.core.settings import config
from xtrace._src.transforms.dead_code import find_read_atoms

# Larger constants are arguments of the program, because text is slow to parse, and XLA spends long folding it.
HIDDEN_ARGUMENT_BYTES = 1024


def is_hidden(aval: ShapedArray) -> bool:
    """Whether a constant of type `aval` is a hidden argument: it is large, or a token."""
    return type(aval) is AbstractToken or aval.size * aval.dtype.itemsize > HIDDEN_ARGUMENT_BYTES


def split_constants(closed: ClosedJaxpr, hides: bool) -> tuple[list[tuple[Var, Any]], list[tuple[Var, Any]]]:
    """Return the constants that a program reads, with their variables: those that are hidden, and the others.

    hides: whether large constants are hidden; tokens always are.
    """
    hidden: list[tuple[Var, Any]] = []
    others: list[tuple[Var, Any]] = []
    read = find_read_atoms(closed.jaxpr) if closed.consts else set()
    for variable, constant in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        if variable in read:
            aval = aval_of_value(constant)
            is_argument = is_hidden(aval) and (hides or type(aval) is AbstractToken)
            (hidden if is_argument else others).append((variable, constant))
    return hidden, others


def warn_of_large_constants(constants: Sequence[Any], name: str) -> None:
    """Warn if a program closes over more bytes than the settings allow."""
    allowed = config.captured_constants_warn_bytes.value
    avals = sorted([aval_of_value(x) for x in constants], key=lambda a: -a.size * a.dtype.itemsize)
    total = sum([a.size * a.dtype.itemsize for a in avals])
    if allowed is not None and 0 <= allowed < total:
        types = ", ".join([a.str_short(short_dtypes=False) for a in avals[:5]])
        warn_user(
            f"A large amount of constants were captured: {name} closes over {total} bytes in {len(avals)} arrays, the "
            f"largest being {types}. Pass them as arguments; the setting jax_captured_constants_warn_bytes says how "
            "many bytes are allowed, -1 any number"
        )
