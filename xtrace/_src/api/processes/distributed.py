"""Programs of several processes: connecting them before the first computation."""

from __future__ import annotations

import os
from collections.abc import Sequence

from xtrace._src.api.processes.clusters import detect_cluster
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.xla import clients
from xtrace._src.xla.processes import distributed


def initialize(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None, cluster_detection_method: str | None = None,
    initialization_timeout: int = 300, heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None, slice_index: int | None = None, partition_index: int | None = None,
) -> None:
    """Connect this process to the others of the program; call it in each of them before the first computation.

    Args:
        coordinator_address: host and port of process 0, as in "10.0.0.1:1234". If this argument or one of the next two
            is None, it is read from XTRACE_COORDINATOR_ADDRESS, XTRACE_NUM_PROCESSES and XTRACE_PROCESS_ID (or with
            JAX_), Slurm, Open MPI or Kubernetes.
        num_processes: the number of processes.
        process_id: the number of this process, from 0.
        local_device_ids: the numbers of the GPUs that this process uses; None for all of its machine.
        cluster_detection_method: "slurm", "ompi" or "k8s" to read from one scheduler only, "deactivate" for none.
        initialization_timeout: the seconds that processes wait for each other at the start.
        heartbeat_timeout_seconds: the seconds of silence after which a process counts as dead. A process that waits for
            it gets a RuntimeError, and should save its data and end: after about twice the time jaxlib aborts it,
            unless ``jax_enable_recoverability`` is set.
        shutdown_timeout_seconds: the seconds that an ending process waits for the others.
        coordinator_bind_address: the address at which process 0 listens; None for `coordinator_address`, which other
            machines reach only if it is an address of the network.
        slice_index: the old name of `partition_index`; it must be None.
        partition_index: the part of a machine with several networks; it must be None.

    Raises:
        RuntimeError: the process is connected already or has computed, process 0 is not reached in time, or a process
            has another version of jaxlib. If other processes do not come in time, or the machine of process 0 is
            lost, jaxlib ends this process with a message of its own.
        ValueError: an argument is missing and the environment does not have it, or is out of range.
        NotImplementedError: `partition_index` or `slice_index` is given.

    Example:
        >>> xtrace.distributed.initialize("127.0.0.1:1234", num_processes=2, process_id=0)
    """
    if distributed.connection() is not None:
        raise RuntimeError("initialize: this process is connected already; call xtrace.distributed.shutdown() first")
    if clients.any_started():
        raise RuntimeError(
            "initialize: this process has devices already; call it before the first computation and before "
            "xtrace.devices()"
        )
    if slice_index is not None or partition_index is not None:
        raise NotImplementedError("initialize: partition_index and slice_index are not supported; leave them out")
    named = detect_cluster(os.environ, cluster_detection_method)
    address = coordinator_address if coordinator_address is not None else named.address
    count = num_processes if num_processes is not None else named.processes
    number = process_id if process_id is not None else named.process
    parts = {"coordinator_address": address, "num_processes": count, "process_id": number}
    if missing := [name for name, value in parts.items() if value is None]:
        raise ValueError(
            f"initialize: {', '.join(missing)} must be given; the environment does not define it (set "
            f"{', '.join(_VARIABLES[name] for name in missing)}, or start the processes by srun or mpirun)"
        )
    host, _, port = str(address).rpartition(":")
    if not isinstance(address, str) or not host or not port.isdecimal():
        raise ValueError(
            f"initialize: coordinator_address must be a host and a port, as in '127.0.0.1:1234', got "
            f"{abbreviate(address)}"
        )
    count = to_integer("num_processes", count)
    number = to_integer("process_id", number)
    if not 0 <= number < count:
        raise ValueError(f"initialize: process_id must be between 0 and num_processes - 1 = {count - 1}, got {number}")
    if local_device_ids is not None:
        ids = [local_device_ids] if isinstance(local_device_ids, int) else list(local_device_ids)
        for setting in ("jax_cuda_visible_devices", "jax_rocm_visible_devices"):
            config.config.update(setting, ",".join(map(str, ids)))
    try:
        distributed.connect(
            address, count, number, bind_address=coordinator_bind_address or address, timeout=initialization_timeout,
            heartbeat=heartbeat_timeout_seconds, shutdown=shutdown_timeout_seconds,
            recoverable=config.enable_recoverability.value,
        )
    except (OSError, distributed.DistributedError) as error:
        listening = coordinator_bind_address or address
        raise RuntimeError(
            f"initialize: process 0 cannot listen at {listening}; choose a free port and an address of this machine: "
            f"{error}" if number == 0 else
            f"initialize: process {number} of {count} has not met process 0 at {address} in {initialization_timeout} "
            f"seconds. Start that process too, and give each its address: {error}"
        ) from None


_VARIABLES = {
    "coordinator_address": "XTRACE_COORDINATOR_ADDRESS", "num_processes": "XTRACE_NUM_PROCESSES",
    "process_id": "XTRACE_PROCESS_ID",
}


def is_initialized() -> bool:
    """Return whether `initialize` has connected this process to others.

    Returns:
        A bool.

    Example:
        >>> xtrace.distributed.is_initialized()
        False
    """
    return distributed.connection() is not None


def shutdown() -> None:
    """End the connection to the other processes, when all of them do; without one, do nothing.

    Raises:
        RuntimeError: another process has ended before, or does not end in time.

    Example:
        >>> xtrace.distributed.shutdown()
    """
    if distributed.connection() is not None:
        distributed.disconnect()
