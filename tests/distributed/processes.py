"""Running a program in several processes on loopback, which end with the test."""

import os
import socket
import subprocess
import sys
import textwrap
import time

_START = """
import sys
import numpy as np
import xtrace
import xtrace.numpy as jnp
from xtrace.sharding import Mesh, NamedSharding, PartitionSpec as P

process, count = int(sys.argv[1]), int(sys.argv[2])
xtrace.distributed.initialize(sys.argv[3], count, process, initialization_timeout={timeout},
                              heartbeat_timeout_seconds=10, shutdown_timeout_seconds=10)
mesh = Mesh(np.array(xtrace.devices()), ("data",))
"""


def run(program, count=2, *, devices=2, limit=60, timeout=20, started=None, port=None):
    """Return the exit codes and the outputs of `count` processes that run `program`, or of those in `started`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{port or probe.getsockname()[1]}"
    source = _START.format(timeout=timeout) + textwrap.dedent(program)
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"}
    end = time.monotonic() + limit
    children = [
        subprocess.Popen(
            [sys.executable, "-c", source, str(i), str(count), address], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for i in (range(count) if started is None else started)
    ]
    try:
        outputs = [child.communicate(timeout=max(0.1, end - time.monotonic()))[0] for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
            child.stdout.close()
    return [child.returncode for child in children], outputs
