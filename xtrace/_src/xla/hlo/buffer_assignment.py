"""XLA's buffer assignment: the memory of the values of a compiled program, read from its message.

Source of the numbers of fields: the messages BufferAssignmentProto, BufferAllocationProto and LogicalBufferProto of
openxla/xla, xla/service/hlo.proto.
"""

from __future__ import annotations

from typing import NamedTuple

from xtrace._src.xla.hlo.protobuf import fields, integers, repeated


class Slot(NamedTuple):
    """The part of an allocation with the bytes of a value."""

    allocation: int
    offset: int
    size: int


class BufferAssignment(NamedTuple):
    """The slot of each value, and the allocations with temporaries only.

    The key of a value is the number of its instruction and its index in a tuple.
    """

    slots: dict[tuple[int, tuple[int, ...]], Slot]
    temporary: frozenset[int]


def read_assignment(message: bytes) -> BufferAssignment:
    """Return the assignment in the bytes of a BufferAssignmentProto."""
    values = {}
    for part in repeated(message, 1):
        value = dict(fields(part))
        values[value.get(1, 0)] = _definition(value.get(3, b""))
    slots, temporary = {}, set()
    for part in repeated(message, 3):
        allocation = dict(fields(part))
        number = allocation.get(1, 0)
        if not any(allocation.get(flag) for flag in _NOT_TEMPORARY):
            temporary.add(number)
        for content in repeated(part, 9):
            each = dict(fields(content))
            slots[values[each.get(1, 0)]] = Slot(number, each.get(2, 0), each.get(3, 0))
    return BufferAssignment(slots, frozenset(temporary))


# The fields of other allocations: of one thread, of a parameter, of a result, of a constant.
_NOT_TEMPORARY = (3, 5, 7, 12)


def _definition(location: bytes) -> tuple[int, tuple[int, ...]]:
    values = dict(fields(location))
    return values.get(4, 0), tuple(integers(values.get(3, b"")))
