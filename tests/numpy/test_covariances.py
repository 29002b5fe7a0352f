"""Covariances and correlations, compared with jax."""

import jax
import numpy as np
import pytest

import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.rules import check_rules

CASES = [
    "jnp.cov(x * x)", "jnp.cov(n)", "jnp.cov(x * x, rowvar=False)", "jnp.cov(x, x * x)", "jnp.cov(v, bias=True)",
    "jnp.cov(v, ddof=1.5)", "jnp.cov(v, fweights=u[:4])", "jnp.cov(v, fweights=u[:4], aweights=v)",
    "jnp.cov(x * x, aweights=v, ddof=0)", "jnp.cov(v, x)", "jnp.cov(c)", "jnp.cov(c, aweights=v[1:])", "jnp.cov(b)",
    "jnp.cov(h)", "jnp.cov(h, aweights=v + 1)", "jnp.cov(h, fweights=u[:4])", "jnp.cov(v[:0])", "jnp.cov(2)",
    "jnp.cov(v, dtype=jnp.float16)", "jnp.cov(v, dtype=complex)",
    "jnp.cov(x, ddof=9)", "jnp.cov(z)", "jnp.cov(z.T)", "jnp.corrcoef(x * x)", "jnp.corrcoef(v)",
    "jnp.corrcoef(x * x, rowvar=False)", "jnp.corrcoef(c)", "jnp.corrcoef(v, v * v)", "jnp.corrcoef(2)",
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 128, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 128)


@pytest.mark.slow
def test_rules():
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = np.array([[1.5, 4.0, -3.0, 2.5], [0.5, 3.0, -1.0, 7.0]], np.float32)

    def several(lax, x):
        library = modules[lax]
        return [library.cov(x), library.corrcoef(x)[0, 1], library.cov(x, aweights=library.abs(x[0]))]

    check_rules(several, x, second=False, rounding=64)


ERRORS = [
    ("jnp.cov(jnp.ones((2, 2, 2)))", ValueError, "cov: m has more than 2 dimensions"),
    ("jnp.cov(x, jnp.ones((2, 2, 2)))", ValueError, "cov: y has more than 2 dimensions"),
    ("jnp.cov(x, n)", ValueError, "cov: m and y differ in the number of samples"),
    ("jnp.cov(v, fweights=v)", TypeError, "cov: fweights must be integers"),
    ("jnp.cov(v, fweights=jnp.ones((3, 4), int))", RuntimeError, "cov: cannot handle multidimensional fweights"),
    ("jnp.cov(v, aweights=v[:2])", RuntimeError, "incompatible numbers of samples and aweights"),
    ("jnp.cov(v, dtype=int)", ValueError, "cov: dtype must be a float or complex type"),
    ("jnp.corrcoef([1, 2])", TypeError, "corrcoef requires ndarray"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})
