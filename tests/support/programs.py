"""Small programs written once for both packages: each is a function of `(lax, jit)` that returns the traced function.

They use only what `jax.lax` and `xtrace.lax` both have, so their jaxprs must print alike.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

VECTOR = np.ones(3, np.float32)
MATRIX = np.ones((3, 4), np.float32)
SCALAR = np.float32(1)

CONSTANTS = [np.arange(3, dtype=np.float32) + i for i in range(12)]


def _named(name: str, jit: Any, function: Callable[..., Any]) -> Any:
    function.__name__ = name
    return jit(function)


def chain(length: int) -> Callable[..., Any]:
    """Return a program of `length` equations, one after the other."""

    def program(lax: Any, jit: Any) -> Any:
        def function(x):
            for i in range(length):
                x = (lax.sin, lax.cos, lax.tanh)[i % 3](x)
            return x

        return function

    return program


def sums_of_neighbours(lax: Any, jit: Any) -> Any:
    """As many results as inputs less one, all printed in lists."""
    return lambda *xs: [lax.add(a, b) for a, b in itertools.pairwise(xs)]


def identity(lax: Any, jit: Any) -> Any:
    """No equation at all."""
    return lambda *xs: xs


def nothing(lax: Any, jit: Any) -> Any:
    """No result."""
    return lambda *xs: ()


def dropped(lax: Any, jit: Any) -> Any:
    """Equations that nothing reads, one with several results."""

    def function(x, y):
        lax.sin(x)
        pair = _named("pair", jit, lambda p, q: (lax.sin(q), lax.cos(p)))(x, y)
        return pair[1]

    return function


def closed_over_twice(lax: Any, jit: Any) -> Any:
    """One constant used twice, by itself and inside a call."""
    constant = CONSTANTS[0]
    inner = _named("inner", jit, lambda x: lax.add(x, constant))
    return lambda x: (lax.add(x, constant), inner(x), lax.mul(constant, x))


def many_constants(lax: Any, jit: Any) -> Any:
    """More constvars than fit on a line."""
    return lambda x: [lax.add(x, c) for c in CONSTANTS]


def nested(lax: Any, jit: Any) -> Any:
    """A call in a call, its operands swapped on the way."""
    inner = _named("inner", jit, lambda p, q: lax.sin(lax.add(p, q)))
    outer = _named("outer", jit, lambda p, q: lax.cos(inner(q, p)))
    return lambda x, y: lax.sin(outer(x, y))


def same_operand_twice(lax: Any, jit: Any) -> Any:
    """A call that gets one variable in two places and returns an input and an output twice."""

    def inner(p, q, r):
        total = lax.add(p, q)
        return total, p, total, lax.sin(r)

    return lambda x, y: _named("inner", jit, inner)(x, y, x)


def literal_operand(lax: Any, jit: Any) -> Any:
    """A call with a Python number among its operands and its results."""
    return lambda x, y: _named("inner", jit, lambda p, q: (lax.sin(q), 3.0, p))(x, 1.0)


def shared(lax: Any, jit: Any) -> Any:
    """Calls used again, by the caller and inside another one."""
    a = _named("a", jit, lambda x: lax.sin(x))
    b = _named("b", jit, lambda x: a(a(x)))
    return lambda x: (b(b(x)), a(x))


def same_name(lax: Any, jit: Any) -> Any:
    """Different functions of one name, each called twice, and one whose name is taken by the numbering."""
    functions = [_named("g", jit, f) for f in (lambda x: lax.sin(x), lambda x: lax.cos(x))]
    functions.append(_named("g1", jit, lambda x: lax.tanh(x)))

    def function(x):
        for call in functions * 2:
            x = call(x)
        return x

    return function


def unnamed(lax: Any, jit: Any) -> Any:
    """A lambda called twice."""
    call = jit(lambda x: lax.sin(x))
    return lambda x: call(call(x))


def long_inner(lax: Any, jit: Any) -> Any:
    """A call of more than ten equations, used once."""
    return lambda x: _named("long", jit, chain(11)(lax, jit))(x)


def call_without_results(lax: Any, jit: Any) -> Any:
    """A call that neither takes nor gives anything, and one that gives nothing."""

    def function(x):
        _named("neither", jit, lambda: ())()
        _named("gives_nothing", jit, lambda x: ())(x)
        return x

    return function


def kept_unused(lax: Any, jit: Any) -> Any:
    """A call with a parameter that is not at its default."""
    inner = jit(lambda p, q: (p, q), keep_unused=True)
    return lambda x: inner(x, lax.sin(x))


def donating(lax: Any, jit: Any) -> Any:
    """A call that donates one of its operands."""
    inner = jit(lambda p, q: (lax.add(p, q), q), donate_argnums=(0,))
    return lambda x: inner(lax.cos(x), lax.sin(x))


def spread(lax: Any, jit: Any) -> Any:
    """Parameters that hold tuples."""
    return lambda x: lax.transpose(lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), (2, 0, 1))


def random_calls(seed: int) -> Callable[..., Any]:
    """Return a program of calls within calls, drawn at random, some shared, some dropped."""

    def program(lax: Any, jit: Any) -> Any:
        generator = random.Random(seed)
        calls: list[Any] = [lax.sin, lax.cos]
        for i in range(generator.randrange(1, 5)):
            chosen = [generator.choice(calls) for _ in range(generator.randrange(1, 4))]

            def body(x, chosen=chosen):
                for call in chosen:
                    x = call(x)
                return x

            calls.append(_named("abc"[i % 3], jit, body))
        steps = [(generator.choice(calls), generator.randrange(n + 1)) for n in range(generator.randrange(1, 8))]

        def function(x):
            found = [x]
            for call, position in steps:
                found.append(call(found[position]))
            return found[-1], found[len(found) // 2]

        return function

    return program


# Programs whose text holds neither literals nor parameters that are None: they print alike to the character.
ALIKE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f"chain of {n}": (chain(n), (VECTOR,)) for n in (0, 1, 2, 3, 10, 27, 60)},
    **{f"sums of {n}": (sums_of_neighbours, (VECTOR,) * n) for n in (0, 1, 2, 9, 14, 30, 60)},
    **{f"{n} matrices": (identity, (MATRIX,) * n) for n in (6, 7, 8, 9, 17, 40)},
    **{f"wide by {n}": (chain(1), (np.ones((1,) * n, np.float32),)) for n in range(1, 14)},
    **{f"two wide by {n}": (chain(2), (np.ones((1,) * n, np.float32),)) for n in range(1, 5)},
    **{f"random calls {n}": (random_calls(n), (VECTOR,)) for n in range(40)},
    "no result": (nothing, (VECTOR,)),
    "neither input nor result": (nothing, ()),
    "dropped": (dropped, (VECTOR, VECTOR)),
    "many constants": (many_constants, (VECTOR,)),
    "nested": (nested, (VECTOR, VECTOR)),
    "same operand twice": (same_operand_twice, (VECTOR, VECTOR)),
    "shared": (shared, (VECTOR,)),
    "same name": (same_name, (VECTOR,)),
    "unnamed": (unnamed, (VECTOR,)),
    "long inner": (long_inner, (VECTOR,)),
    "call without results": (call_without_results, (VECTOR,)),
    "kept unused": (kept_unused, (VECTOR,)),
    "donating": (donating, (VECTOR,)),
    "spread": (spread, (MATRIX,)),
}
