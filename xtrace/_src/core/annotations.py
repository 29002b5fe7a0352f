"""Types for annotations of functions on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, Union

import numpy as np

from xtrace._src.core.arrays import Array

__all__ = ["ArrayLike", "Axes", "Axis", "DTypeLike", "RealLike", "Shape", "ShapeLike", "SupportsDType"]


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        ...


# Operands of operations: arrays, NumPy's arrays and Python's scalars, but no lists.
ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
# Real operands, which can be compared.
RealLike = Union[Array, np.ndarray, np.integer, np.floating, float]  # noqa: UP007
# Names and objects that specify a dtype.
DTypeLike = Union[str, type[Any], np.dtype, SupportsDType]  # noqa: UP007
# The shape of an array, and the forms in which users give one.
Shape = tuple[int, ...]
ShapeLike = Union[SupportsIndex, Sequence[SupportsIndex]]  # noqa: UP007
# One axis, or all (None); several axes.
Axis = Union[int, None]  # noqa: UP007
Axes = Union[int, Sequence[int], None]  # noqa: UP007
