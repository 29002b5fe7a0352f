"""Count the blocks of memory that steady calls of each kind keep; run by test_memory.py in a process without jax.

jax frees what jaxlib keeps for later, in a callback of the garbage collector, and would hide that xtrace does not.
"""

import gc
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import xtrace
import xtrace.numpy as jnp
from xtrace import lax

# Small caches of Python, NumPy and the runtime fill at some time: what belongs to a call grows in each of these parts.
_PARTS = 3


class Steady(NamedTuple):
    """A call that is made again and again: `make` returns it; `calls` of it are counted."""

    make: Callable[[Any], Callable[[], Any]]
    calls: int = 75_000


def _turned(x):
    """A matrix, and the format in which its columns lie one after another."""
    layout = xtrace.experimental.layout
    return x.reshape(2, 2), layout.Format(layout.Layout((1, 0)), x.sharding)


def _donating(x):
    increment = xtrace.jit(lambda a: a + 1, donate_argnums=0)
    state = [jnp.copy(x)]

    def call():
        state[0] = increment(state[0])

    return call


def _writing(x):
    def write(ref, y):
        ref[...] = ref[...] + y

    return partial(xtrace.jit(write), xtrace.new_ref(x), x)


def _failing(x):
    add = xtrace.jit(lambda a, b: a + b)
    other = jnp.ones(3)

    def call():
        try:
            add(x, other)
        except TypeError:
            pass
        else:
            raise AssertionError

    return call


def _with_next(function: Any, x: Any, numbers: Iterator[int]) -> Any:
    return function(x, float(next(numbers)))


def _of(function: Callable[..., Any], *arguments: Any) -> Callable[[Any], Callable[[], Any]]:
    """Make calls of the jitted `function` of an array, and of more arguments."""

    def make(x: Any) -> Callable[[], Any]:
        jitted = xtrace.jit(function)
        return lambda: jitted(x, *arguments)

    return make


def _in_tiers(x):
    def function(a):
        for _ in range(30):
            a = jnp.sin(a)
        return a

    jitted = xtrace.jit(function, compilation="tiered")
    jitted(x)
    assert jitted.wait_for_compilation()
    return partial(jitted, x)


def _exported(x: Any) -> Any:
    return xtrace.export.export(xtrace.jit(lambda a: a * 2))(x)


def _first_of(call: Callable[[Any], Any], x: Any) -> Any:
    return call(x)[0]


