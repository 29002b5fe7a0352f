"""Histograms and counts of integers, compared with jax."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted

CASES = [
    "jnp.bincount(n, length=5)", "jnp.bincount(n, length=2)", "jnp.bincount(u, length=5, weights=u)",
    "jnp.bincount(n, length=3, weights=c[0])", "jnp.bincount(b[0], length=2)", "jnp.bincount(n, length=0)",
    "jnp.bincount(n, weights=v[1:], length=6)", "jnp.histogram(x)", "jnp.histogram(x, 5, range=(0, 2))",
    "jnp.histogram(x, v)", "jnp.histogram(i, 3)", "jnp.histogram(b, 3)", "jnp.histogram(v, 5, density=True)",
    "jnp.histogram(x, 5, weights=i)", "jnp.histogram(x, 0)", "jnp.histogram(x, range=(1, 1))", "jnp.histogram(2.0)",
    "jnp.histogram(h, 3)", "jnp.histogram(x, 4, weights=x, density=True)", "jnp.histogram(u, v)",
    "jnp.histogram_bin_edges(x)", "jnp.histogram_bin_edges(i, v)", "jnp.histogram_bin_edges(q, 3)",
    "jnp.histogram_bin_edges(x, 3, range=[0, 1])", "jnp.histogram_bin_edges(x, 3, range=v[1:3])",
    "jnp.histogram2d(v, v * v, 3)", "jnp.histogram2d(v, u[:4], (2, 3), range=((0, 1), None))",
    "jnp.histogram2d(v, v, v)", "jnp.histogram2d(v, v, [3, v])", "jnp.histogram2d(v, v, 3, weights=v, density=True)",
    "jnp.histogramdd(x, 2)", "jnp.histogramdd(x[:, :2], [v, 3], weights=n)",
    "jnp.histogramdd(x[:, :2], [v, 3], weights=v[1:], density=True)", "jnp.histogramdd(i[:, :2], 2, density=True)",
    "jnp.histogramdd(x[:, :2], (2, 2), range=((0, 5), (0, 3)))",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 32, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 32)


def test_counts_are_as_long_as_the_largest_element():
    assert jnp.bincount(jnp.array([0, 3, 3])).tolist() == [1, 0, 0, 2]
    assert jnp.bincount(jnp.array([0, 1]), minlength=4).tolist() == [1, 1, 0, 0]
    assert jnp.bincount(jnp.zeros(0, int)).shape == (0,)


ERRORS = [
    ("jnp.bincount(v)", TypeError, "bincount: x must have an integer type; got float32"),
    ("jnp.bincount(jnp.ones((2, 2), int))", ValueError, "bincount: only 1-dimensional input"),
    ("jnp.bincount(n, v)", ValueError, r"bincount: weights of shape \(4,\) must have the shape of x"),
    ("jnp.bincount(n, length=-1)", TypeError, "bincount: length must not be negative"),
    ("xtrace.jit(jnp.bincount)(n)", xtrace.errors.ConcretizationTypeError, r"bincount argument x \(without length=\)"),
    ("jnp.histogram(v, weights=x)", ValueError, "histogram: weights of shape"),
    ("jnp.histogram(v, 2.5)", TypeError, "histogram: bins must be an integer"),
    ("jnp.histogram(v, 'auto')", TypeError, "the rule 'auto' is not supported"),
    ("jnp.histogram_bin_edges(v, 'auto')", NotImplementedError, "the rule 'auto' is not implemented"),
    ("jnp.histogram(v, x)", TypeError, "histogram: bins must be an integer or a 1-D array"),
    ("jnp.histogram(jnp.ones(0))", ValueError, "histogram: an array without elements has no range"),
    ("jnp.histogram(v, range=3)", ValueError, "`range` must be either None or a pair of scalars"),
    ("jnp.histogram(v, -3)", ValueError, "must be non-negative"),
    ("jnp.histogram2d(v, n)", ValueError, "histogram2d: x and y must be vectors of one length"),
    ("jnp.histogramdd(v)", ValueError, "histogramdd: sample must have rows of coordinates"),
    ("jnp.histogramdd(x, [2, 2])", ValueError, "a bin for each dimension: 2 for 4"),
    ("jnp.histogramdd(x, 3, range=[(0, 1)])", ValueError, "range must be a sequence of 4 pairs"),
    ("jnp.histogramdd(x, 2, weights=v)", ValueError, "one weight for each sample"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "xtrace": xtrace, **names})
