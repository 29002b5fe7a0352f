"""Exchange of data among the processes of a program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.shardings.memory_layout import Format
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding, pieces
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import array_on_mesh, put_at, put_in_format, to_concrete
from xtrace._src.xla import buffers, clients
from xtrace._src.xla.processes import distributed

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "live_devices", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]


class ProcessFailureError(Exception):
    """Processes ended in the block of `live_devices`.

    Args:
        failed_devices: the set of the devices of these processes.
    """

    def __init__(self, failed_devices: set[Any]) -> None:
        super().__init__(f"the processes of these devices have ended: {sorted(map(str, failed_devices))}")
        self.failed_devices = failed_devices


def _first_devices() -> list[Any]:
    """Return the first device of each process, in the order of the processes."""
    first: dict[int, Any] = {}
    for device in clients.devices():
        first.setdefault(device.process_index, device)
    return [first[process] for process in sorted(first)]


def _rows(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the stacked arrays of all processes; each process passes an array of the same shape and dtype."""
    devices = _first_devices()
    if len(devices) == 1:
        return value[None]
    mesh = Mesh(np.array(devices, object), ("process",))
    concrete = to_concrete(value)
    aval = ShapedArray((len(devices), *concrete.shape), concrete.dtype)
    split = NamedSharding(mesh, PartitionSpec("process"))
    own = [device for device in devices if device in split.addressable_devices]
    array = array_on_mesh(aval, split, [np.asarray(concrete)[None]], own)
    return np.array(put_at(array, NamedSharding(mesh, PartitionSpec())))


def process_allgather(in_tree: object, tiled: bool = False) -> Any:
    """Return a tree with the data of all processes; each process calls it with the same shapes.

    Args:
        in_tree: a pytree of arrays and numbers.
        tiled: whether the arrays of the processes are joined along their first axis; False stacks them along a new one.
            For an array with pieces in several processes, the result is always the whole array.

    Returns:
        A pytree of NumPy arrays.

    Raises:
        RuntimeError: the shapes differ, or a process does not come in time.

    Example:
        >>> xtrace.experimental.multihost_utils.process_allgather(jnp.arange(3))
        array([[0, 1, 2]], dtype=int32)
    """

    def gather(leaf: Any) -> Any:
        if isinstance(leaf, ConcreteArray) and not leaf.is_fully_addressable:
            mesh = Mesh(np.array(leaf.sharding.devices, object), ("device",))
            return np.asarray(put_at(leaf, NamedSharding(mesh, PartitionSpec())))
        rows = _rows(np.asarray(leaf))
        return rows.reshape(-1, *rows.shape[2:]) if tiled and rows.ndim > 1 else rows

    return pytree.tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: object, is_source: bool | None = None) -> Any:
    """Return the tree of one process in all processes; each process calls it with the same shapes.

    Args:
        in_tree: a pytree of arrays and numbers.
        is_source: whether this process has the tree to return, True in exactly one process; None means process 0.

    Returns:
        A pytree of NumPy arrays.

    Raises:
        RuntimeError: the shapes differ, or a process does not come in time.
        ValueError: no process, or more than one, is the source.

    Example:
        >>> xtrace.experimental.multihost_utils.broadcast_one_to_all(jnp.arange(3))
        array([0, 1, 2], dtype=int32)
    """
    source = 0
    if is_source is not None:
        sources = np.flatnonzero(_rows(np.array(bool(is_source))))
        if len(sources) != 1:
            raise ValueError(
                f"broadcast_one_to_all: is_source must be True in one process, it is in {sources.tolist()}"
            )
        source = int(sources[0])
    return pytree.tree_map(lambda leaf: _rows(np.asarray(leaf))[source], in_tree)


def _all_processes() -> list[int]:
    held = distributed.connection()
    return list(range(held.processes if held is not None else 1))


