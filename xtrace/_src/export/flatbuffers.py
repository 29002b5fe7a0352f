"""Flatbuffers: conversion of records of named fields to bytes and back, by schemas.

A table at a position of the buffer begins with the distance back to its *vtable*; its fields follow. The vtable has the
distance of each field from the table, 0 for an absent field. The field of a table, text or vector has the positive
distance to it. Numbers are little-endian, at multiples of their sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]


class DamagedFileError(ValueError):
    """Bytes that are no buffer of the schema."""


@dataclass(frozen=True)
class Number:
    """A number with a format of `struct`; zeros are not written."""

    format: str


@dataclass(frozen=True)
class OptionalNumber:
    """A number that may be absent; an absent number reads as None."""

    format: str


@dataclass(frozen=True)
class Text:
    """A string."""


@dataclass(frozen=True)
class Vector:
    """A sequence of texts, of records, or of numbers with a format of `struct`; bytes for ``"B"``."""

    of: str | Text | Table


@dataclass(frozen=True, eq=False)
class Table:
    """A record: the slot and the kind of each field. A field of the table's own kind is added later."""

    fields: dict[str, tuple[int, Any]] = field(default_factory=dict)


def encode(table: Table, record: Mapping[str, Any], identifier: bytes = b"") -> bytearray:
    """Return the buffer of a record; fields that are None or absent are not written.

    identifier: four bytes from the fifth byte on, which name the writer.
    """
    buffer = bytearray(4) + identifier
    struct.pack_into("<I", buffer, 0, _write_table(buffer, table, record))
    return buffer


def _write_table(buffer: bytearray, table: Table, record: Mapping[str, Any]) -> int:
    given = []
    for name, (slot, kind) in table.fields.items():
        value = record.get(name)
        if value is not None and not (isinstance(kind, Number) and not value):
            given.append((slot, kind, value))
    # With the large fields first there are no gaps.
    given.sort(key=lambda entry: -struct.calcsize(_format(entry[1])))
    slots = 1 + max([slot for slot, _, _ in given], default=-1)
    vtable = _align(buffer, 4)
    offsets, size = [0] * slots, 4
    for slot, kind, _ in given:
        offsets[slot] = size
        size += struct.calcsize(_format(kind))
    buffer += struct.pack(f"<{2 + slots}H", 4 + 2 * slots, size, *offsets)
    position = _align(buffer, 4)
    buffer += struct.pack("<i", position - vtable) + bytes(size - 4)
    for slot, kind, value in given:
        at = position + offsets[slot]
        if isinstance(kind, (Number, OptionalNumber)):
            struct.pack_into(f"<{kind.format}", buffer, at, value)
        else:
            _write_distance(buffer, at, kind, value)
    return position


def _format(kind: Any) -> str:
    return kind.format if isinstance(kind, (Number, OptionalNumber)) else "I"


def _align(buffer: bytearray, size: int) -> int:
    """Pad the buffer to a multiple of `size` bytes, and return its length."""
    buffer += bytes(-len(buffer) % size)
    return len(buffer)


def _write_distance(buffer: bytearray, at: int, kind: Any, value: Any) -> None:
    """Append a text, vector or record, and write the distance to it at position `at`."""
    struct.pack_into("<I", buffer, at, _write_object(buffer, kind, value) - at)


def _write_object(buffer: bytearray, kind: Any, value: Any) -> int:
    if isinstance(kind, Table):
        return _write_table(buffer, kind, value)
    position = _align(buffer, 4)
    if isinstance(kind, Text):
        data = value.encode()
        buffer += struct.pack("<I", len(data)) + data + b"\0"
        return position
    buffer += struct.pack("<I", len(value))
    if kind.of == "B":
        buffer += bytes(value)
    elif isinstance(kind.of, str):
        buffer += struct.pack(f"<{len(value)}{kind.of}", *value)
    else:
        buffer += bytes(4 * len(value))
        for i, element in enumerate(value):
            _write_distance(buffer, position + 4 + 4 * i, kind.of, element)
    return position


def decode(table: Table, buffer: bytes) -> Record:
    """Return the record in a buffer; absent numbers are 0, other absent fields None. DamagedFileError for bad bytes."""
    reader = _Reader(buffer)
    try:
        return reader.read_table(table, reader.number("I", 0))
    except RecursionError:
        raise DamagedFileError("its records are nested too deep") from None


class _Reader:
    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        # Fields may share records, texts and vectors, so a small file could expand without end. Files of real writers
        # share almost nothing, and stay within these limits.
        self.records_left = len(buffer)
        self.bytes_left = 4 * len(buffer)

    def number(self, format: str, position: int) -> Any:
        return self.numbers(format, position, 1)[0]

    def numbers(self, format: str, position: int, count: int) -> tuple[Any, ...]:
        size = struct.calcsize(format) * count
        if position < 0 or position + size > len(self.buffer):
            raise DamagedFileError(
                f"it refers to bytes {position} to {position + size}, and has {len(self.buffer)}"
            )
        return struct.unpack_from(f"<{count}{format}", self.buffer, position)

    def charge(self, size: int) -> None:
        """Count the bytes of a text or a vector; DamagedFileError if they are too many for the file."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise DamagedFileError("its texts and vectors are larger than the file")

    def read_table(self, table: Table, position: int) -> Record:
        self.records_left -= 1
        if self.records_left < 0:
            raise DamagedFileError("its records are larger than the file")
        vtable = position - self.number("i", position)
        offsets = self.numbers("H", vtable, self.number("H", vtable) // 2)
        record: Record = {}
        for name, (slot, kind) in table.fields.items():
            offset = offsets[2 + slot] if 2 + slot < len(offsets) else 0
            if isinstance(kind, (Number, OptionalNumber)):
                absent = 0 if isinstance(kind, Number) else None
                record[name] = self.number(kind.format, position + offset) if offset else absent
            else:
                record[name] = self.follow(kind, position + offset) if offset else None
        return record

    def follow(self, kind: Any, position: int) -> Any:
        """Return the object at the end of the distance at a position."""
        target = position + self.number("I", position)
        if isinstance(kind, Table):
            return self.read_table(kind, target)
        count = self.number("I", target)
        self.charge(4 + count * (struct.calcsize(kind.of) if isinstance(getattr(kind, "of", None), str) else 1))
        if isinstance(kind, Text) or kind.of == "B":
            data = self.buffer[target + 4 : target + 4 + count]
            if len(data) != count:
                raise DamagedFileError(f"it has {len(data)} of the {count} bytes at byte {target + 4}")
            return self.text(data) if isinstance(kind, Text) else data
        if isinstance(kind.of, str):
            return self.numbers(kind.of, target + 4, count)
        self.numbers("I", target + 4, count)
        return [self.follow(kind.of, target + 4 + 4 * i) for i in range(count)]

    def text(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise DamagedFileError(f"a text in it is not UTF-8: {error}") from None
