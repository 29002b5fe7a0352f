"""Padding in every mode, compared with jax."""

import jax
import numpy as np
import pytest

import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.rules import check_rules

CASES = [
    "jnp.pad(jnp.broadcast_to(w, 3), 1, 'linear_ramp')",
    "jnp.pad(v, 2, 'edge')", "jnp.pad(v, 2, 'linear_ramp')", "jnp.pad(n, 3, 'linear_ramp', end_values=(5, -7))",
    "jnp.pad(x, ((1, 2), (0, 1)), 'linear_ramp', end_values=((1, 2), (3, 4)))", "jnp.pad(n, 2, 'mean')",
    "jnp.pad(u, 2, 'mean', stat_length=2)", "jnp.pad(u, 2, 'median', stat_length=(3, 4))", "jnp.pad(v, 2, 'maximum')",
    "jnp.pad(v, 2, 'minimum', stat_length=(1, 2))", "jnp.pad(v, 2, 'maximum', stat_length=9)",
    "jnp.pad(v * v, 7, 'reflect')", "jnp.pad(v * v, (9, 1), 'reflect', reflect_type='odd')",
    "jnp.pad(v * v, 7, 'symmetric')", "jnp.pad(v * v, (3, 9), 'symmetric', reflect_type='odd')",
    "jnp.pad(v, 9, 'wrap')", "jnp.pad(v, 2, 'empty')", "jnp.pad(v[:1], 3, 'reflect', reflect_type='odd')",
    "jnp.pad(v[:0], 2, 'mean')", "jnp.pad(z, ((0, 0), (1, 1)), 'edge')", "jnp.pad(b, 2, 'mean')",
    "jnp.pad(b, 2, 'maximum')", "jnp.pad(b, 1, 'linear_ramp')", "jnp.pad(h, 1, 'mean')", "jnp.pad(c, 1, 'mean')",
    "jnp.pad(c, 1, 'reflect')", "jnp.pad(2.0, 1, 'edge')", "jnp.pad(v, (1, 2), constant_values=jnp.array([1, 2]))",
    "jnp.pad(n, 1, constant_values=1.7)", "jnp.pad(x, ((1, 2), (2, 1)), 'mean', stat_length=((1, 2), (3, 2)))",
    "jnp.pad(u, 3, 'linear_ramp', end_values=9)", "jnp.pad(n, 2, lambda r, w, a, k: r.at[:w[0]].set(7))",
    "jnp.pad(x, 1, lambda r, w, a, k: r.at[:w[0]].set(k['q'] * (a + 1)), q=3)",
    "jnp.pad(x, ((1, 2), (2, 1)), 'symmetric')", "jnp.pad(x * q, 1, 'maximum')",
    "jnp.pad(x, 1, 'constant', constant_values=((1, 2), (3, 4)))", "jnp.pad(y, ((1, 0), (0, 2), (1, 1)), 'wrap')",
    "jnp.pad(i, 1, 'reflect', reflect_type='odd')",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 16, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 16)


@pytest.mark.slow
def test_rules():
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = np.array([[1.5, 4.0, -3.0, 2.5], [0.5, 3.0, -1.0, 7.0]], np.float32)

    def several(lax, x):
        library = modules[lax]
        return [library.pad(x, 1, m) for m in ("edge", "reflect", "mean", "linear_ramp", "wrap")]

    check_rules(several, x, second=False, rounding=64)


ERRORS = [
    ("jnp.pad(v, 2, 'foo')", NotImplementedError, "pad: mode 'foo' is not supported; the modes are 'constant'"),
    ("jnp.pad(v, 2, 'edge', stat_length=2)", ValueError, "unsupported keyword arguments for mode 'edge'"),
    ("jnp.pad(v[:0], 2, 'reflect')", ValueError, "cannot apply 'reflect' padding to an empty axis"),
    ("jnp.pad(v, 2, 'maximum', stat_length=0)", ValueError, "stat_length of 0 yields no value"),
    ("jnp.pad(v, 2, 'mean', stat_length=-1)", ValueError, "stat_length can't contain negative values"),
    ("jnp.pad(v, 2, 'wrap', reflect_type='odd')", ValueError, "unsupported keyword arguments"),
    ("jnp.pad(v, 2, 'reflect', reflect_type='foo')", ValueError, "reflect_type must be 'even' or 'odd', got 'foo'"),
    (
        "jnp.pad(v, 1, 'linear_ramp', end_values=(1, 2, 3))",
        ValueError,
        r"end_values of shape \(3,\) do not fit an array of rank 1",
    ),
    ("jnp.pad(x, ((1,), (2,)), 'edge')", ValueError, r"unsupported shape \(2, 1\)"),
    ("jnp.pad(x, 1.5)", TypeError, "must be of integral type"),
    ("jnp.pad(x, -1)", ValueError, "can't contain negative values"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})
