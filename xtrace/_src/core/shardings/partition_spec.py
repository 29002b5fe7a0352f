"""Partition specifications: the mesh axes that each dimension of an array is split over."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.sentinels import Sentinel


class _Unconstrained(Sentinel):
    """The entry of a dimension whose split is left to the compiler."""

    __slots__ = ()


UNCONSTRAINED = _Unconstrained("UNCONSTRAINED")


# Python has one empty frozenset.
_NO_AXES: frozenset[Any] = frozenset()


def get_entry_axes(entry: Any) -> tuple[Any, ...]:
    """Return the mesh axes in an entry of a specification, the slowest first."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if type(entry) is tuple else (entry,)


class PartitionSpec:
    """The mesh axes over which each dimension of an array is split.

    Dimensions after the last entry are not split. Specifications are equal if their entries are, so ``P("x")`` and
    ``P("x", None)`` differ, though they split a matrix alike (`NamedSharding.is_equivalent_to`).

    Args:
        partitions: for each dimension the name of a mesh axis, a tuple of names (the slowest first), None for a
            dimension that is not split, or ``PartitionSpec.UNCONSTRAINED`` to leave it to the compiler.
        unreduced: a set of axes over which the devices hold the terms of a sum, which have not been added up.
        reduced: a set of axes over which the terms have been added up, and each device holds the sum.

    Raises:
        TypeError: `unreduced` or `reduced` is no set, or one of `partitions` is not hashable.
        ValueError: an axis is in two of `partitions`, `unreduced` and `reduced`.

    Example:
        >>> xtrace.P("data", None, ("model", "expert"))
        P('data', None, ('model', 'expert'))
    """

    __slots__ = ("_partitions", "unreduced", "reduced", "_hash")

    UNCONSTRAINED = UNCONSTRAINED

    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init__(self, *partitions: Any, unreduced: Any = _NO_AXES, reduced: Any = _NO_AXES) -> None:
        self._partitions = tuple([_canonical_entry(p) for p in partitions])
        for dimension, entry in enumerate(self._partitions):
            _check_entry(dimension, entry)
        self.unreduced = self.reduced = _NO_AXES
        if unreduced is not _NO_AXES or reduced is not _NO_AXES:
            self._set_sums(unreduced, reduced)
        self._hash = hash((self._partitions, self.unreduced, self.reduced))

    def _set_sums(self, unreduced: Any, reduced: Any) -> None:
        for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(f"PartitionSpec: {name} must be a set of axis names, got {abbreviate(axes)}")
            if None in axes:
                raise ValueError(f"PartitionSpec: {name} cannot contain None; give names of mesh axes")
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)
        self._check_disjoint()

    def _check_disjoint(self) -> None:
        used = {axis for entry in self._partitions for axis in get_entry_axes(entry)}
        pairs = (
            ("partitions", used, "unreduced", self.unreduced), ("partitions", used, "reduced", self.reduced),
            ("unreduced", self.unreduced, "reduced", self.reduced),
        )
        for one, axes, other, others in pairs:
            if axes & others:
                raise ValueError(
                    f"PartitionSpec: {one} cannot overlap with {other} axes; {sorted(map(str, axes & others))} of "
                    f"P{self._partitions}, unreduced={set(self.unreduced)}, reduced={set(self.reduced)} are in both"
                )

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries, as a tuple."""
        return self._partitions

    def update(self, **changes: Any) -> PartitionSpec:
        """Return the specification with `partitions`, `unreduced` or `reduced` changed."""
        fields = {"partitions": self._partitions, "unreduced": self.unreduced, "reduced": self.reduced} | changes
        return PartitionSpec(*fields.pop("partitions"), **fields)

    def index(self, value: object) -> int:
        """Return the first dimension with the entry `value`; ValueError if there is none."""
        return self._partitions.index(_canonical_entry(value))

    def count(self, value: object) -> int:
        """Return the number of dimensions with the entry `value`."""
        return self._partitions.count(_canonical_entry(value))

    def to_tangent_spec(self) -> PartitionSpec:
        """Return the specification of the tangents of an array: this one."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """Return the specification of cotangents: `unreduced` and `reduced` are exchanged."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def to_lo(self) -> list[PartitionSpec]:
        """Return the specifications of the arrays in which an array is stored: this one only."""
        return [self]

    def __repr__(self) -> str:
        entries = [repr(p) for p in self._partitions]
        sets = [
            f"{name}={{{', '.join(sorted(map(repr, axes)))}}}"
            for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)) if axes
        ]
        one = "," if len(entries) == 1 and not sets else ""
        return f"P({', '.join(entries + sets)}{one})"

    def __reduce__(self) -> Any:
        return _restore, (self._partitions, self.unreduced, self.reduced)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PartitionSpec):
            return False
        return (self._partitions, self.unreduced, self.reduced) == (other._partitions, other.unreduced, other.reduced)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return self.update(
                partitions=self._partitions + other._partitions, unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        return self.update(partitions=self._partitions + other) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        return self.update(partitions=other + self._partitions) if isinstance(other, tuple) else NotImplemented


def _canonical_entry(entry: Any) -> Any:
    """Return an entry in normal form: one name without a tuple, and None for no name."""
    if not isinstance(entry, (tuple, list)):
        return entry
    return None if not entry else entry[0] if len(entry) == 1 else tuple(entry)


def _check_entry(dimension: int, entry: object) -> None:
    try:
        hash(entry)
    except TypeError:
        raise TypeError(
            f"PartitionSpec: the entry of dimension {dimension} must be the name of a mesh axis, a tuple of names or "
            f"None, got {abbreviate(entry)}"
        ) from None


def _restore(partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def full_entries(spec: PartitionSpec, ndim: int) -> tuple[Any, ...]:
    """Return the entries of `spec` for each of `ndim` dimensions."""
    return spec.partitions + (None,) * (ndim - len(spec))


def restrict_spec(spec: PartitionSpec, ndim: int, kept: Set[Any]) -> PartitionSpec:
    """Return `spec` for `ndim` dimensions, without the mesh axes that are not in `kept`."""
    entries = [tuple([axis for axis in get_entry_axes(entry) if axis in kept]) for entry in full_entries(spec, ndim)]
    return PartitionSpec(*entries, unreduced=spec.unreduced & kept, reduced=spec.reduced & kept)


P = PartitionSpec
