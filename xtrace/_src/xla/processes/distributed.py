"""The connection of this process to the others of a program: jaxlib's coordinator, key-value store and barriers."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import itertools
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jaxlib import _jax

from xtrace._late_imports import late_modules

with late_modules(globals()):
    import hashlib
    import json
    import socket

    from xtrace._src.xla.processes import coordinator_relay, peers

DistributedError = _jax.JaxRuntimeError


class Connection(NamedTuple):
    """A connection to the coordinator.

    service: the coordinator, in process 0 only. relay: the relay to the coordinator, in the other processes. host: the
    name of this machine for the CPUs' collectives, None for its own host name. timeout, shutdown: the seconds that
    processes wait for each other, during the program and at its end. peers: the other processes, None until they are
    known.
    """

    client: Any
    service: Any
    address: str
    process: int
    processes: int
    host: str | None
    timeout: int
    shutdown: int
    relay: Any = None
    peers: Any = None


# The connection of this process; none in a program of one process.
connections: list[Connection] = []
# The number of the next exchange, for each kind and its processes.
_calls: dict[tuple[str, tuple[int, ...]], Any] = {}
_LOOPBACK = r"(localhost|127\.[\d.]+|\[::1\])"


def connection() -> Connection | None:
    """Return the connection of this process, None in a program of one process."""
    return connections[0] if connections else None


def connect(
    address: str, processes: int, process: int, *, bind_address: str, timeout: int, heartbeat: int, shutdown: int,
    recoverable: bool = False,
) -> None:
    """Connect this process to the others; process 0 starts the coordinator. OSError if that is not reachable.

    recoverable: whether a process lives on when others have ended.
    """
    start_timeout = timeout
    # After this many seconds jaxlib aborts the process: later than xtrace's own heartbeat raises, with time to save.
    fatal = 2 * heartbeat + 10
    # jaxlib would abort the process if the coordinator did not answer.
    if process != 0:
        start_timeout = timeout - _wait_for_listener(address, timeout)
    service, relay, reached = None, None, address
    if process != 0:
        relay = coordinator_relay.CoordinatorRelay(_split_address(address))
        reached = relay.address
    else:
        _check_free(bind_address)
        service = _jax.get_distributed_runtime_service(
            bind_address, processes, heartbeat_timeout=fatal, cluster_register_timeout=timeout,
            shutdown_timeout=shutdown, recoverable=recoverable,
        )
    try:
        client = _jax.get_distributed_runtime_client(
            reached, process, init_timeout=start_timeout, heartbeat_timeout=fatal, shutdown_timeout=shutdown,
            use_compression=True,
        )
        with _announce_wait(process, processes, timeout):
            client.connect()
    except BaseException:
        if service is not None:
            service.shutdown()
        raise
    loopback = re.fullmatch(_LOOPBACK, address.rpartition(":")[0])
    host = "127.0.0.1" if loopback else None
    held = Connection(client, service, address, process, processes, host, timeout, shutdown, relay)
    connections[:] = [held]
    if processes == 1:
        return
    try:
        about = exchange("about", peers.describe_this_process(), range(processes), "initialize")
        check_versions(process, about)
    except BaseException:
        disconnect()
        raise
    if not faulthandler.is_enabled():
        # If jaxlib aborts the process, Python shows the lines that were running.
        with contextlib.suppress(Exception):
            faulthandler.enable()
    connections[:] = [held._replace(peers=peers.Peers(client, relay, process, about, heartbeat, recoverable))]


class End(NamedTuple):
    """The end of an execution over several processes."""

    token: Any
    processes: tuple[int, ...]

    def block_until_ready(self) -> None:
        """Wait for it."""
        self.token.block_until_ready()


def wait_for(awaited: Any) -> None:
    """Wait for a buffer, a token of this process or an `End`; RuntimeError if a process that it needs is lost."""
    held = connections[0]
    if held.peers is None:
        awaited.block_until_ready()
    elif isinstance(awaited, End):
        held.peers.wait_for(awaited, awaited.processes)
    else:
        devices = getattr(getattr(awaited, "_sharding", None), "device_set", ())
        processes = {device.process_index for device in devices}
        held.peers.wait_for(awaited, processes if len(processes) > 1 else ())


@contextlib.contextmanager
def _announce_wait(process: int, processes: int, timeout: int) -> Iterator[None]:
    """Report on stderr that processes are missing, shortly before jaxlib names them and aborts this one."""
    line = (
        f"xtrace: process {process} has waited {timeout} seconds for the other processes, {processes - 1} of them, and "
        "some have not come; jaxlib names these and ends this process\n"
    )
    timer = threading.Timer(max(timeout - 0.5, 0.1), sys.stderr.write, (line,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_versions(process: int, about: Sequence[str]) -> None:
    """Raise a RuntimeError if a process has another version of jaxlib than this one."""
    described = list(map(json.loads, about))
    versions = [one["jaxlib"] for one in described]
    for other, version in enumerate(versions):
        if version != versions[process]:
            raise RuntimeError(
                f"initialize: process {other} on {described[other]['host']} has jaxlib {version}, process "
                f"{process} has jaxlib {versions[process]}. Install the same version in all"
            )


def call(processes: Sequence[int], function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, which waits for `processes`; RuntimeError if one of them is lost."""
    held = connection()
    if held is None or held.peers is None:
        return function(*arguments)
    return held.peers.call(processes, function, *arguments)


