"""Random matrices for tests of linear algebra, the same in every run."""

from __future__ import annotations

from typing import Any

import numpy as np


def real(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return float32 matrices of numbers between -1 and 1."""
    return np.random.default_rng((seed, *shape)).uniform(-1, 1, shape).astype(np.float32)


def complex_(*shape: int) -> np.ndarray[Any, Any]:
    """Return complex64 matrices whose parts are between -1 and 1."""
    return (real(*shape, seed=1) + 1j * real(*shape, seed=2)).astype(np.complex64)


def well(*shape: int) -> np.ndarray[Any, Any]:
    """Return float32 matrices with two dominant diagonals: far from singular, rolled by an element or reversed too."""
    rows, columns = shape[-2:]
    return real(*shape) + 3 * np.eye(rows, columns, dtype=np.float32) + np.eye(rows, columns, k=1, dtype=np.float32)


def gram(lax: Any, x: Any) -> Any:
    """Return x xᴴ + 1, positive definite, computed by `lax`."""
    n = x.ndim
    batch = tuple(range(n - 2))
    square = lax.dot_general(x, x.conj(), (((n - 1,), (n - 1,)), (batch, batch)), "highest")
    return square + np.eye(x.shape[-1], dtype=x.dtype)
