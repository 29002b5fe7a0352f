"""Donation: the memory of a donated input is taken over by a result of the same type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import AbstractToken
from xtrace._src.core.jaxprs.ir import Jaxpr
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.shardings.memory_layout import Layout, Layouts


def pair_donations(jaxpr: Jaxpr, donated: Sequence[bool], layouts: Layouts | None = None) -> dict[int, int]:
    """Pair each donated input with the next result of the same shape, dtype and layout, which takes over its memory.

    Raises ValueError if XLA chooses the layout of one of the two, and not of the other.
    """
    if not any(donated):
        return {}
    free: dict[Any, list[int]] = {}
    for j in reversed(range(len(jaxpr.outvars))):
        aval = jaxpr.outvars[j].aval
        if aval.memory_space is MemorySpace.Device:
            free.setdefault((aval.shape, aval.dtype), []).append(j)
    pairs = {}
    for i, variable in enumerate(jaxpr.invars):
        aval = variable.aval
        # Only memory of the device is donated: arrays in the host's memory carry another attribute.
        fitting = free.get((aval.shape, aval.dtype)) if aval.memory_space is MemorySpace.Device else None
        # A token has no memory to donate.
        if donated[i] and fitting and type(aval) is not AbstractToken:
            result = fitting.pop()
            if layouts is None or _agree_in_layout(layouts.inputs[i], layouts.results[result]):
                pairs[i] = result
    return pairs


def _agree_in_layout(donated: Any, result: Any) -> bool:
    """Return whether a donated input and a result have the same layout; ValueError if XLA chooses only one of them."""
    if (donated is Layout.AUTO) != (result is Layout.AUTO):
        side, argument = ("result", "out_shardings") if donated is Layout.AUTO else ("donated argument", "in_shardings")
        raise ValueError(
            f"Input layout being donated was {donated} while output layout was {result}: XLA would choose the layout "
            f"of one of them alone, and could not reuse the memory. Give Format(Layout.AUTO) in {argument} for the "
            f"{side}, too, or leave donate_argnums out"
        )
    return bool(donated == result)
