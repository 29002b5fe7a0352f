"""Programs that end or hang the process in XLA when they are compiled as they stand, or that come near to it.

Rows run in child processes, several in each, with the code generation that users get. Each states its outcome: the
value of an expression of NumPy, or the error. Issues are those in which the program, or one like it, was reported.
"""

import os
import signal
import subprocess
import sys
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """A program, the NumPy expression that its value equals or the beginning of its error, and issues."""

    program: str
    outcome: str
    issues: str = ""


_CHILD = """
import os, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
import xtrace, xtrace.extend, xtrace.numpy as jnp

large = xtrace.jit(lambda x: x @ x)

def show(name, function):
    try:
        print(name, np.asarray(function()).sum(), flush=True)
    except RuntimeError as error:
        print(name, "forked from one with clients of devices" in str(error), flush=True)

def fork(work):
    if os.fork() == 0:
        # The end of the child is an ordinary one: nothing there waits for threads, either.
        work()
        raise SystemExit(7)
    print("child:", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)

fork(lambda: show("early", lambda: large(np.ones((500, 500), np.float32))))
x = jnp.ones((500, 500))
for _ in range(5):
    large(x).block_until_ready(), jnp.sin(x), x + x
compiled = large.lower(x).compile()
compiled(x), compiled(x)

def work():
    show("read", lambda: x)
    show("put", lambda: xtrace.device_put(np.ones(3)))
    show("trace", lambda: len(xtrace.make_jaxpr(large)(x).eqns))
    show("jit", lambda: large(x))
    show("operator", lambda: x + x)
    show("function", lambda: jnp.sin(x))
    show("new", lambda: xtrace.jit(lambda x: x + 1)(x))
    show("compiled", lambda: compiled(x))
    show("compile", lambda: large.lower(x).compile())
    show("gradient", lambda: xtrace.grad(lambda x: large(x).sum())(x))
    show("clients", xtrace.extend.backend.clear_backends)
    thread = threading.Thread(target=show, args=("thread", lambda: large(x)))
    thread.start()
    thread.join()

fork(work)
fork(lambda: None)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_computes_nothing_instead_of_hanging():
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "early 1.25e+08", "child: 7", "read 250000.0", "put 3.0", "trace 1", "jit True", "operator True",
        "function True", "new True", "compiled True", "compile True", "gradient True", "clients True", "thread True",
        "child: 7", "child: 7",
    ], done.stderr


_INTERRUPTED = """
import faulthandler, os, signal, threading, time
import xtrace, xtrace.numpy as jnp

def sorted_often(x):
    for k in range(200):
        x = jnp.sort(x) * k
    return x

faulthandler.enable()
lowered = xtrace.jit(sorted_often).lower(jnp.ones(50))
interrupt = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    interrupt.start()
    lowered.compile()
    print("compiled")
except KeyboardInterrupt:
    print("interrupted", [t.name for t in threading.enumerate() if t.name == "xtrace compilation"])
while len(threading.enumerate()) > 1:
    time.sleep(0.01)
print(jnp.arange(3) + 1)
"""


def test_ctrl_c_while_xla_compiles_leaves_the_compiler_its_module():
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "interrupted ['xtrace compilation']\n[1 2 3]\n"


_INTERRUPTED_TWICE = """
import faulthandler, os, signal, threading
import xtrace, xtrace.numpy as jnp

def sorted_often(x):
    for k in range(400):
        x = jnp.sort(x) * k
    return x

faulthandler.enable()
lowered = xtrace.jit(sorted_often).lower(jnp.ones(50))
try:
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    lowered.compile()
except KeyboardInterrupt:
    print("interrupted")
process = os.getpid()
again = threading.Timer(0.3, lambda: os.kill(process, signal.SIGINT))
again.daemon = True
again.start()
"""


def test_a_second_ctrl_c_ends_the_process_at_once_and_without_a_crash():
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED_TWICE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "interrupted\n", "")
