"""Arrays as folders of chunks, in version 2 of the Zarr format; TensorStore reads and writes the same files."""

from __future__ import annotations

import bz2
import importlib
import itertools
import json
import math
import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.abbreviation import abbreviate

_METADATA = ".zarray"


def _compress_gzip(data: bytes, level: int) -> bytes:
    encoder = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return encoder.compress(data) + encoder.flush()


# For each compressor: ``compress(data, level)``, and a function that makes a decompressor.
_COMPRESSORS: dict[str, tuple[Callable[[bytes, int], bytes], Callable[[], Any]]] = {
    "zlib": (zlib.compress, zlib.decompressobj),
    "gzip": (_compress_gzip, lambda: zlib.decompressobj(16 + zlib.MAX_WBITS)),
    "bz2": (lambda data, level: bz2.compress(data, level or 1), bz2.BZ2Decompressor),
}


def _import_zstandard(folder: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise NotImplementedError(
            f"array_serialization: {folder} is compressed by zstd, as TensorStore does by default, and Python has no "
            "decoder of it. Install the package zstandard, or write the array with the compressor zlib: "
            "{'driver': 'zarr', 'kvstore': ..., 'metadata': {'compressor': {'id': 'zlib'}}}"
        ) from None


class ZarrArray:
    """An array in a folder: its type, and chunks of one shape, each in a file.

    compressor: None, or a name and a level. separator: the text between the numbers in the names of files. fill: the
    element of missing chunks; None for zero.
    """

    __slots__ = ("folder", "shape", "dtype", "chunks", "compressor", "order", "separator", "fill")

    order: Any

    def __init__(
        self, folder: str, shape: Sequence[int], dtype: np.dtype[Any], chunks: Sequence[int],
        compressor: tuple[str, int] | None, order: str = "C", separator: str = ".", fill: Any = None,
    ) -> None:
        self.folder, self.shape, self.dtype, self.chunks = folder, tuple(shape), dtype, tuple(chunks)
        self.compressor, self.order, self.separator, self.fill = compressor, order, separator, fill
        name = None if compressor is None else compressor[0]
        if name is not None and name != "zstd" and name not in _COMPRESSORS:
            raise NotImplementedError(
                f"array_serialization: {folder} has the compressor {abbreviate(name)}; without TensorStore there are "
                f"{', '.join(_COMPRESSORS)}, zstd with the package zstandard, and None"
            )

    def write_metadata(self) -> None:
        """Write the metadata file: the type and the chunk shape."""
        compressor = None
        if self.compressor is not None:
            compressor = {"id": self.compressor[0], "level": self.compressor[1]}
        stated = {
            "zarr_format": 2, "shape": list(self.shape), "chunks": list(self.chunks),
            "dtype": _format_dtype(self.dtype), "compressor": compressor, "fill_value": self.fill, "filters": None,
            "order": self.order, "dimension_separator": self.separator,
        }
        self._write(_METADATA, json.dumps(stated).encode())

    def _write(self, name: str, data: bytes) -> None:
        """Write a file atomically."""
        path = os.path.join(self.folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        unfinished = f"{path}.{uuid.uuid4().hex}.tmp"
        with open(unfinished, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)

    def make_chunk_name(self, numbers: Sequence[int]) -> str:
        """Return the name of a chunk's file."""
        return self.separator.join(map(str, numbers)) or "0"

    def find_chunks(self, start: Sequence[int], stop: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Return the numbers of the chunks with elements between two corners."""
        return itertools.product(*[
            range(a // size, -(-b // size)) for a, b, size in zip(start, stop, self.chunks, strict=True)
        ])

    def write(self, start: Sequence[int], values: np.ndarray[Any, Any]) -> None:
        """Write the chunks of a shard; `start` is its corner, and the corner of a chunk."""
        stop = [a + n for a, n in zip(start, values.shape, strict=True)]
        for numbers in self.find_chunks(start, stop):
            part = values[tuple([
                slice(i * size - a, (i + 1) * size - a) for i, size, a in zip(numbers, self.chunks, start, strict=True)
            ])]
            # Chunks at the edges are padded to the common shape.
            chunk = np.zeros(self.chunks, self.dtype)
            chunk[tuple(map(slice, part.shape))] = part
            self._write(self.make_chunk_name(numbers), self._encode(chunk.tobytes(self.order)))

    def _encode(self, data: bytes) -> bytes:
        if self.compressor is None:
            return data
        name, level = self.compressor
        if name == "zstd":
            return bytes(_import_zstandard(self.folder).ZstdCompressor(level=level).compress(data))
        return _COMPRESSORS[name][0](data, level)

    def _decode(self, data: bytes, size: int) -> bytes:
        """Return the first `size` bytes of the decompressed data; a few bytes can expand to many."""
        if self.compressor is None:
            return data
        name, _ = self.compressor
        if name == "zstd":
            return bytes(_import_zstandard(self.folder).ZstdDecompressor().stream_reader(data).read(size))
        return bytes(_COMPRESSORS[name][1]().decompress(data, size))

    def read(self, start: Sequence[int], stop: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return the elements between two corners, with zeros outside of the array."""
        result = np.zeros([b - a for a, b in zip(start, stop, strict=True)], self.dtype)
        inside = [min(b, n) for b, n in zip(stop, self.shape, strict=True)]
        for numbers in self.find_chunks(start, inside):
            corner = [i * size for i, size in zip(numbers, self.chunks, strict=True)]
            low = [max(a, c) for a, c in zip(start, corner, strict=True)]
            high = [min(b, c + size) for b, c, size in zip(inside, corner, self.chunks, strict=True)]
            chunk = self._read_chunk(numbers)
            result[tuple([slice(x - a, y - a) for x, y, a in zip(low, high, start, strict=True)])] = chunk[
                tuple([slice(x - c, y - c) for x, y, c in zip(low, high, corner, strict=True)])
            ]
        return result

    def _read_chunk(self, numbers: Sequence[int]) -> np.ndarray[Any, Any]:
        path = os.path.join(self.folder, *self.make_chunk_name(numbers).split("/"))
        size = math.prod(self.chunks) * self.dtype.itemsize
        try:
            with open(path, "rb") as file:
                stored = file.read()
        except FileNotFoundError:
            return np.full(self.chunks, 0 if self.fill is None else self.fill, self.dtype)
        try:
            data = self._decode(stored, size + 1)
        except NotImplementedError:
            raise
        except Exception as error:  # Each decompressor has exceptions of its own.
            raise ValueError(
                f"array_serialization: the chunk {path} cannot be decompressed: {error}. It is damaged"
            ) from None
        if len(data) != size:
            counted = f"more than {size}" if len(data) > size else len(data)
            raise ValueError(
                f"array_serialization: the chunk {path} has {counted} bytes; chunks of shape {self.chunks} and dtype "
                f"{self.dtype.name} have {size}. It is damaged, or of another array"
            )
        return np.frombuffer(data, self.dtype).reshape(self.chunks, order=self.order)


def open_array(folder: str) -> ZarrArray:
    """Return the array in a folder; FileNotFoundError if there is none."""
    path = os.path.join(folder, _METADATA)
    try:
        with open(path, encoding="utf-8") as file:
            return _read_metadata(folder, path, json.load(file))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"array_serialization: there is no array at {folder}: the file {path} does not exist. Check the path, and "
            "whether the array was written with the driver zarr"
        ) from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"array_serialization: {path} does not describe an array: {type(error).__name__}: {error}. It is damaged, "
            "or of another program"
        ) from None


def _read_metadata(folder: str, path: str, stated: Mapping[str, Any]) -> ZarrArray:
    if stated.get("zarr_format") != 2 or stated.get("filters"):
        raise NotImplementedError(
            f"array_serialization: {path} is not of version 2 of Zarr, or has filters; such arrays need TensorStore"
        )
    compressor, separator = parse_compressor(stated["compressor"]), stated.get("dimension_separator", ".")
    dtype, shape, chunks, order = _parse_dtype(stated["dtype"]), stated["shape"], stated["chunks"], stated["order"]
    for name, sizes, least in (("shape", shape, 0), ("chunks", chunks, 1)):
        if not all(type(n) is int and n >= least for n in sizes) or len(sizes) != len(shape):
            raise ValueError(f"{name} is {abbreviate(sizes)}")
    if order not in ("C", "F") or separator not in (".", "/") or dtype.hasobject:
        values = abbreviate((order, separator, stated["dtype"]))
        raise ValueError(f"order, dimension_separator and dtype are {values}")
    fill = 0 if stated["fill_value"] is None else stated["fill_value"]
    # An element that the dtype cannot have is an error here, and not at the first missing chunk.
    np.full((), fill, dtype)
    return ZarrArray(folder, shape, dtype, chunks, compressor, order, separator, fill)


def parse_compressor(stated: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """Return the name and the level of a compressor from its metadata."""
    return None if stated is None else (str(stated["id"]), int(stated.get("level", 1)))


def _format_dtype(dtype: np.dtype[Any]) -> str:
    # The type codes of other dtypes, such as bfloat16, are not unique, so the name is stored.
    return dtype.str if dtype.type.__module__ == "numpy" else dtype.name


def _parse_dtype(name: Any) -> Any:
    if isinstance(name, str) and name[:1] in "<>|":
        return np.dtype(name)
    return dtypes.resolve(name)
