"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics.abbreviation import abbreviate

with late_modules(globals()):
    import difflib


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`; None if no name is similar."""
    # Only errors need difflib, and it takes a millisecond to load.
    near = difflib.get_close_matches(name, known, 1)
    return near[0] if near else None


def suggest_name(name: object, known: Iterable[object]) -> str:
    """Return advice for an unknown name: to write the most similar known name, or one of a list of all."""
    names = {str(n): n for n in known}
    near = nearest_name(name, names) if isinstance(name, str) else None
    if near is None and len(names) == 1:
        (near,) = names
    if near is not None:
        return f"write {abbreviate(names[near])}"
    return f"write one of {', '.join([abbreviate(n) for n in names.values()])}" if names else "there are none"
