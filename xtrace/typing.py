"""Types for annotations, as ``jax.typing`` has them."""

from __future__ import annotations

from typing import Any, Protocol, Union

import numpy as np

from xtrace._src.core.arrays import Array
from xtrace._src.core.late import make_public as _make_public

__all__ = ["ArrayLike", "DTypeLike"]


class SupportsDType(Protocol):
    """Whatever has a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""


# What operations take for an array, and what names a dtype; lists are not among the former.
ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
DTypeLike = Union[str, type[Any], np.dtype, SupportsDType]  # noqa: UP007

_make_public(globals(), __all__)
