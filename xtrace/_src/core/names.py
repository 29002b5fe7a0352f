"""Names of axes that users give, and what to write for those that are not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from xtrace._src.core.abbreviation import abbreviate


def name_tuple(function: str, argument: str, names: Any) -> tuple[Any, ...]:
    """Return names as a tuple; a string is one. TypeError for no sequence, or an element that no table can have."""
    try:
        given = (names,) if isinstance(names, str) else tuple(names)
        hash(given)
    except TypeError:
        raise TypeError(
            f"{function}: {argument} must be a name or a sequence of names such as ('x', 'y'), got {abbreviate(names)}"
        ) from None
    return given


def correction(name: object, known: Iterable[object]) -> str:
    """Return what to write for a name that is not known: the nearest one that is, or a list of them."""
    names = {str(n): n for n in known}
    near = difflib.get_close_matches(name, names, 1) if isinstance(name, str) else []
    near = near or list(names)[:1] * (len(names) == 1)
    if near:
        return f"write {abbreviate(names[near[0]])}"
    return f"write one of {', '.join([abbreviate(n) for n in names.values()])}" if names else "there are none"