def sync_global_devices(name: str) -> None:
    """Wait until all processes have called this function.

    Args:
        name: the name of the place in the program, the same in all processes.

    Raises:
        AssertionError: another process passed another name.
        RuntimeError: a process does not come in time, or has called other programs over all processes before.

    Example:
        >>> xtrace.experimental.multihost_utils.sync_global_devices("saved")
    """
    waiting = f"sync_global_devices({abbreviate(name)})"
    names = distributed.exchange("sync", str(name), _all_processes(), waiting, compare=True)
    for process, other in enumerate(names):
        if other != str(name):
            raise AssertionError(
                f"sync_global_devices: this process is at {abbreviate(name)}, process {process} is at "
                f"{abbreviate(other)}; all must call it with the same names in the same order"
            )


def assert_equal(in_tree: object, fail_message: str = "") -> None:
    """Raise AssertionError unless all processes have the same values; each calls it with the same shapes.

    Args:
        in_tree: a pytree of arrays and numbers.
        fail_message: the start of the error's message.

    Raises:
        AssertionError: a value differs from the value in process 0.
        RuntimeError: the shapes differ, or a process does not come in time.

    Example:
        >>> xtrace.experimental.multihost_utils.assert_equal(jnp.ones(2))
    """
    for path, leaf in pytree.tree_flatten_with_path(in_tree)[0]:
        rows = _rows(np.asarray(leaf))
        for process, row in enumerate(rows):
            if not np.array_equal(row, rows[0]):
                raise AssertionError(
                    f"{fail_message or 'assert_equal'}: in_tree{key_paths.keystr(path)} is {abbreviate(rows[0])} in "
                    f"process 0 and {abbreviate(row)} in process {process}"
                )


