"""Unique elements and operations on sets, compared with jax."""

import itertools

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import assert_same, dtypes_in, ours, random_values, seeds, theirs

ALL_OF_IT = "return_index=True, return_inverse=True, return_counts=True"
OF_SIZE = [
    f"jnp.unique({x}, {ALL_OF_IT}, size={size})" for x, size in itertools.product("cqw", (0, 2, 7))
] + [
    f"jnp.unique(x, {ALL_OF_IT}, axis=0, size=4)", f"jnp.unique(b, {ALL_OF_IT}, axis=1, size=5, fill_value=True)",
    f"jnp.unique(i, {ALL_OF_IT}, size=5, fill_value=-7)", f"jnp.unique(q, {ALL_OF_IT}, size=6, equal_nan=False)",
    "jnp.unique(x, axis=0, size=4, fill_value=9)", "jnp.unique(z, size=2, fill_value=3)", "jnp.unique(w, size=2)",
    "tuple(jnp.unique_all(q, size=6))", "tuple(jnp.unique_counts(q, size=3, fill_value=0))",
    "tuple(jnp.unique_inverse(b, size=2))", "jnp.unique_values(u, size=7)",
    "tuple(jnp.unique_all(z, size=2, fill_value=1))", f"jnp.unique(z.T, {ALL_OF_IT}, axis=1, size=2, fill_value=1)",
    "jnp.union1d(n, u, size=7)", "jnp.union1d(n, u, size=9, fill_value=-3)", "jnp.union1d(n, u, size=2)",
    "jnp.intersect1d(n, u, size=4)", "jnp.intersect1d(n, u, return_indices=True, size=4, fill_value=9)",
    "jnp.intersect1d(n, n - 9, return_indices=True, size=2)", "jnp.intersect1d(x, i, True, True, size=3)",
    "jnp.intersect1d(z, x, size=2)", "jnp.intersect1d(q, q, size=5)", "jnp.intersect1d(c, c, False, True, size=3)",
    "jnp.setdiff1d(x, n, size=5)", "jnp.setdiff1d(x, n, size=14, fill_value=-1)", "jnp.setdiff1d(x, n, True, size=11)",
    "jnp.setdiff1d(np.zeros(0, int), n)",
    "jnp.setdiff1d(n, n, size=2)", "jnp.setdiff1d(z, n, size=2)", "jnp.setdiff1d(n, z, size=3)",
    "jnp.setxor1d(n, u, size=4)", "jnp.setxor1d(n, u, size=9)", "jnp.setxor1d(n, u, size=9, fill_value=0)",
    "jnp.setxor1d(n, n, size=2)", "jnp.setxor1d(q, q, size=2)", "jnp.setxor1d(q, v, size=4)",
    "jnp.setxor1d(q, v[:2], size=9)", "jnp.setxor1d(n, u, size=9, fill_value=2.5)", "jnp.setxor1d(b, b[:1], size=5)",
    "jnp.setxor1d(c * np.nan, c, size=9)", "jnp.setxor1d(b, ~b, size=5, fill_value=7)",
    "jnp.intersect1d(n, u, size=4, fill_value=2.5)", "jnp.intersect1d(z, x, size=2, fill_value=1j)",
    "jnp.nonzero(z, size=2, fill_value=7)", "jnp.argwhere(z, size=2, fill_value=7)",
    "jnp.flatnonzero(x, size=0, fill_value=np.nan)", "jnp.where(z, size=2, fill_value=np.nan)",
    "jnp.isin(x, n)", "jnp.isin(x, n, invert=True)", "jnp.isin(q, q)", "jnp.isin(2, n)", "jnp.isin(n, 2)",
    "jnp.isin(n, z)", "jnp.isin(n, z, invert=True)", "jnp.isin(z, n)", "jnp.isin(c, c)", "jnp.isin(b, n)",
    "jnp.isin(x, jnp.arange(-70, 70, 3))", "jnp.isin(x, n, method='sort')", "jnp.isin(b, 0.5, method='binary_search')",
    "jnp.isin(x, n, method='compare_all')",
    "jnp.isin(x, jnp.arange(-70, 70, 3), method='binary_search')",
]
EAGER = [
    *[f"jnp.unique({x}, {ALL_OF_IT})" for x in ("i", "u", "b", "c", "q", "z", "n", "s", "w")], "jnp.unique(x, axis=1)",
    f"jnp.unique(b, {ALL_OF_IT}, axis=0)", f"jnp.unique(q, {ALL_OF_IT}, equal_nan=False)", "jnp.unique(z.T, axis=0)",
    "jnp.unique(z, axis=0)", "jnp.unique(n, sorted=False)", "jnp.unique(y, axis=2, return_inverse=True)",
    "tuple(jnp.unique_all(b))", "tuple(jnp.unique_counts(q))", "tuple(jnp.unique_inverse(b))", "jnp.unique_values(n)",
    "jnp.union1d(x, q)", "jnp.union1d(2, 3.0)", "jnp.intersect1d(n, u)", "jnp.intersect1d(n, u, return_indices=True)",
    "jnp.intersect1d(q, q)", "jnp.intersect1d(z, x)", "jnp.setdiff1d(x, n)", "jnp.setdiff1d(n, u)",
    "jnp.setdiff1d(x, n, assume_unique=True)", "jnp.setdiff1d(q, v)", "jnp.setxor1d(n, u)", "jnp.setxor1d(q, q)",
    "jnp.setxor1d(q, v)", "jnp.setxor1d(z, n)", "jnp.unique(jnp.broadcast_to(w, 0))",
    "jnp.setxor1d(*[jnp.broadcast_to(w, 0)] * 2, size=2)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", EAGER)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text)


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("text", OF_SIZE)
def test_eager_values_of_a_size_are_those_of_jax(text):
    check_eagerly(text, among=OF_SIZE)


