"""Running a program in several processes on loopback, which end with the test."""

import os
import socket
import subprocess
import sys
import textwrap
import time

_START = """
import os
import sys

# Gloo's threads write to descriptor 1 at any moment, also in the middle of a line of Python's.
sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

import numpy as np
import xtrace
import xtrace.numpy as jnp
from xtrace.sharding import Mesh, NamedSharding, PartitionSpec as P

process, count = int(sys.argv[1]), int(sys.argv[2])
{before}
if not xtrace.distributed.is_initialized():
    xtrace.distributed.initialize(sys.argv[3], count, process, initialization_timeout={timeout},
                                  heartbeat_timeout_seconds={heartbeat}, shutdown_timeout_seconds=10)
mesh = Mesh(np.array(xtrace.devices()), ("data",))
"""


def run(
    program, count=2, *, devices=2, limit=60, timeout=20, heartbeat=10, started=None, port=None, before="", late=None,
    awaited=None,
):
    """Return the exit codes and the outputs of `count` processes that run `program`, or of those in `started`.

    before: a program that runs before `initialize`, or calls it. late: a process that starts some seconds after the
    others, and how many. awaited: the processes whose end is awaited, the rest is killed then; None for all.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{port or probe.getsockname()[1]}"
    first = _START.format(timeout=timeout, heartbeat=heartbeat, before=textwrap.dedent(before))
    source = first + textwrap.dedent(program)
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"}
    end = time.monotonic() + limit
    children = []

    def start(process):
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", source, str(process), str(count), address], env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )

    try:
        numbers = list(range(count)) if started is None else started
        for process in numbers:
            if late is not None and process == late[0]:
                time.sleep(late[1])
            start(process)
        outputs = {}
        for process, child in sorted(zip(numbers, children, strict=True), key=lambda p: p[0] not in (awaited or [])):
            if awaited is not None and process not in awaited:
                child.kill()
            outputs[process] = child.communicate(timeout=max(0.1, end - time.monotonic()))[0]
    finally:
        for child in children:
            child.kill()
            child.wait()
            child.stdout.close()
    return [child.returncode for child in children], [outputs[process] for process in numbers]
