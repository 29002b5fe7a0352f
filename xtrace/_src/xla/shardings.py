"""Shardings in the forms of jaxlib and XLA."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client

_COPIES = [xla_client.OpSharding.Type.REPLICATED]
_REPLICATED = xla_client.HloSharding.replicate()


class DeviceSharding(_jax.Sharding):
    """Tiles of arrays on several devices, with the members that jaxlib reads.

    `find_tiles` maps a rank to the parts of each dimension and the devices' numbers, tile after tile. `described` is
    the user's sharding. All members are defined in this class, because jax, if it is imported, defines some in the base
    class.
    """

    def __init__(
        self, devices: tuple[Any, ...], find_tiles: Callable[[int], tuple[tuple[int, ...], tuple[int, ...]]],
        memory_kind: str | None, described: Any,
    ) -> None:
        super().__init__()
        self._devices, self._find_tiles, self._kind, self.described = devices, find_tiles, memory_kind, described
        self._device_list = _jax.DeviceList(devices)
        self._hlo_shardings: dict[int, Any] = {}

    memory_kind = property(lambda self: self._kind)
    _memory_kind = memory_kind
    _internal_device_list = property(lambda self: self._device_list)
    device_set = property(lambda self: set(self._devices))
    num_devices = property(lambda self: len(self._devices))
    is_fully_addressable = property(lambda self: self._device_list.is_fully_addressable)
    is_fully_replicated = property(lambda self: False)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        known = self._hlo_shardings.get(num_dimensions)
        if known is None:
            known = self._hlo_shardings[num_dimensions] = hlo_sharding(*self._find_tiles(num_dimensions))
        return known

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the pieces of an array of shape `global_shape`."""
        parts, _ = self._find_tiles(len(global_shape))
        return tuple([n // k for n, k in zip(global_shape, parts, strict=True)])


def hlo_sharding(parts: tuple[int, ...], numbers: tuple[int, ...]) -> xla_client.HloSharding:
    """Return the HloSharding of tiles: the parts of each dimension, and the devices' numbers, tile after tile."""
    if all(k == 1 for k in parts):
        return _REPLICATED
    copies = len(numbers) // int(np.prod(parts))
    grid = np.array(numbers, np.int64).reshape(*parts, *([copies] if copies > 1 else []))
    return xla_client.HloSharding.subgroup_with_device_ordering(grid, subgroup_types=_COPIES if copies > 1 else [])


def is_hlo_sharding(value: object) -> bool:
    """Whether a value is an HloSharding."""
    return isinstance(value, xla_client.HloSharding)


def to_hlo_sharding(value: object) -> Any:
    """Return an HloSharding, or the OpSharding of one, as an HloSharding; None for other values."""
    if isinstance(value, xla_client.OpSharding):
        return xla_client.HloSharding.from_proto(value)
    return value if is_hlo_sharding(value) else None


def from_proto(data: bytes) -> Any:
    """Return the OpSharding in the bytes of a message."""
    message = xla_client.OpSharding()
    message.ParseFromString(data)
    return message


def read_hlo_sharding(data: bytes, devices: int) -> xla_client.HloSharding:
    """Return the HloSharding in the bytes of an OpSharding message, of arrays on `devices` devices.

    Raises ValueError for other bytes, and for a sharding without tiles or for another number of devices: XLA trusts a
    message.
    """
    message, kinds = from_proto(data), xla_client.OpSharding.Type
    parts, sizes, order = message.tile_assignment_dimensions, message.iota_reshape_dims, message.iota_transpose_perm
    numbers = message.tile_assignment_devices
    # The numbers are listed, or are those of an iota of these sizes, transposed.
    in_order = math.prod(sizes) == devices and not numbers and sorted(order) in ([], list(range(len(sizes))))
    listed = sorted(numbers) == list(range(devices)) if len(numbers) == devices else False
    fits = min(parts, default=0) > 0 and math.prod(parts) == devices and min(sizes, default=1) > 0
    is_tiled = message.type == kinds.OTHER and fits and (in_order or (listed and not sizes))
    if message.SerializeToString() != data or not (is_tiled or data == _REPLICATED.to_proto().SerializeToString()):
        raise ValueError(f"its {len(data)} bytes are no sharding over {devices} devices")
    return xla_client.HloSharding.from_proto(message)


def to_proto(sharding: xla_client.HloSharding) -> bytes:
    """Return the bytes of a sharding's OpSharding message."""
    return bytes(sharding.to_proto().SerializeToString())


def read_result_tiles(executable: Any, devices: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the tiles of each result, as XLA chose them: the parts of each dimension, and the devices' numbers.

    devices: the number of devices of the program.
    """
    return [_tiles(sharding, devices) for sharding in executable.get_output_shardings() or ()]


def read_parameter_tiles(executable: Any, devices: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the tiles of each parameter, in the form of `read_result_tiles`."""
    return [_tiles(sharding, devices) for sharding in executable.get_parameter_shardings() or ()]


class InspectionHandler:
    """A function of the tiles of a value, which XLA calls while it partitions a program for `devices` devices.

    XLA has only its `address`, so the handler must live until the program is compiled; it keeps `previous` alive.
    """

    __slots__ = ("_function", "_previous", "address")

    def __init__(
        self, call: Callable[[tuple[int, ...], tuple[int, ...]], None], devices: int, previous: InspectionHandler | None
    ) -> None:
        self._function = lambda sharding: call(*read_tiles(sharding, devices))
        self._previous = previous
        self.address: bytes = _jax.encode_inspect_sharding_callback(self._function)


def _tiles(operation_sharding: Any, devices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return read_tiles(xla_client.HloSharding.from_proto(operation_sharding), devices)


def read_tiles(sharding: xla_client.HloSharding, devices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tiles of an HloSharding: the parts of each dimension, and the devices' numbers, tile after tile."""
    if sharding.is_replicated() or not sharding.is_tiled():
        return (), tuple(range(devices))
    parts = tuple(sharding.tile_assignment_dimensions())
    if sharding.replicate_on_last_tile_dim():
        parts = parts[:-1]
    grid = np.array(sharding.tile_assignment_devices()).reshape(int(np.prod(parts)), -1)
    return parts, tuple(np.sort(grid, axis=1).ravel().tolist())


class Partitioner:
    """A custom call that XLA partitions by a Python function; `number` identifies it in the module's text.

    A module has only the number, so the partitioner must live until the module is compiled. partition: a function of
    the tiles of the operands and the results, each the parts of the dimensions and the devices' numbers. It returns the
    text of a module for one device, and the tiles of this module's operands and results.
    """

    __slots__ = ("_devices", "_partition", "_several", "number", "__weakref__")

    target = "xtrace_custom_partitioning"

    def __init__(self, partition: Callable[..., tuple[str, list[Any], list[Any]]], devices: int, several: bool) -> None:
        self._partition, self._devices, self._several = partition, devices, several
        # The number is random, so that programs of other processes on disk have other numbers.
        self.number = str(int.from_bytes(os.urandom(8)) >> 2)
        if not _partitioners:
            _jax.register_custom_call_partitioner(self.target, _same_sharding, _partition_call, _first_sharding, True)
        _partitioners[self.number] = self

    def __call__(self, operands: Sequence[Any], shape: Any, result: Any) -> tuple[bytes, list[Any], Any]:
        """Return the program of one device as bytes, the shardings of its operands, and that of its result."""
        results = result.tuple_elements() if self._several else [result]
        text, taken, given = self._partition(
            [read_tiles(s, self._devices) for s in operands], [read_tiles(s, self._devices) for s in results]
        )
        made = [hlo_sharding(*tiles) for tiles in given]
        whole = xla_client.HloSharding.tuple_sharding(shape, made) if self._several else made[0]
        return text.encode(), [hlo_sharding(*tiles) for tiles in taken], whole


_partitioners: weakref.WeakValueDictionary[str, Partitioner] = weakref.WeakValueDictionary()


def _partition_call(_: Any, operands: Sequence[Any], shape: Any, result: Any, number: bytes) -> Any:
    return _partitioners[number.decode()](operands, shape, result)


def _same_sharding(sharding: Any, *_: Any) -> Any:
    return sharding


def _first_sharding(_: Any, operands: Sequence[Any], *__: Any) -> Any:
    return operands[0]
