"""Reading and writing messages in the wire format of protocol buffers.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: an integer, or the bytes of strings, messages and packed numbers.

    Raises ValueError for bytes that are no message.
    """
    for number, value, start, end in spans(message):
        yield number, message[start:end] if value is None else value


def repeated(message: bytes, number: int) -> list[Any]:
    """Return the values of a field that a message may have several times."""
    return [value for field, value in fields(message) if field == number]


def spans(message: bytes) -> Iterator[tuple[int, int | None, int, int]]:
    """Yield each field's number, its value if it is a variable-length integer, and where its content starts and ends.

    The content of an integer is its field as a whole. ValueError for bytes that are no message.
    """
    position, size = 0, len(message)
    while position < size:
        start = position
        tag, position = read_varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = read_varint(message, position)
            yield tag >> 3, value, start, position
            continue
        if kind == _BYTES:
            length, position = read_varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of a protocol buffer has the unknown kind {kind}")
        end = position + length
        if end > size:
            raise ValueError("a protocol buffer ends in the midst of a field")
        yield tag >> 3, None, position, end
        position = end


def integers(value: int | bytes) -> list[int]:
    """Return the integers of a repeated field: a single one, or several that are packed into bytes."""
    if isinstance(value, int):
        return [value]
    numbers, position = [], 0
    while position < len(value):
        number, position = read_varint(value, position)
        numbers.append(number)
    return numbers


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the integer at `position`, in groups of seven bits, the lowest first, and the position after it."""
    result = 0
    try:
        for shift in range(0, 70, 7):
            byte = data[position]
            position += 1
            result |= (byte & 127) << shift
            if byte < 128:
                return result, position
    except IndexError:
        raise ValueError("a protocol buffer ends in the midst of an integer") from None
    raise ValueError("an integer of a protocol buffer has more than 64 bits")


def write_field(number: int, value: int | bytes) -> bytes:
    """Return a field: an integer of variable length, or bytes."""
    if isinstance(value, int):
        return write_varint(number << 3 | _VARINT) + write_varint(value)
    return write_varint(number << 3 | _BYTES) + write_varint(len(value)) + value


def replace_fields(message: bytes, number: int, replace: Callable[[bytes], bytes | None]) -> bytes:
    """Return a message with new contents of its fields `number`; a field is removed if ``replace(content)`` is None."""
    parts, copied, position = [], 0, 0
    for field, value, start, end in spans(message):
        if field == number and value is None:
            content = replace(message[start:end])
            parts += [message[copied:position], b"" if content is None else write_field(number, content)]
            copied = end
        position = end
    return b"".join([*parts, message[copied:]])


def write_varint(value: int) -> bytes:
    """Return a non-negative integer in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)
