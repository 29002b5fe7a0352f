"""Laying out the axes of a mesh along the axes of a torus of devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.annotations import Shape

# Orders of a few devices in which most neighbours are linked, and also the last and the first. x varies fastest.
PAIRS_OF_A_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)
RING_OF_SQUARE = (0, 1, 3, 2)
RING_OF_TWO_ROWS = (0, 1, 2, 3, 7, 6, 5, 4)
COLUMNS_OF_CUBE = (0, 4, 2, 6, 1, 5, 3, 7)
RING_OF_CUBE = (0, 1, 3, 2, 6, 7, 5, 4)
RING_OF_LARGE_SQUARE = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)


def assign_axes(torus: Shape, shape: Shape, may_split: bool) -> list[Shape] | None:
    """Return, for each axis of a mesh of shape `shape`, its number of devices along each axis of the torus.

    The last axis has the most traffic, and chooses first: whole axes of the torus, as large and as many as possible.
    Returns None if an axis of the torus must be split between two axes of the mesh, and `may_split` is false.
    """
    left = torus
    assignments: list[Shape] = []
    for size in reversed(shape):
        choices = [c for c in _factorizations(size, left) if may_split or _takes_whole_axes(c, left)]
        if not choices:
            return None
        best = max(choices, key=lambda choice: (*_whole_axes(choice, torus), choice))
        assignments.append(best)
        left = tuple([n // k for n, k in zip(left, best, strict=True)])
    return assignments[::-1]


def _factorizations(size: int, limits: Shape) -> Iterator[Shape]:
    """Yield the factors with the product `size` that divide `limits`."""
    if not limits:
        if size == 1:
            yield ()
        return
    for factor in range(1, min(size, limits[0]) + 1):
        if size % factor == 0 and limits[0] % factor == 0:
            for rest in _factorizations(size // factor, limits[1:]):
                yield factor, *rest


def _takes_whole_axes(choice: Shape, left: Shape) -> bool:
    return all(taken in (1, n) for taken, n in zip(choice, left, strict=True))


def _whole_axes(choice: Shape, torus: Shape) -> tuple[int, int]:
    """Return the number of devices on the axes of the torus that `choice` takes whole, and the number of these axes."""
    whole = [n for taken, n in zip(choice, torus, strict=True) if taken == n > 1]
    return math.prod(whole), len(whole)


def lay_out(devices: np.ndarray[Any, Any], assignments: Sequence[Shape]) -> np.ndarray[Any, Any]:
    """Return the devices of a torus as a mesh with one axis for each of `assignments`."""
    mesh_axes, torus_axes = len(assignments), devices.ndim
    factors = [assignments[axis][i] for i in range(torus_axes) for axis in range(mesh_axes)]
    order = [i * mesh_axes + axis for axis in range(mesh_axes) for i in range(torus_axes)]
    return devices.reshape(factors).transpose(order).reshape([math.prod(a) for a in assignments])
