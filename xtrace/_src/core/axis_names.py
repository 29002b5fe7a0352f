"""Names of axes that users give, and what to write for those that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    import difflib


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


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the one of the names that `name` is likely to be meant for; None if it is like none of them."""
    # Only errors need it, and it takes a millisecond to load.
    near = difflib.get_close_matches(name, known, 1)
    return near[0] if near else None


def correction(name: object, known: Iterable[object]) -> str:
    """Return what to write for a name that is not known: the nearest one that is, or a list of them."""
    names = {str(n): n for n in known}
    near = nearest(name, names) if isinstance(name, str) else None
    if near is None and len(names) == 1:
        (near,) = names
    if near is not None:
        return f"write {abbreviate(names[near])}"
    return f"write one of {', '.join([abbreviate(n) for n in names.values()])}" if names else "there are none"
