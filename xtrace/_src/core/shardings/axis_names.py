"""Names of axes that users give."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate


def name_tuple(function: str, argument: str, names: Any) -> tuple[Any, ...]:
    """Return names as a tuple; a string is one name. TypeError for no sequence, or an unhashable element."""
    try:
        given = (names,) if isinstance(names, str) else tuple(names)
        hash(given)
    except TypeError:
        raise TypeError(
            f"{function}: {argument} must be a name or a sequence of names such as ('x', 'y'), got {abbreviate(names)}"
        ) from None
    return given
