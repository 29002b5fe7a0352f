"""Bytes with a checksum: a head and a payload behind the magic number and the version of their format.

The checksum finds damage; it says nothing of who wrote the bytes.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

# Magic, version of the format, length of the head, length of the payload; the checksum of all else follows.
_START = struct.Struct("<8sIIQ")
_CHECKSUM_SIZE = hashlib.sha256().digest_size


class WrongBytesError(ValueError):
    """Bytes are not what was written."""


class Format(NamedTuple):
    """A format of bytes with a checksum.

    magic: eight bytes, with which all start. version: that of the format. content: what they are, for messages.
    """

    magic: bytes
    version: int
    content: str

    def encode(self, head: bytes, payload: bytes) -> bytes:
        """Return a head and a payload as bytes for `decode`."""
        start = _START.pack(self.magic, self.version, len(head), len(payload))
        return b"".join([start, _checksum(start, head, payload), head, payload])

    def decode(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the head and the payload that `encode` got; WrongBytesError for all bytes that it did not return."""
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