@pytest.mark.drawn(0.2)
@pytest.mark.slow
def test_jitted_values_are_those_of_jax():
    check_jitted(OF_SIZE)


CONCRETE = xtrace.errors.ConcretizationTypeError
ERRORS = [
    ("jnp.unique([1])", TypeError, "unique requires"),
    ("jnp.unique(x, axis=3)", ValueError, "unique: axis 3 is out of bounds"),
    ("jnp.unique(x[:0], size=2)", ValueError, "unique: .*fill_value must be specified"),
    ("jnp.unique(x, size=-1)", TypeError, "unique: size must not be negative, got -1"),
    ("jnp.unique(x, size=2.5)", TypeError, "unique: size must be an integer, got 2.5"),
    ("jnp.unique(x, size=3, fill_value=x[0])", ValueError, "does not broadcast"),
    ("xtrace.jit(jnp.unique)(x)", CONCRETE, "numpy.unique without size="),
    ("xtrace.jit(jnp.union1d)(x, x)", CONCRETE, "numpy.union1d without size="),
    ("xtrace.jit(jnp.intersect1d)(x, x)", CONCRETE, "numpy.intersect1d without size="),
    ("xtrace.jit(jnp.setdiff1d)(x, x)", CONCRETE, "numpy.setdiff1d without size="),
    ("xtrace.jit(jnp.setxor1d)(x, x)", CONCRETE, "numpy.setxor1d without size="),
    ("jnp.union1d(x, [1])", TypeError, "union1d requires .*argument 1"),
    ("jnp.isin([1], x)", TypeError, "isin requires"),
    ("jnp.isin(x, x, method='foo')", ValueError, "isin: method='foo' is not implemented"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "xtrace": xtrace, "x": jnp.ones((3, 4))})


@pytest.mark.drawn(0.3)
@given(st.integers(0, 9), st.integers(0, 9), dtypes_in([np.int8, np.float32, bool, np.uint32]), seeds)
@settings(max_examples=4)
@pytest.mark.slow
def test_operations_on_any_two_sets(first, second, dtype, seed):
    one, other = random_values(dtype, (first,), seed, 0, 4), random_values(dtype, (second,), seed + 1, 0, 4)
    one, other = np.round(one).astype(dtype), np.round(other).astype(dtype)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
        expected = getattr(np, name)(one, other)
        np.testing.assert_array_equal(getattr(jnp, name)(one, other), expected, err_msg=name)
        assert_same(getattr(jnp, name)(ours(one), ours(other)), getattr(jax.numpy, name)(theirs(one), theirs(other)))


_COMPLEX_NANS = np.array([complex(1, np.nan), 3, complex(np.nan, 1), 2, np.nan, complex(2, np.inf), 3], np.complex64)
OF_COMPLEX_NANS = [
    f"jnp.unique(x, {ALL_OF_IT})", f"jnp.unique(x, {ALL_OF_IT}, equal_nan=False)", "jnp.unique(x, size=3)",
    "jnp.unique(jnp.stack([x, x[::-1]]), axis=1)", "tuple(jnp.unique_all(x))", "tuple(jnp.unique_counts(x))",
    "tuple(jnp.unique_inverse(x))", "jnp.unique_values(x)", "jnp.union1d(x, x[:3])", "jnp.setdiff1d(x, x[:2])",
    "jnp.setdiff1d(x, x[:2], assume_unique=True)", "jnp.setxor1d(x, x[:4])", "jnp.intersect1d(x, x[:4])",
    "jnp.isin(x, x)",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", OF_COMPLEX_NANS)
def test_complex_numbers_with_nan_in_a_part_are_one_element(text):
    got, expected = (eval(text, {"jnp": m, "x": m.asarray(_COMPLEX_NANS)}) for m in (jnp, jax.numpy))
    for one, other in zip(xtrace.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        for part in (np.real, np.imag):
            np.testing.assert_array_equal(part(one), part(other))
