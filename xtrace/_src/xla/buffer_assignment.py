"""XLA's buffer assignment: the memory of the values of a compiled program, read from its message.

Source of the numbers of fields: the messages BufferAssignmentProto, BufferAllocationProto and LogicalBufferProto of
openxla/xla, xla/service/hlo.proto.
"""

from __future__ import annotations

from typing import NamedTuple

from xtrace._src.xla.protobuf import fields, integers


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
    values: dict[int, tuple[int, tuple[int, ...]]] = {}
    slots, temporary = {}, set()
    for field, part in fields(message):
        if field == 1:
            value = dict(fields(part))
            values[value.get(1, 0)] = _definition(value.get(3, b""))
        elif field == 3:
            number, flags, assigned = 0, set(), []
            for name, content in fields(part):
                if name == 1:
                    number = content
                elif name == 9:
                    assigned.append(dict(fields(content)))
                elif name in _NOT_TEMPORARY and content:
                    flags.add(name)
            if not flags:
                temporary.add(number)
            for each in assigned:
                slots[values[each.get(1, 0)]] = Slot(number, each.get(2, 0), each.get(3, 0))
    return BufferAssignment(slots, frozenset(temporary))


# The fields of other allocations: of one thread, of a parameter, of a result, of a constant.
_NOT_TEMPORARY = frozenset((3, 5, 7, 12))


def _definition(location: bytes) -> tuple[int, tuple[int, ...]]:
    number, index = 0, []
    for field, value in fields(location):
        if field == 4:
            number = value
        elif field == 3:
            index += integers(value)
    return number, tuple(index)
