"""Programs in HLO, read from protobuf messages: computations, instructions in execution order, and users' lines.

Source of the numbers of fields: the messages HloModuleProto, HloComputationProto, HloInstructionProto and
StackFrameIndexProto of openxla/xla, xla/service/hlo.proto, ShapeProto and LayoutProto of xla/xla_data.proto.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from xtrace._src.xla.hlo.protobuf import fields, integers, repeated
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
        values = dict(fields(message))
        self.name = values.get(1, b"").decode()
        self.number, self.root, self.is_fusion = values.get(5, 0), values.get(6, 0), bool(values.get(7))
        self._messages: list[bytes] = repeated(message, 2)
        self._reader = reader
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
    values = dict(fields(message))
    orders = dict(map(_order, repeated(values.get(7, b""), 1)))
    donated = dict(map(_donation, repeated(values.get(8, b""), 1)))
    reader = _Reader(_places(values.get(17, b"")))
    computations = [Computation(part, orders, reader) for part in repeated(message, 3)]
    by_number = {one.number: one for one in computations}
    return HloProgram(values.get(1, b"").decode(), by_number, values.get(6, 0), donated)


def _order(row: bytes) -> tuple[int, list[int]]:
    """Return the number of a computation, and the numbers of its instructions in execution order."""
    entry = dict(fields(row))
    return entry.get(1, 0), integers(dict(fields(entry.get(2, b""))).get(1, b""))


def _donation(row: bytes) -> tuple[int, int]:
    """Return the position of a result, and the number of the parameter whose memory it takes over."""
    values = dict(fields(row))
    return next(iter(integers(values.get(1, b""))), 0), values.get(2, 0)


def _places(table: bytes) -> list[Place]:
    """Return the innermost line of each frame of a StackFrameIndexProto; frames count from one."""
    files, functions = [[name.decode() for name in repeated(table, number)] for number in (1, 2)]
    locations = [dict(fields(location)) for location in repeated(table, 3)]
    frames = []
    for frame in repeated(table, 4):
        at = locations[dict(fields(frame)).get(1, 1) - 1]
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
        values = dict(fields(message))
        name, opcode, kind = [values.get(number, b"").decode() for number in (1, 2, 11)]
        operands, called = [tuple(integers(values.get(number, b""))) for number in (36, 38)]
        scopes, place = self._read_metadata(values.get(7, b""))
        return Instruction(
            values.get(35, 0), name, opcode, self._shape(values.get(3, b"")), operands, called,
            values.get(9, values.get(13, 0)), kind, scopes, place,
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
        values = dict(fields(message))
        kind, dimensions = values.get(2, 0), integers(values.get(3, b""))
        if kind == _TUPLE:
            parts = tuple(map(self._shape, repeated(message, 4)))
            return Shape(f"({', '.join([part.text for part in parts])})", 0, 0, parts)
        name, bits = _DTYPES.get(kind, ("?", 0))
        stored, space = _find_sizes_in_memory(dimensions, values.get(5, b""))
        size = (math.prod(stored) * bits + 7) // 8
        return Shape(f"{name}[{','.join(map(str, dimensions))}]", size, space, None)


def _find_sizes_in_memory(dimensions: list[int], layout: bytes) -> tuple[list[int], int]:
    """Return the sizes of an array in memory, in which the first tile pads minor dimensions, and the memory space."""
    values = dict(fields(layout))
    order, space = integers(values.get(1, b"")), values.get(8, 0)
    tiles = repeated(layout, 6)
    tile = integers(dict(fields(tiles[0])).get(1, b"")) if tiles else []
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
