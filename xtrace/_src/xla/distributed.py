"""The connection of this process to the others of a program: jaxlib's coordinator, key-value store and barriers."""

from __future__ import annotations

import hashlib
import itertools
import re
import socket
import time
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
# The numbers of the next calls, for each kind and its processes.
_calls: dict[tuple[str, tuple[int, ...]], Any] = {}
_LOOPBACK = re.compile(r"(localhost|127\.[\d.]+|\[::1\])")


def connection() -> Connection | None:
    """Return the connection of this process, None in a program of one process."""
    return _connections[0] if _connections else None


def connect(
    address: str, processes: int, process: int, *, bind_address: str, timeout: int, heartbeat: int, shutdown: int
) -> None:
    """Connect this process to the others; process 0 starts the coordinator first. OSError if that is not reachable."""
    start_timeout = timeout
    # jaxlib ends the process if the coordinator does not answer.
    if process != 0:
        start_timeout = timeout - _wait_for_listener(address, timeout)
    service = None
    if process == 0:
        _check_free(bind_address)
        service = _jax.get_distributed_runtime_service(
            bind_address, processes, heartbeat_timeout=heartbeat, cluster_register_timeout=timeout,
            shutdown_timeout=shutdown,
        )
    try:
        client = _jax.get_distributed_runtime_client(
            address, process, init_timeout=start_timeout, heartbeat_timeout=heartbeat, shutdown_timeout=shutdown,
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


def _check_free(address: str) -> None:
    """Raise an OSError if nothing can listen at an address, for which jaxlib ends the process."""
    host, _, port = address.rpartition(":")
    with socket.create_server((host.strip("[]"), int(port)), family=_family(host)):
        pass


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if host.startswith("[") else socket.AF_INET


def _wait_for_listener(address: str, timeout: int) -> int:
    """Wait until something listens at an address, and return the seconds that it took; OSError after `timeout`."""
    host, _, port = address.rpartition(":")
    begin = time.monotonic()
    while True:
        left = begin + timeout - time.monotonic()
        try:
            socket.create_connection((host.strip("[]"), int(port)), max(left, 0.1)).close()
        except OSError:
            if left < 0.2:
                raise
            time.sleep(0.1)
        else:
            return min(int(time.monotonic() - begin), timeout - 1)


def disconnect() -> None:
    """Leave the program when all processes do; process 0 ends the coordinator."""
    held = _connections.pop()
    while _preemption_managers:
        _preemption_managers.pop().shutdown()
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


def exchange(kind: str, own: str, processes: Sequence[int], waiting: str) -> list[str]:
    """Return the texts that the processes give at this call, which is the same one in each of them.

    waiting: what this process waits for, as the RuntimeError says it if a process does not come in time.
    """
    held = connection()
    if held is None:
        return [own]
    number = next(_calls.setdefault((kind, tuple(processes)), itertools.count()))
    key = f"xtrace/{kind}/{'-'.join(map(str, processes))}/{number}"
    held.client.key_value_set(f"{key}/{held.process}", own)
    texts = []
    for process in processes:
        try:
            texts.append(held.client.blocking_key_value_get(f"{key}/{process}", held.timeout * 1000))
        except DistributedError as error:
            raise RuntimeError(
                f"process {held.process} waits at {waiting}, and process {process} has not come there in "
                f"{held.timeout} seconds, or has ended: {error}"
            ) from None
    return texts


def check_same_program(text: str, devices: Sequence[Any]) -> None:
    """Raise a RuntimeError if the processes of `devices` are about to run different modules, which would hang."""
    held = connection()
    if held is None:
        return
    processes = sorted({d.process_index for d in devices})
    if len(processes) == 1:
        return
    match = re.search(r"^module @([^\s{]+)", text, re.MULTILINE)
    name = match[1] if match else "?"
    own = f"{hashlib.sha256(text.encode()).hexdigest()} {name}"
    texts = exchange("program", own, processes, f"the compilation of {name} over several processes")
    for process, other in zip(processes, texts, strict=True):
        if other != own:
            theirs = other.partition(" ")[2]
            detail = ", with other shapes, constants or settings" if theirs == name else ""
            raise RuntimeError(
                f"the processes part at a program over several of them: process {held.process} compiles {name}, "
                f"process {process} compiles {theirs}{detail}. All processes must call the same functions on arrays "
                "over several processes, in the same order"
            )


def live_processes(processes: Sequence[int]) -> list[int]:
    """Return the processes among these that are alive, when each of them has asked."""
    held = connection()
    assert held is not None
    return sorted(held.client.get_live_nodes(list(processes)))


def reached_sync_point(step: int) -> bool:
    """Return whether all processes are to save at this step; the first call begins to watch for SIGTERM."""
    held = connection()
    assert held is not None
    if not _preemption_managers:
        _preemption_managers.append(_jax.create_preemption_sync_manager())
        _preemption_managers[0].initialize(held.client)
    return bool(_preemption_managers[0].reached_sync_point(step))


_preemption_managers: list[Any] = []
