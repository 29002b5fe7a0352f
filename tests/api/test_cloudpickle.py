"""Functions of ``__main__`` that cloudpickle takes to another process, where they compute the same."""

import json
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import xtrace

# The objects by name, each with a function that computes something with it.
WRITER = """
import functools, inspect, pickle, sys
import cloudpickle
import numpy as np
import xtrace
import xtrace.numpy as jnp
from xtrace.experimental import checkify
from xtrace.tree_util import Partial

X = np.arange(3, dtype="f")
SCALE, KEY = jnp.arange(3.0), xtrace.random.key(3)

def plain(x):
    return jnp.sin(x) * 2

@xtrace.jit
def jitted(x):
    return jnp.sin(x) * 2 + SCALE

def make(inner, c):
    return lambda x: inner(x) * c

@functools.partial(xtrace.jit, static_argnums=1)
def recursive(x, n):
    return x if n == 0 else recursive(x * 2, n - 1)

@xtrace.jit
def even(x):
    return odd(x + 1) if x.ndim else x

@xtrace.jit
def odd(x):
    return even(x[0]) + x

@xtrace.jit
def documented(x, y=SCALE, *, z: int = 2):
    "Return the product."
    return x * y * z

@xtrace.custom_vjp
def with_vjp(x):
    return x * 2
with_vjp.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * 3 * x,))

@xtrace.custom_jvp
def with_jvp(x):
    return x * 2
with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), tangents[0] * 5))

class Layer:
    def __init__(self):
        self.w = SCALE + 1
        self.forward = xtrace.jit(self.multiply)
    def multiply(self, x):
        return x * self.w
    @functools.partial(xtrace.jit, static_argnums=0)
    def add(self, x):
        return x + self.w

def train(params, x):
    loss = lambda p: ((p["w"] * x - 1) ** 2).sum()
    return xtrace.tree.map(lambda p, g: p - 0.1 * g, params, xtrace.grad(loss)(params))

def call(f):
    return f(X)

OBJECTS = {
    "a jitted function": (jitted, call), "of a lambda": (xtrace.jit(lambda x: x * 3), call),
    "of a jitted one": (xtrace.jit(xtrace.jit(plain)), call),
    "with static arguments": (xtrace.jit(lambda x, n=2: x * n, static_argnames="n"), lambda f: f(X, n=3)),
    "with options": (xtrace.jit(plain, inline=True, keep_unused=True, compiler_options={}, donate_argnums=0),
                     lambda f: f(jnp.asarray(X))),
    "recursive": (recursive, lambda f: f(X, 3)), "of each other": (even, call),
    "default and signature": (documented, lambda f: (
        f(X), [f.__doc__, f.__name__, f.__qualname__, f.__module__, str(inspect.signature(f))])),
    "one that calls a jitted one": (lambda x: jitted(x) + 1, call),
    "a closure over a jitted one": (make(jitted, 2), call),
    "a jitted closure": (xtrace.jit(make(jitted, jnp.ones(3))), call),
    "a closure over a key": (lambda: xtrace.random.normal(KEY, (3,)), lambda f: f()),
    "grad": (xtrace.grad(lambda x: jitted(x).sum()), call), "vmap": (xtrace.vmap(jitted), lambda f: f(X[:, None])),
    "hessian": (xtrace.jit(xtrace.hessian(lambda x: (x ** 3).sum())), call),
    "make_jaxpr": (xtrace.make_jaxpr(plain), lambda f: str(f(X))), "pmap": (xtrace.pmap(plain), lambda f: f(X[None])),
    "a named scope": (xtrace.named_scope("here")(plain), call),
    "checkify": (checkify.checkify(plain), lambda f: f(X)[1]),
    "checkpoint": (xtrace.jit(xtrace.checkpoint(plain)), call), "vectorize": (jnp.vectorize(lambda x: x * 2), call),
    "custom_vjp": (with_vjp, lambda f: (f(X), xtrace.grad(lambda x: f(x).sum())(X))),
    "custom_jvp": (xtrace.jit(with_jvp), lambda f: (f(X), xtrace.grad(lambda x: f(x).sum())(X))),
    "Partial": (Partial(jitted), call), "functools.partial": (functools.partial(jitted), call),
    "an array": (SCALE, lambda x: x), "a key": (KEY, lambda k: xtrace.random.normal(k, (2,))),
    "a treedef": (xtrace.tree.structure({"a": [1, (2, None)]}), str),
    "an object": (Layer(), lambda o: o.forward(X) + o.add(X)), "a class": (Layer, lambda c: c().forward(X)),
    "a jitted method": (Layer().forward, call), "a training step": (xtrace.jit(train), lambda f: f({"w": X}, X)),
    "a stage": (jitted.lower, lambda f: f(X).compile()(X)), "a compiled one": (jitted.lower(X).compile(), call),
    "Python called": (xtrace.jit(lambda x: xtrace.pure_callback(lambda v: np.asarray(v) * 2, x, x)),
                      lambda f: f(jnp.asarray(X))),
    "twice": ((jitted, {"f": jitted}), lambda t: (t[0] is t[1]["f"], t[0](X))),
    "in a dictionary": ({"f": jitted, "x": SCALE}, lambda d: d["f"](d["x"])),
}
for _ in range(6):
    # Frequent calls have code of their own, which refers to programs.
    jitted(X), recursive(X, 3), documented(X), documented(X, z=3), odd(X)
    OBJECTS["with static arguments"][0](X, n=2), OBJECTS["a training step"][0]({"w": X}, X)
pickles = {}
for name, pair in OBJECTS.items():
    pickles[name] = cloudpickle.dumps(pair), xtrace.tree.map(
        lambda x: np.asarray(x) if isinstance(x, xtrace.Array) else x, pair[1](pair[0]))
sys.stdout.buffer.write(pickle.dumps(pickles))
"""

