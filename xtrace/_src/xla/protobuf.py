"""Reading messages in the wire format of protocol buffers.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: an integer, or the bytes of strings, messages and packed numbers.

    Raises ValueError for bytes that are no message.
    """
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of a protocol buffer has the unknown kind {kind}")
        if position + size > end:
            raise ValueError("a protocol buffer ends in the midst of a field")
        yield tag >> 3, message[position : position + size]
        position += size


def integers(value: int | bytes) -> list[int]:
    """Return the integers of a repeated field: a single one, or several that are packed into bytes."""
    if isinstance(value, int):
        return [value]
    numbers, position = [], 0
    while position < len(value):
        number, position = _varint(value, position)
        numbers.append(number)
    return numbers


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the integer at `position`, in groups of seven bits, the lowest first, and the position after it."""
    result = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            result |= (byte & 127) << shift
            if byte < 128:
                return result, position
            shift += 7
    except IndexError:
        raise ValueError("a protocol buffer ends in the midst of a number") from None
