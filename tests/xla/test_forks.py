"""A process forked from one that has computed: it says in words that it cannot compute, and ends."""

import os
import subprocess
import sys

import pytest

CHILD = """
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
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "early 1.25e+08", "child: 7", "read 250000.0", "put 3.0", "trace 1", "jit True", "operator True",
        "function True", "new True", "compiled True", "compile True", "gradient True", "clients True", "thread True",
        "child: 7", "child: 7",
    ], done.stderr