def host_local_array_to_global_array(local_inputs: object, global_mesh: Mesh, pspecs: object) -> Any:
    """Return a tree of arrays over all processes; each process passes the part for its own devices.

    Args:
        local_inputs: a pytree of arrays.
        global_mesh: a mesh in which the devices of each process are a block.
        pspecs: the `PartitionSpec` of each array, or a tree prefix of them. A dimension that is split over several
            processes grows by their number; data that is not split must be the same in all processes.

    Returns:
        A pytree of arrays.

    Raises:
        ValueError: the devices of this process are no block of the mesh, or a dimension is not divisible.

    Example:
        >>> mesh = xtrace.sharding.Mesh(xtrace.devices()[:1], "x")
        >>> xtrace.experimental.multihost_utils.host_local_array_to_global_array(np.ones(2), mesh, xtrace.P("x")).shape
        (2,)
    """

    def to_global(leaf: Any, spec: PartitionSpec) -> Any:
        local, whole = NamedSharding(global_mesh.local_mesh, spec), NamedSharding(global_mesh, spec)
        host, aval = np.asarray(leaf), aval_of(leaf)
        grown = zip(host.shape, _parts(whole, host.ndim), _parts(local, host.ndim), strict=True)
        shape = tuple([n * k // j for n, k, j in grown])
        local.shard_shape(host.shape)
        parts = dict(zip(local.devices, [host[index] for index, _ in pieces(local, host.shape)], strict=True))
        own = [device for device in whole.devices if device in parts]
        copies = [np.array(parts[device], aval.dtype, order="C") for device in own]
        return array_on_mesh(ShapedArray(shape, aval.dtype), whole, copies, own)

    return _map_with_specs("host_local_array_to_global_array", to_global, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: object, global_mesh: Mesh, pspecs: object) -> Any:
    """Return a tree of arrays on the devices of this process, with their pieces of arrays over all processes.

    Args:
        global_inputs: a pytree of arrays on `global_mesh`.
        global_mesh: a mesh in which the devices of each process are a block.
        pspecs: the `PartitionSpec` of each array, or a tree prefix of them.

    Returns:
        A pytree of arrays.

    Raises:
        ValueError: the devices of this process are no block of the mesh, or a dimension is not divisible.

    Example:
        >>> mesh = xtrace.sharding.Mesh(xtrace.devices()[:1], "x")
        >>> xtrace.experimental.multihost_utils.global_array_to_host_local_array(jnp.ones(2), mesh, xtrace.P("x")).shape
        (2,)
    """

    def to_local(leaf: Any, spec: PartitionSpec) -> Any:
        local, whole = NamedSharding(global_mesh.local_mesh, spec), NamedSharding(global_mesh, spec)
        array = put_in_format(leaf, Format(None, whole))
        grown = zip(array.shape, _parts(whole, array.ndim), _parts(local, array.ndim), strict=True)
        aval = ShapedArray(tuple([n * j // k for n, k, j in grown]), array.dtype)
        held = {buffer._sharding._device: buffer for buffer in buffers.get_pieces(array.buffer)}
        return array_on_mesh(aval, local, [held[device] for device in local.devices], local.devices)

    return _map_with_specs("global_array_to_host_local_array", to_local, global_inputs, pspecs)


def _parts(sharding: NamedSharding, ndim: int) -> tuple[int, ...]:
    """Return the number of parts of each dimension."""
    return tuple(sharding.tiles(ndim)[0])


def _map_with_specs(function: str, each: Callable[[Any, Any], Any], tree: object, specs: object) -> Any:
    leaves, structure = pytree.tree_flatten(tree)
    if isinstance(specs, PartitionSpec):
        matched = [specs] * len(leaves)
    else:
        try:
            matched = pytree.broadcast_prefix(specs, tree, is_leaf=lambda s: isinstance(s, PartitionSpec))
        except ValueError as error:
            raise ValueError(f"{function}: pspecs must be a PartitionSpec or a tree prefix of these: {error}") from None
    return pytree.tree_unflatten(structure, list(map(each, leaves, matched)))


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """Return a context whose value is the list of devices of live processes, the same list in each of them.

    Args:
        devices: devices of several processes, this process included.

    Returns:
        A context manager. Its block succeeds in all live processes or fails in all of them.

    Raises:
        RuntimeError: the processes are not connected, or the block failed in another process.
        ValueError: no device belongs to this process.
        ProcessFailureError: a process ended in the block.

    Example:
        >>> with xtrace.experimental.multihost_utils.live_devices(xtrace.devices()) as devices:
        ...     devices == xtrace.devices()
        True
    """
    held = distributed.connection()
    if held is None:
        raise RuntimeError("live_devices: the processes are not connected; call xtrace.distributed.initialize first")
    processes = sorted({device.process_index for device in devices})
    if held.process not in processes:
        raise ValueError(f"live_devices: devices must have some of this process, {held.process}, got {devices}")
    alive = distributed.live_processes(processes)
    failure = None
    try:
        yield [device for device in devices if device.process_index in alive]
    except Exception as error:
        failure = error
    still = distributed.live_processes(alive)
    if ended := set(alive) - set(still):
        raise ProcessFailureError({d for d in devices if d.process_index in ended}) from failure
    outcomes = distributed.exchange("live", repr(failure)[:200] if failure else "", alive, "the end of live_devices")
    if failure is not None:
        raise failure
    for process, outcome in zip(alive, outcomes, strict=True):
        if outcome:
            raise RuntimeError(f"live_devices: the block has failed in process {process}: {outcome}")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return whether all processes should save at this step, because one of them received SIGTERM.

    From the first call on, SIGTERM does not end the process.

    Args:
        step_id: the number of the step; all processes call the function at every step.

    Returns:
        A bool.

    Raises:
        RuntimeError: the processes are not connected.

    Example:
        >>> xtrace.experimental.multihost_utils.reached_preemption_sync_point(1)
        False
    """
    if distributed.connection() is None:
        raise RuntimeError(
            "reached_preemption_sync_point: the processes are not connected; call xtrace.distributed.initialize first"
        )
    return distributed.reached_sync_point(step_id)
