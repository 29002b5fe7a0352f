"""The generator that changes: the draws of jax's, in and outside of transformed functions."""

from __future__ import annotations

import jax
import jax.experimental.random as jax_random
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same
from xtrace.experimental import random
from xtrace.experimental.random import StatefulPRNG, stateful_rng

BOTH = ((xtrace, random), (jax, jax_random))
LOW, HIGH = np.zeros(2, np.float32), np.full((3, 1), 4, np.float32)

DRAWS = {
    "key": lambda r: r.key(), "keys": lambda r: r.key((2, 3)), "three keys": lambda r: r.key(3),
    "random": lambda r: r.random(), "random of a shape": lambda r: r.random((2, 3)),
    "random of a size": lambda r: r.random(4),
    "random of a dtype": lambda r: r.random(3, "float16"), "uniform": lambda r: r.uniform(),
    "uniform between": lambda r: r.uniform(1, 3, (5,)), "uniform between arrays": lambda r: r.uniform(LOW, HIGH),
    "uniform of a dtype": lambda r: r.uniform(0, 2, 3, dtype="bfloat16"), "normal": lambda r: r.normal(),
    "normal of a shape": lambda r: r.normal(1, 2, (3,)), "normal by arrays": lambda r: r.normal(LOW, HIGH),
    "normal of a dtype": lambda r: r.normal(1, 2, dtype="bfloat16"), "integers": lambda r: r.integers(10),
    "integers between": lambda r: r.integers(-3, 5, (6,)),
    "integers of a dtype": lambda r: r.integers(5, size=2, dtype="int8"),
    "integers between arrays": lambda r: r.integers(LOW.astype(int), HIGH.astype(int)),
    "spawn": lambda r: [child.normal() for child in r.spawn(3)], "split": lambda r: r.split((2, 3))._base_key,
    "none": lambda r: r.spawn(0), "NumPy's integers": lambda r: [r.random(np.int64(2)), r.key(np.int32(2))],
}


def plain(package, value):
    """Return draws; of keys the numbers that they are made of."""
    is_key = lambda x: package.dtypes.issubdtype(x.dtype, package.dtypes.prng_key)  # noqa: E731
    return package.tree.map(lambda x: package.random.key_data(x) if is_key(x) else x, value)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_jax(name):
    found = []
    for package, library in BOTH:
        rng = library.stateful_rng(7)
        # The second draw shows that the first has moved the counter on.
        found.append([plain(package, DRAWS[name](rng)), plain(package, DRAWS[name](rng)), rng._counter[...]])
    # A product and a sum, compiled together or apart.
    assert_same(*found, 8, name, floor=4)


@pytest.mark.parametrize("seed, impl", [(0, None), (2**31 - 1, None), (-1, "threefry2x32"), (3, "rbg")])
def test_seeds(seed, impl):
    found = [plain(package, library.stateful_rng(seed, impl=impl).key()) for package, library in BOTH]
    assert_same(*found)


def test_draws_in_transformed_functions():
    found = []
    for package, library in BOTH:
        rng = library.stateful_rng(0)
        jitted = package.jit(lambda r, x: (r.random() + x, r.normal()))
        draws = [jitted(rng, 1.0), jitted(rng, 2.0), rng._counter[...]]
        draws.append(package.vmap(lambda r, x: x + r.uniform())(rng.split(3), np.arange(3, dtype=np.float32)))
        draws.append(package.lax.scan(lambda c, x, rng=rng: (c, rng.random()), 0, None, length=3)[1])
        draws.append(package.grad(lambda x, library=library: x * library.stateful_rng(1).normal())(2.0))
        draws.append(package.jit(rng.uniform)())
        found.append([*draws, rng._counter[...]])
    assert_same(*found, 8)


def test_a_generator_is_a_pytree():
    rng = stateful_rng(5)
    assert str(xtrace.tree.structure(rng)) == str(jax.tree.structure(jax_random.stateful_rng(5)))
    leaves, tree = xtrace.tree.flatten(rng)
    again = tree.unflatten(leaves)
    assert isinstance(again, StatefulPRNG) and again._counter is rng._counter
    assert repr(rng) == repr(jax_random.stateful_rng(5))
    with pytest.raises(AttributeError):
        rng._counter = 3


def test_without_a_seed():
    assert float(stateful_rng().random()) != float(stateful_rng().random())
    with pytest.raises(TypeError, match="a seed is needed in a transformed function"):
        xtrace.jit(lambda: stateful_rng().random())()


def test_mistakes():
    rng = stateful_rng(0)
    with pytest.raises(ValueError, match=r"cannot operate on an array of generators, here of shape \(2,\)"):
        rng.split(2).random()
    with pytest.raises(TypeError, match="negative size"):
        rng.spawn(-1)
    with pytest.raises(ValueError, match="must be a float dtype"):
        rng.random(dtype="int32")
    with pytest.raises(TypeError, match="must be an int dtype"):
        rng.integers(5, dtype="float32")
    with pytest.raises(TypeError, match="must be an integer"):
        stateful_rng(1.5)
    with pytest.raises(ValueError, match="references cannot be returned"):
        xtrace.jit(lambda: stateful_rng(0))()
