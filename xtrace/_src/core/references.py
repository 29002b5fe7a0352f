"""The class of references: arguments are recognized as references without loading the operations on them."""

from __future__ import annotations

from typing import Any


class Reference:
    """A reference in the hands of a user; `target` is its value in traces: a cell, or a tracer of an `AbstractRef`."""

    __slots__ = ("target", "__weakref__")

    target: Any
