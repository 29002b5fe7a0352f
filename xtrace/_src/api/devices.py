"""Devices, and moving data between them and the host."""

from __future__ import annotations

import copy
import os
import platform as system
import sys
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core import dtypes, pytree
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import MemorySpace, aval_of, memory_space_of_kind
from xtrace._src.core.function_names import copy_with_name
from xtrace._src.core.memory_layout import Format
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.device_put import CopySemantics, put
from xtrace._src.runtime.arrays import ConcreteArray, deleted_message
from xtrace._src.runtime.transfer import array_from_host, current_device, put_on, to_concrete
from xtrace._src.xla import clients, guards
from xtrace._src.xla.buffers import SingleDeviceSharding
from xtrace._src.xla.versions import JAXLIB_VERSION


def devices(backend: str | None = None) -> list[Any]:
    """Return all devices of the platform `backend` ("cpu", "gpu", "tpu"), or of the default one.

    RuntimeError if the platform is not there.
    """
    return clients.devices(backend)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """Return the devices of one process: this one, or `process_index` (`host_id` is its older name).

    ValueError for a process that is not there.
    """
    index = process_index if process_index is not None else host_id
    if index is None:
        return clients.local_devices(backend)
    if index not in (known := process_indices(backend)):
        raise ValueError(f"local_devices: there is no process {abbreviated(index)}; the processes are {known}")
    return [d for d in clients.devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices."""
    return len(clients.devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process."""
    return len(clients.local_devices(backend))


def default_backend() -> str:
    """Return the platform that new data goes to, as ``cpu``, ``gpu`` or ``tpu``."""
    return {"cuda": "gpu"}.get(name := clients.default_platform(), name)


def process_index(backend: str | None = None) -> int:
    """Return the number of this process among those that share the devices."""
    return int(clients.client(backend).process_index())


def process_count(backend: str | None = None) -> int:
    """Return the number of processes that share the devices."""
    return 1 + max(d.process_index for d in clients.devices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of the processes that share the devices, in order."""
    return sorted({int(d.process_index) for d in clients.devices(backend)})


# The names of older programs.
host_id = copy_with_name(process_index, "host_id")
host_count = copy_with_name(process_count, "host_count")
host_ids = copy_with_name(process_indices, "host_ids")


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Return the pytree `x` with its leaves on `device`: a device, a sharding, a memory, None for the default device.

    Given a device the arrays are committed to it: computations follow them. A memory is ``xtrace.memory.Space.Device``
    or ``Host``. NumPy data is copied unless `may_alias`. With `donate` an array that moves to another device is deleted
    where it was. Under a trace the leaves stay on the device that the compiled program will run on. `device`, `src`
    (where traced leaves were), `donate` and `may_alias` may be trees, of which `x` has the structure or a finer one.

    TypeError for leaves that are no arrays, ValueError for a device that is none.
    """
    pairs, tree = pytree.tree_flatten_with_path(x)
    count = len(pairs)
    moves = list(map(
        _Move,
        [path for path, _ in pairs],
        [leaf for _, leaf in pairs],
        map(_checked_target, _for_leaves("device", device, x, count, "a device, a sharding or None")),
        _for_leaves("src", src, x, count, "a device, a sharding or None"),
        map(bool, _for_leaves("donate", donate, x, count, "a bool")),
        _for_leaves("may_alias", may_alias, x, count, "a bool or None"),
    ))
    for move in moves:
        if move.donated and move.aliased:
            raise ValueError(f"device_put: donate and may_alias are both true for {move.name}; choose one")
        try:
            aval_of(move.leaf)
        except (TypeError, ValueError) as error:
            raise type(error)(f"device_put: {move.name}: {error}") from None
    recorded = [m for m in moves if m.is_recorded()]
    found = iter(_recorded(recorded) if recorded else [])
    with guards.asked_for("put"):
        return pytree.tree_unflatten(tree, [next(found) if m.is_recorded() else _put_leaf(m) for m in moves])


class _Move(NamedTuple):
    """A leaf, with where it goes and how."""

    path: Any
    leaf: Any
    target: Any
    source: Any
    donated: bool
    aliased: Any

    @property
    def name(self) -> str:
        """How messages name the leaf."""
        return f"x{pytree.keystr(self.path)}"

    def is_recorded(self) -> bool:
        """Whether the operation is bound, under the current trace, and not done here."""
        return isinstance(self.leaf, Tracer) or isinstance(self.target, MemorySpace)

    def semantics(self) -> CopySemantics:
        """What the operation may do with the leaf's memory."""
        if self.donated:
            return CopySemantics.DONATE_INPUT
        return CopySemantics.ALWAYS_COPY if self.aliased is False else CopySemantics.REUSE_INPUT


def _recorded(moves: list[_Move]) -> list[Any]:
    return put(
        [m.leaf for m in moves], [m.target for m in moves], [m.source for m in moves], [m.semantics() for m in moves]
    )


def _for_leaves(name: str, value: Any, x: Any, count: int, expected: str) -> list[Any]:
    """Return an argument's value for each leaf of `x`; it may be a tree prefix of `x`."""
    if value is None or isinstance(value, (bool, clients.Device, SingleDeviceSharding, MemorySpace, Format)):
        return [value] * count
    try:
        return pytree.broadcast_prefix(value, x, is_leaf=lambda v: v is None)
    except ValueError as error:
        raise ValueError(f"device_put: {name} must be {expected}, or a tree of these like x: {error}") from None


def _checked_target(target: Any) -> Any:
    if isinstance(target, Format):
        target = target.sharding
    if target is None or isinstance(target, (clients.Device, SingleDeviceSharding, MemorySpace)):
        return target
    raise ValueError(
        "device_put: device must be a device (see xtrace.devices()), a memory such as xtrace.memory.Space.Host, "
        f"a sharding or None, got {abbreviated(target)}"
    )


def _put_leaf(move: _Move) -> Array:
    leaf, aliased = move.leaf, move.aliased
    sharding = move.target if isinstance(move.target, SingleDeviceSharding) else None
    device = move.target if sharding is None else sharding.device
    if isinstance(leaf, np.ndarray) and aliased:
        return array_from_host(leaf, aval_of(leaf), device, copy=False)
    if isinstance(leaf, ConcreteArray) and leaf.is_deleted():
        raise RuntimeError(f"device_put: {move.name}: {deleted_message(leaf.aval)}")
    if isinstance(leaf, ConcreteArray) and aliased is False:
        # To the same device, that is: what moves gets memory of its own anyway.
        leaf = copy.deepcopy(leaf)
    if device is None:
        return to_concrete(leaf)
    moved = put_on(leaf, device, None if sharding is None else memory_space_of_kind(sharding.memory_kind))
    if move.donated and isinstance(leaf, ConcreteArray) and moved.buffer is not leaf.buffer:
        leaf.delete()
    return moved


def one_device(function: str, argument: str, shardings: Any) -> Any:
    """Return the device that a tree of shardings names, None if it names none.

    TypeError for what is no sharding of one device, ValueError if there are several, or one is of other memory.
    """
    leaves = pytree.tree_leaves(shardings)
    for sharding in leaves:
        if not isinstance(sharding, SingleDeviceSharding):
            raise TypeError(
                f"{function}: {argument} must be None, a sharding such as x.sharding of an array, or a tree of these; "
                f"got {abbreviated(sharding)}. Layouts over several devices are not there yet"
            )
        if memory_space_of_kind(sharding.memory_kind) is not MemorySpace.Device:
            raise ValueError(
                f"{function}: {argument} asks for {sharding.memory_kind} memory; move the array with "
                "xtrace.device_put, which may be called inside the function, instead"
            )
    devices = {sharding.device for sharding in leaves}
    if len(devices) > 1:
        raise ValueError(f"{function}: {argument} names several devices, {', '.join(map(str, devices))}; it takes one")
    return devices.pop() if devices else None


def device_get(x: Any) -> Any:
    """Return the pytree `x` with its arrays as NumPy arrays, read-only views where the memory is the host's.

    Random keys, of which NumPy knows nothing, stay as they are.
    """

    def get(leaf: Any) -> Any:
        if isinstance(leaf, ConcreteArray) and type(leaf.dtype) is dtypes.ExtendedDType:
            return leaf
        return np.asarray(leaf) if isinstance(leaf, (ConcreteArray, Tracer)) else leaf

    arrays = [leaf for leaf in pytree.tree_leaves(x) if isinstance(leaf, ConcreteArray)]
    for array in arrays:
        array.copy_to_host_async()
    with guards.asked_for("get"):
        return pytree.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait for all arrays in the pytree `x`, and return it."""
    for leaf in pytree.tree_leaves(x):
        if isinstance(leaf, ConcreteArray):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start moving all arrays in the pytree `x` to the host, and return it."""
    for leaf in pytree.tree_leaves(x):
        if isinstance(leaf, ConcreteArray):
            leaf.copy_to_host_async()
    return x


def typeof(x: Any) -> Any:
    """Return the abstract value of an array, tracer or scalar, or that a ShapeDtypeStruct describes."""
    return aval_of(x)


# Environment variables that change what a program does.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "JAX_", "TPU_", "XLA_", "XTRACE_")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions and devices that a bug report needs, or return them as text."""
    lines = [
        f"jaxlib: {'.'.join(map(str, JAXLIB_VERSION))}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"system: {system.platform()}",
        f"devices: {', '.join(map(str, clients.devices()))} (default {current_device()})",
        f"processes: {process_count()}",
        *[f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(_VARIABLES)],
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