READER = """
import json, pickle, sys
import numpy as np
import xtrace
outcomes = {}
for name, (pickled, expected) in pickle.load(sys.stdin.buffer).items():
    value, compute = pickle.loads(pickled)
    # After some calls a function has code of its own in this process, too.
    for _ in range(1 + 5 * ("jitted" in name)):
        found = compute(value)
    leaves, others = xtrace.tree.leaves(found), xtrace.tree.leaves(expected)
    outcomes[name] = len(leaves) == len(others) and all(map(np.array_equal, leaves, others)) or repr((found, expected))

    if name == "a jitted function":
        # It is one in all respects: it gets code of its own after some calls, and its entry counts four of them.
        calls = [(e.calls, e.is_specialised) for e in value.cache_info().entries]
        outcomes["its members"] = [value._xtrace_jitted.wrapper() is value, value._cache_size(), calls]
        value.clear_cache()
        outcomes["cleared"] = [value._cache_size(), np.array_equal(compute(value), expected), value._cache_size()]
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes():
    written = subprocess.run([sys.executable, "-c", WRITER], capture_output=True, check=False)
    assert written.returncode == 0, written.stderr.decode()

    read = subprocess.run([sys.executable, "-c", READER], input=written.stdout, capture_output=True, check=False)
    assert read.returncode == 0, read.stderr.decode()
    return json.loads(read.stdout.decode().splitlines()[-1])


def test_objects_compute_the_same_in_another_process(outcomes):
    assert outcomes.pop("its members") == [True, 1, [[4, True]]]
    assert outcomes.pop("cleared") == [0, True, 1]
    assert {name: outcome for name, outcome in outcomes.items() if outcome is not True} == {}
    assert len(outcomes) == 37


def test_a_pickle_of_a_function_has_no_program():
    """Its size does not depend on its calls."""
    f = xtrace.jit(lambda x: x * 2)
    before = cloudpickle.dumps(f)
    for _ in range(6):
        f(np.ones(3, np.float32))
    assert f._cache_size() == 1
    assert len(cloudpickle.dumps(f)) < len(before) + 4000
