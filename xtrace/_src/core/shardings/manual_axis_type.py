"""The part of an array's type about manual mesh axes: whether devices hold different values, terms or sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.values import EqualByKey


class ManualAxisType(EqualByKey):
    """The manual mesh axes along which the values of an array differ from device to device, inside of `shard_map`.

    Args:
        varying: the axes along which devices may hold different values.
        unreduced: the axes along which the array is the sum of the devices' values.
        reduced: the axes along which devices hold the same value, and cotangents are unreduced.

    Raises:
        ValueError: an axis is in two of the sets.

    Example:
        >>> xtrace.sharding.ManualAxisType(varying={"x"})
        ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), reduced=frozenset())
    """

    __slots__ = ("varying", "unreduced", "reduced")

    def __init__(
        self, *, varying: Iterable[Any] = frozenset(), unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
    ) -> None:
        self.varying, self.unreduced, self.reduced = frozenset(varying), frozenset(unreduced), frozenset(reduced)
        if len(self.vur) < len(self.varying) + len(self.unreduced) + len(self.reduced):
            raise ValueError(f"{self}: a mesh axis is in one of varying, unreduced and reduced only")

    @property
    def vur(self) -> frozenset[Any]:
        """The axes that are in any of the three."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether no axis is in any of the three."""
        return not self.vur

    def invarying(self, mesh: BaseMesh) -> frozenset[Any]:
        """Return the manual axes of `mesh` that are in none of the three: devices hold the same value."""
        return frozenset(mesh.manual_axes) - self.vur

    def to_ct_mat(self) -> ManualAxisType:
        """Return the type of cotangents: unreduced where values are reduced, and the other way round."""
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **kwargs: Any) -> ManualAxisType:
        """Return the type with `varying`, `unreduced` or `reduced` changed."""
        return ManualAxisType(**({name: getattr(self, name) for name in self.__slots__} | kwargs))

    def _key(self) -> Any:
        return self.varying, self.unreduced, self.reduced

    def __repr__(self) -> str:
        return f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, reduced={self.reduced})"