def _check_free(address: str) -> None:
    """Raise OSError if the address is in use; jaxlib would abort the process."""
    host, port = _split_address(address)
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
        pass


def _split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of an address such as ``[::1]:8476``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _wait_for_listener(address: str, timeout: int) -> int:
    """Wait until a process listens at an address, and return the seconds of the wait; OSError after `timeout`."""
    begin = time.monotonic()
    while True:
        left = begin + timeout - time.monotonic()
        try:
            socket.create_connection(_split_address(address), max(left, 0.1)).close()
        except OSError:
            if left < 0.2:
                raise
            time.sleep(0.1)
        else:
            return min(int(time.monotonic() - begin), timeout - 1)


def disconnect() -> None:
    """Wait for the end of all processes, and leave the program; process 0 ends the coordinator."""
    held = connections[0]
    everyone = range(held.processes)
    try:
        if held.peers is not None:
            held.peers.check(everyone)
            held.peers.leave()
            exchange("end", "", everyone, "the end of the program", timeout=held.shutdown, compare=True)
        while _preemption_managers:
            _preemption_managers.pop().shutdown()
        call(everyone, held.client.shutdown)
    except Exception as error:
        if held.peers is not None:
            # The connection stays open, to tell the others, and because the coordinator waits for them.
            held.peers.failure = held.peers.failure or str(error)
        raise
    if held.peers is not None:
        held.peers.stop()
    connections.clear()
    if held.service is not None:
        held.service.shutdown()
    if held.relay is not None:
        held.relay.close()


@atexit.register
def _leave() -> None:
    """Leave the program at the end of the process. After a failure of any process, tell the others and exit at once.

    Threads that wait for a lost process would block an orderly end of Python and jaxlib.
    """
    held = connection()
    if held is None or held.peers is None:
        return
    error = sys.modules["xtrace._src.xla.processes.peers"].unhandled_error()
    try:
        if error is None and held.peers.failure is None:
            disconnect()
            return
    except Exception as late:
        print(f"xtrace: at the end of process {held.process}: {late}", file=sys.stderr)
    with contextlib.suppress(Exception):
        held.peers.leave(error or held.peers.failure)
        if held.service is not None:
            held.peers.wait_for_others()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if error is None and held.peers.recoverable else 1)


def cpu_client_options(collectives: str | None, minutes: tuple[int, int]) -> dict[str, Any]:
    """Return the options of a CPU client in a program of several processes; none in a program of one.

    minutes: the time limits for the devices of this machine, and for all devices. Raises RuntimeError for collectives
    that jaxlib lacks.
    """
    held = connection()
    if held is None:
        return {}
    if collectives not in ("gloo", None):
        raise RuntimeError(
            f"jax_cpu_collectives_implementation is {collectives!r}, and jaxlib's wheels have gloo only: set 'gloo'"
        )
    return plugin_client_options() | {
        "collectives": _jax.make_gloo_tcp_collectives(held.client, held.host) if collectives else None,
        "get_local_topology_timeout_minutes": minutes[0], "get_global_topology_timeout_minutes": minutes[1],
    }


def plugin_client_options() -> dict[str, Any]:
    """Return the options of a plugin's client in a program of several processes; none in a program of one."""
    held = connection()
    if held is None:
        return {}
    return {"distributed_client": held.client, "node_id": held.process, "num_nodes": held.processes}


def exchange(
    kind: str, own: str, processes: Sequence[int], waiting: str, *, timeout: int | None = None, compare: bool = False
) -> list[str]:
    """Return the texts of all `processes`, each of which makes the same call with its `own` text.

    waiting: the purpose of the wait, for the RuntimeError if a process is late. timeout: the seconds to wait, by
    default those of `initialize`. compare: whether to check that the processes have called the same programs.
    """
    held = connection()
    if held is None:
        return [own]
    processes = tuple(processes)
    called = held.peers.digest_calls(processes) if compare and held.peers is not None else ""
    number = next(_calls.setdefault((kind, processes), itertools.count()))
    key = f"xtrace/{kind}/{'-'.join(map(str, processes))}/{number}"
    held.client.key_value_set(f"{key}/{held.process}", f"{called} {own}")
    seconds = held.timeout if timeout is None else timeout
    texts = []
    for process in processes:
        try:
            texts.append(call(processes, held.client.blocking_key_value_get, f"{key}/{process}", seconds * 1000))
        except DistributedError as error:
            raise RuntimeError(
                f"process {held.process} waits at {waiting}, and process {process} has not come there in "
                f"{seconds} seconds, or has ended: {error}"
            ) from None
    if held.peers is not None and any(text.partition(" ")[0] != called for text in texts):
        held.peers.publish_calls()
        exchange("parted", "", processes, "the comparison of calls")
        held.peers.compare_calls()
        counts = [text.partition(":")[0] for text in texts]
        raise RuntimeError(
            f"the processes have called different numbers of programs over processes "
            f"{', '.join(map(str, processes))}: {', '.join(counts)}, before {waiting}. All processes must call the "
            "same functions on arrays over several processes, in the same order"
        )
    return [text.partition(" ")[2] for text in texts]


