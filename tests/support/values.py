"""Which values have tangents, and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.core import dtypes


def is_smooth(x: Any) -> bool:
    """Whether an array, or a tracer, has tangents other than zero."""
    return dtypes.is_inexact(np.dtype(x.dtype))


def like(x: Any, seed: int) -> np.ndarray[Any, Any]:
    """Return numbers between -1 and 1 of the shape and dtype of `x`, an array or a tracer."""
    random, dtype = np.random.default_rng(seed), np.dtype(x.dtype)
    found = random.uniform(-1, 1, x.shape)
    if dtypes.is_complex(dtype):
        found = found + 1j * random.uniform(-1, 1, x.shape)
    return np.asarray(found).astype(dtype)
