"""NumPy arrays whose memory CPU programs can read in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# XLA on CPU reads the memory of an array in place if its address is a multiple of this number of bytes.
_ALIGNMENT = 64


def aligned_array(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Return an uninitialised array of this shape and dtype, in C's order, at an aligned address."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGNMENT
    array: np.ndarray[Any, Any] = memory[start : start + size].view(dtype).reshape(shape)
    return array
