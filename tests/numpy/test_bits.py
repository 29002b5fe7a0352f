"""Bits packed and unpacked, compared with jax."""

import numpy as np
import pytest

import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted

CASES = [
    "jnp.packbits(n)", "jnp.packbits(b)", "jnp.packbits(x > 2, axis=1)", "jnp.packbits(i, bitorder='little')",
    "jnp.packbits(jnp.ones((2, 9), int), axis=0)", "jnp.packbits(jnp.zeros(0, int))", "jnp.packbits(True)",
    "jnp.packbits(x > 2)", "jnp.unpackbits(u)", "jnp.unpackbits(u * 50, bitorder='little')",
    "jnp.unpackbits(u, count=5)", "jnp.unpackbits(u, count=60)", "jnp.unpackbits(u, count=-3)",
    "jnp.unpackbits(u[:, None], axis=0)", "jnp.unpackbits(u[1])", "jnp.unpackbits(u[:, None], axis=1, count=3)",
    "jnp.unpackbits(u[:, None], axis=-1)",
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 1, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::2], 1)


ERRORS = [
    ("jnp.packbits(v)", TypeError, "packbits: a must hold integers or booleans; got dtype float32"),
    ("jnp.packbits(n, bitorder='x')", ValueError, "packbits: bitorder must be either 'little' or 'big', got 'x'"),
    ("jnp.packbits(n, axis=3)", ValueError, "packbits: axis 3 is out of bounds"),
    ("jnp.unpackbits(n)", TypeError, "unpackbits: a must hold unsigned bytes"),
    ("jnp.unpackbits(n.astype('uint8'), count=1.5)", TypeError, "unpackbits: count must be an integer, got 1.5"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})
