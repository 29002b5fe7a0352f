"""Programs in HLO, read from protobuf messages: computations, instructions in execution order, and users' lines.

Source of the numbers of fields: the messages HloModuleProto, HloComputationProto, HloInstructionProto and
StackFrameIndexProto of openxla/xla, xla/service/hlo.proto, ShapeProto and LayoutProto of xla/xla_data.proto.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from xtrace._src.xla.protobuf import fields, integers
from xtrace._src.xla.source_locations import Place


class Shape(NamedTuple):
    """The type of an array in HLO with its size in bytes, or a tuple of types; `space` 0 is the device's memory."""

    text: str
    size: int
    space: int
    parts: tuple[Shape, ...] | None

    @property
    def leaves(self) -> tuple[Shape, ...]:
        """The arrays in it."""
        return (self,) if self.parts is None else tuple([leaf for part in self.parts for leaf in part.leaves])

    def leaf_before(self, part: int) -> int:
        """Return the number of arrays before a part of a tuple."""
        return sum([len(one.leaves) for one in (self.parts or ())[:part]])


class Instruction(NamedTuple):
    """An instruction: its number in the program, and the numbers of its operands and of the computations that it calls.

    position: the number of a parameter, or of the part in a get-tuple-element. kind: the kind of a fusion. scopes: the
    operation of the user's program and its scopes, as ``jit(f)/layer/dot_general``. place: the user's line.
    """

    number: int
    name: str
    opcode: str
    shape: Shape
    operands: tuple[int, ...]
    called: tuple[int, ...]
    position: int
    kind: str
    scopes: str
    place: Place | None


class Computation:
    """A computation: its name, its number, the number of its root, and whether it is the body of a fusion.

    Its instructions are read on demand, because few computations are needed.
    """

    def __init__(self, message: bytes, orders: dict[int, list[int]], reader: _Reader) -> None:
        self.name, self.number, self.root, self.is_fusion = "", 0, 0, False
        self._messages: list[bytes] = []
        self._reader = reader
        for field, value in fields(message):
            if field == 2:
                self._messages.append(value)
            elif field == 1:
                self.name = value.decode()
            elif field == 5:
                self.number = value
            elif field == 6:
                self.root = value
            elif field == 7:
                self.is_fusion = bool(value)
        self._order = orders.get(self.number)

    @functools.cached_property
    def instructions(self) -> list[Instruction]:
        """The instructions, in execution order if the program is scheduled."""
        instructions = [self._reader.instruction(message) for message in self._messages]
        if self._order is None:
            return instructions
        by_number = {instruction.number: instruction for instruction in instructions}
        return [by_number[n] for n in self._order]


class HloProgram(NamedTuple):
    """A program: its computations by number, and the number of the entry computation.

    donated: maps the position of a result to the number of the parameter whose memory it takes over.
    """

    name: str
    computations: dict[int, Computation]
    entry: int
    donated: dict[int, int]


def read_program(message: bytes) -> HloProgram:
    """Return the program in the bytes of an HloModuleProto."""
    name, entry, table = "", 0, b""
    parts: list[bytes] = []
    orders: dict[int, list[int]] = {}
    donated: dict[int, int] = {}
    for field, value in fields(message):
        if field == 1:
            name = value.decode()
        elif field == 3:
            parts.append(value)
        elif field == 6:
            entry = value
        elif field == 7:
            orders = dict([_order(row) for number, row in fields(value) if number == 1])
        elif field == 8:
            donated = dict([_donation(row) for number, row in fields(value) if number == 1])
        elif field == 17:
            table = value
    reader = _Reader(_places(table))
    computations = [Computation(part, orders, reader) for part in parts]
    return HloProgram(name, {one.number: one for one in computations}, entry, donated)


def _order(row: bytes) -> tuple[int, list[int]]:
    """Return the number of a computation, and the numbers of its instructions in execution order."""
    entry = dict(fields(row))
    return entry.get(1, 0), [n for _, value in fields(entry.get(2, b"")) for n in integers(value)]


def _donation(row: bytes) -> tuple[int, int]:
    """Return the position of a result, and the number of the parameter whose memory it takes over."""
    position, parameter = 0, 0
    for field, value in fields(row):
        if field == 1:
            position = (integers(value) or [0])[0]
        elif field == 2:
            parameter = value
    return position, parameter


def _places(table: bytes) -> list[Place]:
    """Return the innermost line of each frame of a StackFrameIndexProto; frames count from one."""
    files: list[str] = []
    functions: list[str] = []
    locations: list[dict[int, Any]] = []
    frames: list[Place] = []
    for field, value in fields(table):
        if field == 1:
            files.append(value.decode())
        elif field == 2:
            functions.append(value.decode())
        elif field == 3:
            locations.append(dict(fields(value)))
        elif field == 4:
            at = locations[dict(fields(value)).get(1, 1) - 1]
            frames.append(Place(files[at.get(1, 1) - 1], at.get(3, 0), functions[at.get(2, 1) - 1]))
    return frames


