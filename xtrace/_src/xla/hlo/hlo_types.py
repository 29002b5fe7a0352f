"""The types of arrays in the text of HLO, such as ``f32[8,64]{1,0}``."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_ARRAY = re.compile(r"\b(pred|token|[a-z]+\d+[a-z\d]*)\[([\d,]*)\]")
_BITS = re.compile(r"\d+")


class ArrayType(NamedTuple):
    """The dtype and the shape of an array."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of the elements; a token has none."""
        if self.dtype in ("pred", "token"):
            return self.size if self.dtype == "pred" else 0
        bits = _BITS.search(self.dtype)
        return (self.size * int(bits[0]) + 7) // 8 if bits is not None else 0


def read_array_types(text: str) -> list[ArrayType]:
    """Return the arrays of a type: one, or those of a tuple."""
    return [
        ArrayType(dtype, tuple([int(n) for n in sizes.split(",") if n])) for dtype, sizes in _ARRAY.findall(text)
    ]
