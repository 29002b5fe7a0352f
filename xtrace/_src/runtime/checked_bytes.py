"""Bytes with a checksum: the magic number and the version of their format, a head and a payload.

The checksum detects damage; it does not authenticate the writer.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

# Magic, version of the format, length of the head, length of the payload; the checksum of all else follows.
_START = struct.Struct("<8sIIQ")
_CHECKSUM_SIZE = hashlib.sha256().digest_size


class WrongBytesError(ValueError):
    """Bytes are of another format, incomplete or damaged."""


class Format(NamedTuple):
    """A format of bytes with a checksum.

    magic: the first eight bytes. version: the version of the format. content: a noun for the bytes, for messages.
    """

    magic: bytes
    version: int
    content: str

    def encode(self, head: bytes, payload: bytes) -> bytes:
        """Return a head and a payload as bytes for `decode`."""
        start = _START.pack(self.magic, self.version, len(head), len(payload))
        return b"".join([start, _checksum(start, head, payload), head, payload])

    def decode(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the head and the payload of bytes from `encode`; WrongBytesError for other bytes."""
        if not data.startswith(self.magic) or len(data) < _START.size + _CHECKSUM_SIZE:
            raise WrongBytesError(f"the {len(data)} bytes are no {self.content}")
        _, version, head_size, payload_size = _START.unpack_from(data)
        if version != self.version:
            raise WrongBytesError(
                f"it is a {self.content} in version {version} of the format, and this release reads {self.version}"
            )
        body = _START.size + _CHECKSUM_SIZE
        expected = body + head_size + payload_size
        if len(data) != expected:
            raise WrongBytesError(f"it is a {self.content} of {expected} bytes, and {len(data)} are there")
        head, payload = data[body : body + head_size], data[body + head_size :]
        if _checksum(data[: _START.size], head, payload) != data[_START.size : body]:
            raise WrongBytesError(f"it is a {self.content} that differs from its checksum")
        return head, payload


def _checksum(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()
