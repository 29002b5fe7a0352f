"""The class of references, by which arguments that are one are found without loading the operations on them."""

from __future__ import annotations

from typing import Any


class Reference:
    """A reference as users hold it; `target` is the value that traces know: a cell, or a tracer of an `AbstractRef`."""

    __slots__ = ("target", "__weakref__")

    target: Any
