"""The kinds of memory that arrays are in, and the memory of results."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any


class MemorySpace(enum.Enum):
    """A kind of memory: the device's own, the host's, or `Any` in the type of a value whose memory is not known yet.

    Example:
        >>> xtrace.memory.Space.Device
        MemorySpace.Device
    """

    Device = 1
    Host = 2
    Any = 3

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__

    @property
    def kind(self) -> str:
        """XLA's name of the kind; ValueError for `Any`, which names no memory of a device."""
        if self is MemorySpace.Any:
            raise ValueError(
                "memory.Space.Any stands for an unknown memory, and data needs a known one; write "
                "memory.Space.Device or memory.Space.Host"
            )
        return "device" if self is MemorySpace.Device else "pinned_host"


def find_memory_space(kind: str | None) -> MemorySpace:
    """Return the memory space of XLA's name of a kind: the host's for ``pinned_host``, the device's for all others."""
    return MemorySpace.Host if kind == MemorySpace.Host.kind else MemorySpace.Device


def common_memory_space(operation: str, avals: Sequence[Any]) -> MemorySpace:
    """Return the one memory of the operands of types `avals`; scalars may be in any, the device's if they differ.

    Raises ValueError, which names the operation, if the operands are in several memories.
    """
    spaces = {a.memory_space for a in avals if a.shape}
    if len(spaces) > 1:
        raise ValueError(
            f"{operation}: all operands must be in one memory, got {', '.join([a.str_short(True) for a in avals])}; "
            "move one of them with xtrace.device_put(x, xtrace.memory.Space.Device)"
        )
    spaces = spaces or {a.memory_space for a in avals}
    return spaces.pop() if len(spaces) == 1 else MemorySpace.Device