_HOST = np.ones(4, np.float32)
STEADY = {
    "jitted": Steady(_of(lambda a: a + a)),
    "jitted, of a tree": Steady(_of(lambda a, tree: {"out": a + tree["b"][0]}, {"b": [_HOST]})),
    "jitted, of a NumPy array": Steady(_of(lambda a, b: a + b, _HOST)),
    "jitted, of a number": Steady(_of(lambda a, b: a + b, 2.0)),
    "jitted, of numbers never seen": Steady(
        lambda x: partial(_with_next, xtrace.jit(lambda a, b: a * b), x, itertools.count())
    ),
    "jitted, a static argument": Steady(lambda x: partial(xtrace.jit(lambda a, n: a * n, static_argnums=1), x, 3)),
    "jitted, by keyword": Steady(lambda x: partial(xtrace.jit(lambda a, b: a * b), x, b=x)),
    "jitted, donating": Steady(_donating),
    "jitted gradient": Steady(_of(xtrace.grad(lambda a: jnp.sin(a).sum()))),
    "jitted, of many arrays": Steady(lambda x: partial(xtrace.jit(lambda *a: sum(a)), *[x] * 30), 20_000),
    "jitted, in tiers": Steady(_in_tiers, 20_000),
    "jitted, of a reference": Steady(_writing, 20_000),
    "update of a reference": Steady(lambda x: partial(xtrace.new_ref(x).__setitem__, 0, 1.0), 5_000),
    "a new wrapper": Steady(lambda x: partial(lambda f: xtrace.jit(f)(x), lambda a: a - 1), 5_000),
    "wrong arguments": Steady(_failing, 500),
    "compiled ahead of time": Steady(lambda x: partial(xtrace.lower(lambda a: a * 2, x).compile(), x)),
    "exported": Steady(lambda x: partial(_exported(x).call, x), 10_000),
    "exported gradient": Steady(lambda x: partial(xtrace.grad(partial(_first_of, _exported(x).call)), x), 1_000),
    "exported, read again": Steady(
        lambda x: partial(lambda data: xtrace.export.deserialize(data).call(x), _exported(x).serialize()), 600
    ),
    "pure_callback": Steady(_of(lambda a: xtrace.pure_callback(lambda v: v, a, a)), 10_000),
    "io_callback, ordered": Steady(
        _of(lambda a: xtrace.experimental.io_callback(lambda v: v, a, a, ordered=True)), 5_000
    ),
    "debug.callback": Steady(_of(lambda a: xtrace.debug.callback(lambda v: None, a)), 5_000),
    "eager operator": Steady(lambda x: lambda: x + x),
    "eager operator with a number": Steady(lambda x: lambda: x * 2.0),
    "eager reduction": Steady(lambda x: lambda: jnp.sum(x)),
    "eager function": Steady(lambda x: lambda: xtrace.nn.softmax(x)),
    "eager concatenation": Steady(lambda x: lambda: jnp.concatenate([x, x]), 20_000),
    "eager einsum": Steady(lambda x: lambda: jnp.einsum("i,i", x, x), 5_000),
    "indexing": Steady(lambda x: lambda: x[1]),
    "indexing by an array": Steady(lambda x: partial(x.__getitem__, jnp.array([0, 1])), 20_000),
    "update": Steady(lambda x: lambda: x.at[0].set(1.0), 5_000),
    "iteration": Steady(lambda x: lambda: list(x), 10_000),
    "eager gradient": Steady(lambda x: lambda: xtrace.grad(jnp.sin)(1.0), 2_000),
    "eager vjp": Steady(lambda x: lambda: xtrace.vjp(jnp.sin, x)[1](x), 2_000),
    "eager jvp": Steady(lambda x: lambda: xtrace.jvp(jnp.tanh, (x,), (x,)), 2_000),
    "eager vjp of a function of several operations": Steady(
        lambda x: lambda: xtrace.vjp(xtrace.nn.softmax, x)[1](x), 2_000
    ),
    "eager vmap": Steady(lambda x: lambda: xtrace.vmap(jnp.sin)(x), 2_000),
    "eager scan": Steady(lambda x: lambda: lax.scan(lambda c, y: (c + y, c), 0.0, x), 2_000),
    "eager while_loop": Steady(lambda x: lambda: lax.fori_loop(0, 3, lambda i, c: c + i, 0), 2_000),
    "eager cond": Steady(lambda x: lambda: lax.cond(True, jnp.sin, jnp.cos, x), 2_000),
    "random numbers": Steady(lambda x: partial(xtrace.random.normal, xtrace.random.key(0), (3,)), 10_000),
    "split keys": Steady(lambda x: partial(xtrace.random.split, xtrace.random.key(0)), 10_000),
    "to NumPy": Steady(lambda x: lambda: np.asarray(x + 1)),
    "bfloat16 to NumPy": Steady(lambda x: partial(lambda y: np.asarray(y + y), x.astype(jnp.bfloat16)), 10_000),
    "to a number": Steady(lambda x: lambda: float(x[0]), 20_000),
    "repr": Steady(lambda x: lambda: repr(x), 2_000),
    "asarray": Steady(lambda x: lambda: jnp.asarray(_HOST)),
    "device_put": Steady(lambda x: lambda: xtrace.device_put(_HOST), 20_000),
    "array in another layout": Steady(lambda x: partial(xtrace.jit(lambda a: a * 2), xtrace.device_put(*_turned(x)))),
    "result in another layout": Steady(
        lambda x: partial(xtrace.jit(lambda a: a * 2, out_shardings=_turned(x)[1]), _turned(x)[0]), 20_000
    ),
    "eager operator in another layout": Steady(lambda x: partial(jnp.negative, xtrace.device_put(*_turned(x))), 20_000),
    "device_put to another layout": Steady(lambda x: partial(xtrace.device_put, *_turned(x)), 5_000),
    "another layout to NumPy": Steady(lambda x: lambda: np.asarray(xtrace.device_put(*_turned(x))), 3_000),
    "astype": Steady(lambda x: lambda: x.astype(jnp.bfloat16)),
    "block_until_ready": Steady(lambda x: lambda: x.block_until_ready()),
    "is_ready": Steady(lambda x: lambda: x.is_ready()),
    "delete": Steady(lambda x: lambda: (x + 1).delete()),
    "make_jaxpr": Steady(lambda x: lambda: xtrace.make_jaxpr(jnp.sin)(x), 1_000),
    "eval_shape": Steady(lambda x: lambda: xtrace.eval_shape(jnp.sin, x), 2_000),
    "lower": Steady(lambda x: lambda: xtrace.lower(jnp.sin, x).as_text(), 200),
}


def blocks_kept(row: Steady) -> tuple[int, int]:
    """Return by how many blocks memory grew in the best part of the calls, and how many calls that were."""
    call, calls = row.make(jnp.arange(4.0)), row.calls // _PARTS

    def blocks_after() -> int:
        for _ in range(calls - 1):
            call()
        xtrace.block_until_ready(call())
        xtrace.effects_barrier()
        gc.collect()
        return sys.getallocatedblocks()

    blocks = [blocks_after() for _ in range(_PARTS + 1)]
    return min(after - before for before, after in itertools.pairwise(blocks)), calls


if __name__ == "__main__":
    first, step = map(int, sys.argv[1:])
    kept = {name: blocks_kept(row) for name, row in list(STEADY.items())[first::step]}
    assert "jax" not in sys.modules
    print(json.dumps(kept))
