"""Values as messages show them: on one line, and short."""

from __future__ import annotations

import reprlib
from typing import Any

_WIDTH = 200
_ELEMENTS = 20


class _Short(reprlib.Repr):
    """Shows the first items of containers, and large arrays by their types, also inside containers."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = _ELEMENTS
        self.maxstring = self.maxother = self.maxlong = _WIDTH

    def repr1(self, x: Any, level: int) -> str:
        # On a class, shape and dtype are descriptors, not values.
        shape = None if isinstance(x, type) else getattr(x, "shape", None)
        if isinstance(shape, tuple) and hasattr(x, "dtype") and getattr(x, "size", 0) > _ELEMENTS:
            return f"{type(x).__name__} of type {x.dtype}[{','.join(map(str, shape))}]"
        return super().repr1(x, level)


_short = _Short()


def abbreviate(value: object) -> str:
    """Return the repr of `value` on one line, shortened; a large array gives its class, dtype and shape.

    A value whose own repr fails gives its class.
    """
    try:
        text = " ".join(_short.repr(value).split())
    except Exception:
        text = f"<{type(value).__name__} object>"
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
