"""Divisors and multiples, compared with jax."""

import numpy as np
import pytest

import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted

CASES = [
    "jnp.gcd(n, 4)", "jnp.gcd(-6, 4)", "jnp.gcd(i, u[:4])", "jnp.lcm(i, 4)", "jnp.lcm(-6, 4)", "jnp.lcm(0, 0)",
    "jnp.lcm(u, i[0, 0])", "jnp.gcd(wi, 9)", "jnp.gcd(u, n[:, None])", "jnp.gcd(n[:0], 4)", "jnp.lcm(wi, wi)",
    "jnp.lcm(i, i[0])", "jnp.gcd(b, n[:, None])",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 4, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 4)


ERRORS = [
    ("jnp.gcd(n, 1.5)", ValueError, "gcd: arguments must be integers, got dtypes int32 and float32"),
    ("jnp.lcm(n > 1, n > 1)", ValueError, "lcm: arguments must be integers, got dtypes bool and bool"),
    ("jnp.gcd(n, jnp.arange(4))", ValueError, "gcd: Incompatible shapes for broadcasting"),
    ("jnp.gcd([1], n)", TypeError, "gcd requires ndarray"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})