class SharedProgram(NamedTuple):
    """A program over several processes: the processes, its name, and a hash of its text."""

    processes: tuple[int, ...]
    name: str
    number: int


class Agreement(NamedTuple):
    """The agreement of processes on a program.

    program: the program; None if only this process runs it. all_loaded: whether each process has loaded it from its
    folder. stores: whether this process stores it in its folder.
    """

    program: SharedProgram | None
    all_loaded: bool
    stores: bool


def agree_on_program(text: str, devices: Sequence[Any], loaded: bool = False, folder: str = "") -> Agreement:
    """Return the agreement of the processes of `devices` on the program `text`.

    loaded: whether this process has loaded it. folder: the path from which it is loaded. Raises RuntimeError if the
    processes compile different modules, or have called different programs.
    """
    held = connection()
    processes = tuple(sorted({d.process_index for d in devices})) if held is not None else ()
    if held is None or len(processes) == 1:
        return Agreement(None, loaded, True)
    match = re.search(r"^module @([^\s{]+)", text, re.MULTILINE)
    name = match[1] if match else "?"
    digest = hashlib.sha256(text.encode()).hexdigest()
    waiting = f"the compilation of {name} over several processes"
    own = json.dumps([digest, name, loaded, [socket.gethostname(), folder]])
    described = list(map(json.loads, exchange("program", own, processes, waiting, compare=True)))
    for process, (theirs, title, *_) in zip(processes, described, strict=True):
        if theirs != digest:
            detail = ", with other shapes, constants or settings" if title == name else ""
            raise RuntimeError(
                f"the processes part at a program over several of them: process {held.process} compiles {name}, "
                f"process {process} compiles {title}{detail}. All processes must call the same functions on arrays "
                "over several processes, in the same order"
            )
    loadings, folders = [one[2] for one in described], [one[3] for one in described]
    own_index = processes.index(held.process)
    is_first = folders.index(folders[own_index]) == own_index
    return Agreement(SharedProgram(processes, name, int(digest[:8], 16)), all(loadings), is_first)


# The last executables over several processes, with their programs; jaxlib's executables take no attributes.
_shared: deque[tuple[Any, Any]] = deque(maxlen=8)


def remember_program(executable: Any, program: Any) -> None:
    """Record the `SharedProgram` of an executable, for `make_execute`; None is not recorded."""
    if program is not None:
        _shared.append((executable, program))


def _shared_program(executable: Any) -> Any:
    return next((program for known, program in _shared if known is executable), None) if connections else None


def make_end(executable: Any) -> Callable[[Any], Any]:
    """Return the function from the token of an execution to its end, for `wait_for`."""
    program = _shared_program(executable)
    return (lambda token: token) if program is None else (lambda token: End(token, program.processes))


# The thread that may run programs over several processes, by whether the setting is for all threads or for a block.
_guarded: dict[bool, int] = {}


def guard_thread(guard: bool | None, everywhere: bool) -> None:
    """Let only this thread run programs over several processes, or end this restriction."""
    if guard:
        _guarded[everywhere] = threading.get_ident()
    else:
        _guarded.pop(everywhere, None)


def _check_thread(name: str) -> None:
    guarded = _guarded.get(False, _guarded.get(True))
    if guarded is not None and guarded != threading.get_ident():
        raise RuntimeError(
            f"{name} runs over several processes, and the setting jax_thread_guard was turned on in another thread: "
            "threads may call programs in another order in each process, which then wait for one another for ever. "
            "Call all of them in that thread"
        )


def make_execute(executable: Any) -> Callable[..., Any]:
    """Return the function that runs an executable; over several processes, it records calls and checks the others."""
    execute: Callable[..., Any] = executable.execute_sharded
    program = _shared_program(executable)
    if program is None:
        return execute
    peers, local = connections[0].peers, executable.local_devices()
    # With one device in this process, a CPU client computes before it returns.
    waits = len(local) == 1 and local[0].platform == "cpu"

    def execute_recorded(inputs: Sequence[Any], **options: Any) -> Any:
        _check_thread(program.name)
        peers.check(program.processes)
        peers.record(program)
        return peers.call(program.processes, execute, inputs, **options) if waits else execute(inputs, **options)

    return execute_recorded


def live_processes(processes: Sequence[int]) -> list[int]:
    """Wait for the calls of all live `processes`, and return these processes."""
    held = connection()
    assert held is not None
    return sorted(held.client.get_live_nodes(list(processes)))


def reached_sync_point(step: int) -> bool:
    """Return whether all processes should save at this step; the first call starts watching for SIGTERM."""
    held = connection()
    assert held is not None
    if not _preemption_managers:
        _preemption_managers.append(_jax.create_preemption_sync_manager())
        _preemption_managers[0].initialize(held.client)
    return bool(_preemption_managers[0].reached_sync_point(step))


_preemption_managers: list[Any] = []
