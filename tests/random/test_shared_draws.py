"""Random numbers that several loops of a program read are computed once."""

import jax
import numpy as np
import pytest

import xtrace
from xtrace import numpy as jnp
from xtrace import random

KEY = random.key(0)
X, W = np.linspace(-1, 1, 32 * 40, dtype=np.float32).reshape(32, 40), np.ones((40, 40), np.float32) / 40
# The cipher rotates words 20 times, each time by a shift to the left.
ROTATIONS = 20


def count_ciphers(function, *arguments):
    """Count the computations of the cipher in the program that XLA made."""
    text = xtrace.lower(function, *arguments).compile().as_text()
    return text.count(" shift-left(") // ROTATIONS


def drop(lib, x, key, rate=0.9):
    kept = lib.random.bernoulli(key, rate, x.shape)
    return lib.numpy.where(kept, x / rate, 0)


def loss(lib):
    def compute(x, w, key):
        return lib.numpy.tanh(drop(lib, x @ w, key) @ w).sum()

    return compute


def scanned(lib):
    def compute(x, w, key):
        def body(x, key):
            return lib.numpy.tanh(drop(lib, x @ w, key)), None

        return lib.lax.scan(body, x, lib.random.split(key, 3))[0].sum()

    return compute


@pytest.mark.parametrize(("make", "ciphers"), [(loss, 1), (scanned, 2)])
def test_a_mask_that_is_used_forward_and_backward_is_computed_once(make, ciphers):
    """The loop of `scanned` draws once in its body, and splits the key before."""
    gradient = xtrace.grad(make(xtrace), (0, 1))
    assert count_ciphers(gradient, X, W, KEY) == ciphers
    expected = jax.jit(jax.grad(make(jax), (0, 1)))(X, W, jax.random.key(0))
    for ours, theirs in zip(xtrace.jit(gradient)(X, W, KEY), expected, strict=True):
        # Sums of 40 terms in either sign, some of which cancel.
        bound = 40 * np.finfo(np.float32).eps * np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound)


@pytest.mark.parametrize("draw", [
    lambda key: random.normal(key, (64, 40)),
    lambda key: jnp.sum(random.uniform(key, (64, 40))),
    lambda key: 3 * random.normal(key, (64, 40)) + jnp.ones(40),
    lambda key: random.truncated_normal(key, -2, 2, (64, 40)),
])
def test_numbers_that_one_loop_reads_are_computed_in_it(draw):
    assert "@store" not in xtrace.lower(draw, KEY).as_text()
    assert count_ciphers(draw, KEY) == 1


@pytest.mark.parametrize("draw", [
    lambda lib, key: (lambda x: (x.sum(0), (x * x).sum(1)))(lib.random.normal(key, (64, 40))),
    lambda lib, key: (lambda x: (x, lib.numpy.sort(2 * x)))(lib.random.uniform(key, (64, 40))),
    lambda lib, key: (lambda x: (x @ x.T, 1 + x))(lib.random.rademacher(key, (8, 64), "float32")),
    lambda lib, key: lib.jit(lambda x: (x, x.sum()))(lib.random.exponential(key, (64, 40))),
])
def test_numbers_that_several_loops_read_are_the_same_as_in_jax(draw):
    def ours(key):
        return draw(xtrace, key)

    assert count_ciphers(ours, KEY) == 1
    for mine, theirs in zip(xtrace.jit(ours)(KEY), draw(jax, jax.random.key(0)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=64 * np.finfo(np.float32).eps)


def test_words_of_64_bits_are_computed_once():
    with xtrace.enable_x64(True):
        def draw(key):
            x = random.uniform(key, (64, 40), "float64")
            return x.sum(0), (x * x).sum(1)

        assert count_ciphers(draw, KEY) == 1
        first, second = xtrace.jit(draw)(KEY)
        x = np.asarray(random.uniform(KEY, (64, 40), "float64"))
    np.testing.assert_allclose(first, x.sum(0))
    np.testing.assert_allclose(second, (x * x).sum(1))


def test_operations_keep_their_locations():
    lowered = xtrace.lower(xtrace.grad(loss(xtrace)), X, W, KEY)
    lines = lowered.as_text(debug_info=True).splitlines()
    (place,) = [i for i, line in enumerate(lines) if "call @store" in line]
    assert lines[place - 1].rsplit("loc(", 1)[1] == lines[place].rsplit("loc(", 1)[1]
    assert np.isfinite(lowered.compile()(X, W, KEY)).all()
