"""Steady calls keep nothing, and first calls leave nothing that only the garbage collector finds."""

import gc
import json
import os
import pathlib
import subprocess
import sys
import warnings

import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax

# The kinds of calls are dealt out to so many processes.
_PROCESSES = 8
# Blocks that come and go with threads and small caches, however many calls there are.
_MARGIN = 200


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("number", range(_PROCESSES))
def test_steady_calls_allocate_nothing_that_stays(number):
    command = [sys.executable, "-m", "tests.runtime.steady_calls", str(number), str(_PROCESSES)]
    # Checked jaxprs are slower to make, and make no difference to what stays.
    environment = {k: v for k, v in os.environ.items() if k != "XTRACE_ENABLE_CHECKS"}
    root = pathlib.Path(xtrace.__file__).parent.parent
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout.splitlines()[-1])
    assert kept
    assert {name: row for name, row in kept.items() if row[0] >= min(_MARGIN, row[1] // 2)} == {}


def _stages(x):
    lowered = xtrace.jit(lambda a: a * 3 - 1).lower(x)
    return lowered.as_text(), lowered.compile()(x)


FIRST = {
    "jit": lambda x: xtrace.jit(lambda a: a * a - 1)(x),
    "jit of a gradient": lambda x: xtrace.jit(xtrace.grad(lambda a: jnp.sum(jnp.sin(a) * 3)))(x),
    "jit of vmap": lambda x: xtrace.jit(xtrace.vmap(lambda a: a**2 + 2))(x),
    "jit of hessian": lambda x: xtrace.jit(xtrace.hessian(lambda a: jnp.sum(a**3)))(x),
    "jit of checkpoint": lambda x: xtrace.jit(xtrace.grad(xtrace.checkpoint(lambda a: jnp.sin(jnp.sin(a)))))(1.0),
    "jit that calls jit": lambda x: xtrace.jit(lambda a: xtrace.jit(lambda b: b * b)(a) + xtrace.jit(jnp.sin)(a))(x),
    "grad": lambda x: xtrace.grad(lambda a: jnp.sum(jnp.cos(a) ** 2))(x),
    "jacfwd": lambda x: xtrace.jacfwd(lambda a: a**3 - a)(x),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * 2), 0.0, x),
    "jit of a gradient of scan": lambda x: xtrace.jit(
        xtrace.grad(lambda a: lax.scan(lambda c, y: (c + y, c * 2), 0.0, a)[0])
    )(x),
    "while_loop": lambda x: xtrace.jit(lambda n: lax.while_loop(lambda c: c < 3, lambda c: c + 1, n))(0),
    "cond": lambda x: xtrace.jit(lambda p, a: lax.cond(p, lambda b: b + 1, lambda b: b - 1, a))(True, x),
    "associative_scan": lambda x: xtrace.jit(lambda a: lax.associative_scan(lambda b, c: b * c + 1, a))(x),
    "reduce": lambda x: lax.reduce(x, 0.0, lambda a, b: a + b, (0,)),
    "pure_callback": lambda x: xtrace.jit(lambda a: xtrace.pure_callback(lambda v: v, a, a))(x),
    "debug.print": lambda x: xtrace.jit(lambda a: xtrace.debug.print("", ordered=True))(x),
    "donation": lambda x: xtrace.jit(lambda a: a + 1, donate_argnums=0)(x + 1),
    "lower and compile": _stages,
    "make_jaxpr": lambda x: str(xtrace.make_jaxpr(lambda a: jnp.sin(a) + 1)(x)),
    "linearize": lambda x: xtrace.linearize(lambda a: a * a, x)[1](x),
    "vectorize": lambda x: jnp.vectorize(lambda a: a + 1, signature="(n)->(n)")(x),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_calls_leave_no_reference_cycles(name):
    x = jnp.arange(4.0)
    # What the library's own functions remember at their first use is made now; the next call is of a new function.
    FIRST[name](x)
    gc.collect()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FIRST[name](x)
        assert gc.collect() == 0
    finally:
        gc.enable()