class _Reader:
    """Reads instructions; equal types and places are one object."""

    def __init__(self, places: list[Place]) -> None:
        self._places = places
        self._shapes: dict[bytes, Shape] = {}
        self._metadata: dict[bytes, tuple[str, Place | None]] = {b"": ("", None)}

    def instruction(self, message: bytes) -> Instruction:
        """Return the instruction in the bytes of an HloInstructionProto."""
        number, name, opcode, index, kind, shape, metadata = 0, "", "", 0, "", b"", b""
        operands: list[int] = []
        called: list[int] = []
        for field, value in fields(message):
            if field == 1:
                name = value.decode()
            elif field == 2:
                opcode = value.decode()
            elif field == 3:
                shape = value
            elif field == 7:
                metadata = value
            elif field == 9 or field == 13:
                index = value
            elif field == 11:
                kind = value.decode()
            elif field == 35:
                number = value
            elif field == 36:
                operands += integers(value)
            elif field == 38:
                called += integers(value)
        scopes, place = self._read_metadata(metadata)
        return Instruction(
            number, name, opcode, self._shape(shape), tuple(operands), tuple(called), index, kind, scopes, place
        )

    def _read_metadata(self, metadata: bytes) -> tuple[str, Place | None]:
        known = self._metadata.get(metadata)
        if known is None:
            values = dict(fields(metadata))
            frame, scopes = values.get(15, 0), values.get(2, b"").decode()
            place = self._places[frame - 1] if 0 < frame <= len(self._places) else None
            if place is None and 3 in values and 4 in values:
                place = Place(values[3].decode(), values[4], "")
            known = self._metadata[metadata] = scopes, place
        return known

    def _shape(self, message: bytes) -> Shape:
        known = self._shapes.get(message)
        if known is None:
            known = self._shapes[message] = self._read_shape(message)
        return known

    def _read_shape(self, message: bytes) -> Shape:
        kind, dimensions, parts, layout = 0, [], [], b""
        for field, value in fields(message):
            if field == 2:
                kind = value
            elif field == 3:
                dimensions += integers(value)
            elif field == 4:
                parts.append(self._shape(value))
            elif field == 5:
                layout = value
        if kind == _TUPLE:
            return Shape(f"({', '.join([part.text for part in parts])})", 0, 0, tuple(parts))
        name, bits = _DTYPES.get(kind, ("?", 0))
        stored, space = _find_sizes_in_memory(dimensions, layout)
        size = (math.prod(stored) * bits + 7) // 8
        return Shape(f"{name}[{','.join(map(str, dimensions))}]", size, space, None)


def _find_sizes_in_memory(dimensions: list[int], layout: bytes) -> tuple[list[int], int]:
    """Return the sizes of an array in memory, in which the first tile pads minor dimensions, and the memory space."""
    order: list[int] = []
    tile: list[int] = []
    space = 0
    for field, value in fields(layout):
        if field == 1:
            order += integers(value)
        elif field == 6 and not tile:
            tile = [n for number, packed in fields(value) if number == 1 for n in integers(packed)]
        elif field == 8:
            space = value
    if not tile or len(order) != len(dimensions):
        return dimensions, space
    stored = [dimensions[axis] for axis in reversed(order)]
    for i in range(1, min(len(tile), len(stored)) + 1):
        stored[-i] = -(-stored[-i] // tile[-i]) * tile[-i]
    return stored, space


_TUPLE = 13

# The numbers of types, their names and bits.
_DTYPES = {
    1: ("pred", 8), 2: ("s8", 8), 3: ("s16", 16), 4: ("s32", 32), 5: ("s64", 64), 6: ("u8", 8), 7: ("u16", 16),
    8: ("u32", 32), 9: ("u64", 64), 10: ("f16", 16), 11: ("f32", 32), 12: ("f64", 64), 14: ("opaque", 0),
    15: ("c64", 64), 16: ("bf16", 16), 17: ("token", 0), 18: ("c128", 128), 19: ("f8e5m2", 8), 20: ("f8e4m3fn", 8),
    21: ("s4", 4), 22: ("u4", 4), 23: ("f8e4m3b11fnuz", 8), 24: ("f8e5m2fnuz", 8), 25: ("f8e4m3fnuz", 8),
    26: ("s2", 2), 27: ("u2", 2), 28: ("f8e4m3", 8), 29: ("f8e3m4", 8), 30: ("s1", 1), 31: ("u1", 1),
    32: ("f4e2m1fn", 4), 33: ("f8e8m0fnu", 8),
}
