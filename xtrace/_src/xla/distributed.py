"""The connection of this process to the others of a program: jaxlib's coordinator, key-value store and barriers."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxlib import _jax

DistributedError = _jax.JaxRuntimeError


class Connection(NamedTuple):
    """A connection to the coordinator.

    service: the coordinator, in process 0 only. host: the name of this machine for the CPUs' collectives, None for the
    one that the machine has itself. timeout: how many seconds processes wait for each other.
    """

    client: Any
    service: Any
    address: str
    process: int
    processes: int
    host: str | None
    timeout: int


_connections: list[Connection] = []
_programs = itertools.count()
_LOOPBACK = re.compile(r"(localhost|127\.[\d.]+|\[::1\])")


def connection() -> Connection | None:
    """Return the connection of this process, None in a program of one process."""
    return _connections[0] if _connections else None


def connect(
    address: str, processes: int, process: int, *, bind_address: str, timeout: int, heartbeat: int, shutdown: int
) -> None:
    """Connect this process to the others; process 0 starts the coordinator first. RuntimeError if one does not come."""
    service = None
    if process == 0:
        service = _jax.get_distributed_runtime_service(
            bind_address, processes, heartbeat_timeout=heartbeat, cluster_register_timeout=timeout,
            shutdown_timeout=shutdown,
        )
    try:
        client = _jax.get_distributed_runtime_client(
            address, process, init_timeout=timeout, heartbeat_timeout=heartbeat, shutdown_timeout=shutdown,
            use_compression=True,
        )
        client.connect()
    except BaseException:
        if service is not None:
            service.shutdown()
        raise
    loopback = _LOOPBACK.fullmatch(address.rpartition(":")[0])
    host = "127.0.0.1" if loopback else None
    _connections[:] = [Connection(client, service, address, process, processes, host, timeout)]


def disconnect() -> None:
    """Leave the program when all processes do; process 0 ends the coordinator."""
    held = _connections.pop()
    held.client.shutdown()
    if held.service is not None:
        held.service.shutdown()


def cpu_client_options() -> dict[str, Any]:
    """Return the options of a CPU client whose devices belong to a program of several processes."""
    held = connection()
    if held is None:
        return {}
    return {
        "distributed_client": held.client, "node_id": held.process, "num_nodes": held.processes,
        "collectives": _jax.make_gloo_tcp_collectives(held.client, held.host),
    }


def check_same_program(text: str, devices: Sequence[Any]) -> None:
    """Raise a RuntimeError if the processes of `devices` are about to run different modules, which would hang."""
    held = connection()
    if held is None:
        return
    processes = sorted({d.process_index for d in devices})
    if len(processes) == 1:
        return
    number = next(_programs)
    match = re.search(r"^module @([^\s{]+)", text, re.MULTILINE)
    name = match[1] if match else "?"
    own = f"{hashlib.sha256(text.encode()).hexdigest()} {name}"
    held.client.key_value_set(f"xtrace/program/{number}/{held.process}", own)
    for process in processes:
        try:
            other = held.client.blocking_key_value_get(f"xtrace/program/{number}/{process}", held.timeout * 1000)
        except DistributedError as error:
            raise RuntimeError(
                f"process {held.process} compiles {name}, its program number {number} over several processes, and "
                f"process {process} has not compiled one in {held.timeout} seconds, or has ended: {error}"
            ) from None
        if other != own:
            theirs = other.partition(" ")[2]
            where = "with another module: shapes, constants or settings differ" if theirs == name else "a different one"
            raise RuntimeError(
                f"the processes part at program number {number} over several processes: process {held.process} "
                f"compiles {name}, process {process} compiles {theirs}, {where}. All processes must call the same "
                "functions on arrays over several processes, in the same order"
            )
