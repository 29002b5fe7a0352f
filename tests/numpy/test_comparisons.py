"""Whole arrays compared, compared with jax."""

import numpy as np
import pytest

import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted

CASES = [
    "jnp.allclose(v, v + 1e-9)", "jnp.allclose(v, x)", "jnp.allclose(q, q, equal_nan=True)",
    "jnp.allclose(v, v, atol=v)", "jnp.allclose(2, 2)", "jnp.array_equal(v, n)", "jnp.array_equal(v, x[1])",
    "jnp.array_equal([1], [1])", "jnp.array_equal(q, q, equal_nan=True)", "jnp.array_equal(q, q)",
    "jnp.array_equal(n, n, equal_nan=True)", "jnp.array_equiv(x, x[0])", "jnp.array_equiv(v * 0 + 2, 2)",
    "jnp.array_equiv([1], 1)",
]


@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 1, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES, 1)


ERRORS = [
    ("jnp.allclose([1], v)", TypeError, "allclose requires ndarray or scalar arguments; argument 0"),
    ("jnp.allclose(v, n)", ValueError, "Incompatible shapes for broadcasting"),
    ("jnp.array_equal('a', 'a')", TypeError, "not a valid JAX type"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})
