"""Shardings in XLA's own form (``jax.extend.sharding``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xtrace._src.core.annotations import Shape
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.shardings import TiledSharding, Tiles
from xtrace._src.xla import shardings as _shardings

__all__ = [
    "GSPMDSharding", "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]


class GSPMDSharding(TiledSharding):
    """A sharding in the form of XLA's partitioner GSPMD.

    Args:
        devices: the devices, in the order of their numbers in programs.
        op_sharding: jaxlib's HloSharding or OpSharding.
        memory_kind: the kind of the devices' memory; None for their default.

    Example:
        >>> from xtrace.extend.sharding import GSPMDSharding, get_hlo_sharding_from_serialized_proto
        >>> whole = GSPMDSharding(xtrace.devices()[:1], get_hlo_sharding_from_serialized_proto(b""))
        >>> whole, whole.shard_shape((4, 2))
        (GSPMDSharding({replicated}, memory_kind=device), (4, 2))
    """

    __slots__ = ("_hlo_sharding",)

    def __init__(self, devices: Sequence[Any], op_sharding: Any, memory_kind: str | None = None) -> None:
        given = tuple(devices) if isinstance(devices, Iterable) else ()
        if not given or not all(hasattr(d, "process_index") for d in given):
            raise TypeError(f"GSPMDSharding: devices must be a sequence of devices, got {abbreviate(devices)}")
        self._hlo_sharding = _shardings.to_hlo_sharding(op_sharding)
        if self._hlo_sharding is None:
            raise TypeError(
                "GSPMDSharding: op_sharding must be jaxlib's HloSharding or OpSharding, got "
                f"{abbreviate(op_sharding)}"
            )
        if not (self._hlo_sharding.is_replicated() or self._hlo_sharding.is_tiled()):
            raise NotImplementedError(
                f"GSPMDSharding: op_sharding {self._hlo_sharding} neither splits arrays nor copies them. For an array "
                "on one device write SingleDeviceSharding"
            )
        tiles = Tiles(*_shardings.read_tiles(self._hlo_sharding, len(given)))
        if sorted(tiles.numbers) != list(range(len(given))):
            raise ValueError(
                f"GSPMDSharding: op_sharding {self._hlo_sharding} is for {len(tiles.numbers)} devices, but devices "
                f"has {len(given)}"
            )
        super().__init__(given, tiles, memory_kind)

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Any], *, memory_kind: str | None = None) -> GSPMDSharding:
        """Return the sharding that puts all of an array on each of the devices."""
        return cls(device_assignment, _shardings.hlo_sharding((), ()), memory_kind)

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """Return the sharding with the pieces in another kind of the devices' memory."""
        return GSPMDSharding(self.devices, self._hlo_sharding, kind)

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raise ValueError if an array of shape `aval_shape` has too few axes."""
        needed = len(self._tiles.parts)
        if len(aval_shape) < needed:
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {needed}, but was applied to a value of "
                f"rank {len(aval_shape)}; reshape it, or take a sharding of its rank"
            )

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self.memory_kind})"


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """Serialize a sharding of XLA.

    Args:
        sharding: jaxlib's HloSharding.

    Returns:
        A serialized OpSharding.

    Raises:
        TypeError: `sharding` is not an HloSharding.

    Example:
        >>> from xtrace.extend import sharding
        >>> whole = sharding.get_hlo_sharding_from_serialized_proto(b"")
        >>> sharding.get_serialized_proto_from_hlo_sharding(whole)
        b''
    """
    if not _shardings.is_hlo_sharding(sharding):
        raise TypeError(
            "get_serialized_proto_from_hlo_sharding: sharding must be jaxlib's HloSharding, got "
            f"{abbreviate(sharding)}"
        )
    return _shardings.to_proto(sharding)


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Parse a serialized sharding, and return it as a protocol message.

    Args:
        sharding: a serialized OpSharding.

    Returns:
        jaxlib's OpSharding.

    Raises:
        TypeError: `sharding` is not bytes.

    Example:
        >>> from xtrace.extend import sharding
        >>> type(sharding.get_op_sharding_from_serialized_proto(b"")).__name__
        'OpSharding'
    """
    if not isinstance(sharding, bytes):
        raise TypeError(f"get_op_sharding_from_serialized_proto: sharding must be bytes, got {abbreviate(sharding)}")
    return _shardings.from_proto(sharding)


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Parse a serialized sharding, and return it in XLA's form.

    Args:
        sharding: a serialized OpSharding.

    Returns:
        jaxlib's HloSharding.

    Raises:
        TypeError: `sharding` is not bytes.

    Example:
        >>> xtrace.extend.sharding.get_hlo_sharding_from_serialized_proto(b"")
        {replicated}
    """
    if not isinstance(sharding, bytes):
        raise TypeError(f"get_hlo_sharding_from_serialized_proto: sharding must be bytes, got {abbreviate(sharding)}")
    return _shardings.to_hlo_sharding(_shardings.from_proto(sharding))


_make_public(globals(), __all__)
