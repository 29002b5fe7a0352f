"""select, piecewise, choose, compress, take_along_axis and their kin, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import ALL, assert_same, dtypes_in, ours, random_values, seeds, theirs
from tests.support.rules import check_rules

CALLS = [
    "jnp.select([v < 1, v > 2], [v, 2 * v])", "jnp.select([v < 1, v > 2], [v, 2 * v], default=7)",
    "jnp.select([v], [v])", "jnp.select([b], [v], x[0])", "jnp.select([True], [1])", "jnp.select([v < 1], [1], 2.5)",
    "jnp.select([v < 1], [i[0]], 2)", "jnp.select([v < 1, v >= 0], [i[0], v], 2)",
    "jnp.select([b, x < 5], [c[0, 0], x])",
    "jnp.piecewise(v, [v < 1, v > 2], [0, 1, 2])", "jnp.piecewise(v, [v < 1], [lambda a: a * 2, lambda a: -a])",
    "jnp.piecewise(i, [i < 1], [1.7])", "jnp.piecewise(v, [v < 1], [lambda a, c: a * c, 3], 4)",
    "jnp.piecewise(2.0, [True], [3.0])", "jnp.piecewise(v, [v < 1, v < 3], [1, 2])",
    "jnp.piecewise(v, [v < 1], [lambda a, k=2: a * k], k=5)", "jnp.piecewise(v, jnp.stack([v < 1, v > 2]), [3.0, 4])",
    "jnp.piecewise(v, [v < 1], [lambda a: a.astype('int32')])", "jnp.piecewise(x, [x < 1, b], [jnp.sin, jnp.cos, 2])",
    "jnp.fromfunction(lambda a, b: a + b, (2, 3))", "jnp.fromfunction(lambda a, b: a + b, (2, 3), dtype=int)",
    "jnp.fromfunction(lambda a, b: 3, (2, 3))", "jnp.fromfunction(lambda a, b: (a, b), (2, 3))",
    "jnp.fromfunction(lambda: 3, ())", "jnp.fromfunction(lambda a: jnp.ones(2) * a, (3,))",
    "jnp.fromfunction(lambda a: a, 3, dtype='int8')",
    "jnp.choose(np.array([0, 1, 0, 0]), [v, 10 + v])", "jnp.choose(n, [n, 10 + n, 20 + n], mode='wrap')",
    "jnp.choose(n, [n, 10 + n], mode='clip')", "jnp.choose(np.array([[0], [1]]), [v, 2])",
    "jnp.choose(1, [1, 2.5])", "jnp.choose(n, x.T[:2, 0], mode='clip')", "jnp.choose(u, [i[0, 0]], mode='clip')",
    "jnp.extract(b, x, size=10)", "jnp.extract(b, x, size=2)", "jnp.extract(b, x, size=10, fill_value=-1)",
    "jnp.extract(x, i, size=9)", "jnp.compress(np.array([True, False]), x, axis=1, size=1)",
    "jnp.compress(np.array([True, False, True]), x, axis=0, size=3, fill_value=-1)",
    "jnp.compress(np.array([1, 0, 1]), x, size=2)", "jnp.take_along_axis(x, n[:, None], 1)",
    "jnp.take_along_axis(x, n[:, None], axis=1, mode='clip')", "jnp.take_along_axis(x, n[None, :, None][0], axis=0)",
    "jnp.take_along_axis(x, np.array([[9, -9, 1]] * 3), axis=1)", "jnp.take_along_axis(x, np.array([0, 20, -1]), None)",
    "jnp.take_along_axis(x, np.array([[9, -9, 1]] * 3), axis=1, fill_value=-5)",
    "jnp.take_along_axis(x, np.array([[9, -9, 1]] * 3), axis=1, mode='clip')",
    "jnp.take_along_axis(x, np.array([[9, -9, 1]] * 3), axis=1, mode='one_hot')",
    "jnp.take_along_axis(x, np.array([[9, -9, 1]]), axis=1)", "jnp.take_along_axis(x[:1], n[:, None], 1)",
    "jnp.take_along_axis(i, np.array([[9, -9, 1]] * 3), 1)", "jnp.take_along_axis(b, np.array([[9, -9, 1]] * 3), 1)",
    "jnp.take_along_axis(u, np.array([9, -1, 0]), 0)", "jnp.take_along_axis(y, i[None, :, :1], 1)",
    "jnp.take_along_axis(y, u[None, None, :], 2)", "jnp.take_along_axis(z, n[:0, None], 1)",
    "jnp.take_along_axis(x, np.zeros((3, 0), int), 1)", "jnp.take_along_axis(jnp.zeros((3, 0)), n[:, None], 1)",
    "jnp.take_along_axis(x, n[:, None], 1, wrap_negative_indices=False)",
]
EAGER = [
    "jnp.extract(b, x)", "jnp.extract(v > 1, x)", "jnp.extract(True, 3)", "jnp.extract(x, i)",
    "jnp.compress(np.array([1, 0, 1]), x, axis=0)", "jnp.compress(np.array([1, 0, 1]), x, axis=[0])",
    "jnp.compress(np.array([True, False, True]), x)",
    "jnp.compress(np.array([True, False, False, False, False]), x, axis=1)", "jnp.compress(np.array([True]), 2.0)",
    "jnp.compress(np.array([False]), x, axis=1)",
]


# A choice is checked where its numbers are known.
JITTED = [text for text in CALLS if "np.array([0, 1, 0, 0])" not in text]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", CALLS + EAGER)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=JITTED)


def test_jitted_values_are_those_of_jax():
    check_jitted(JITTED)


CONCRETE = xtrace.errors.ConcretizationTypeError
ERRORS = [
    ("jnp.select([x], [x, x])", ValueError, r"select: condlist must have length .*\(1 vs 2\)"),
    ("jnp.select([], [])", ValueError, "select: condlist must be non-empty"),
    ("jnp.select([x], [jnp.ones(3)])", ValueError, r"select: .*\(3,\)"),
    ("jnp.select([[True]], [x])", TypeError, "select requires"),
    ("jnp.piecewise(x, [x], [1, 2, 3])", ValueError, "with 1 condition.*got 3"),
    ("jnp.piecewise(x, [], [1])", ValueError, "piecewise: condlist must not be empty"),
    ("jnp.piecewise([1], [True], [1])", TypeError, "piecewise requires"),
    ("jnp.piecewise(x, [x], [jnp.ones(4)])", TypeError, "branch"),
    ("jnp.fromfunction(lambda a: a, (2.5,))", TypeError, "fromfunction: shape"),
    ("jnp.choose(jnp.array([0, 3]), [x[0, :2], x[0, :2]])", ValueError, "choose: invalid entry .* 2 choices"),
    ("jnp.choose(0, [x], mode='foo')", ValueError, "choose: mode='foo'"),
    ("jnp.choose(0, [])", ValueError, "choose: choices must not be empty"),
    ("jnp.choose(0, [x], out=x)", NotImplementedError, "xtrace.numpy.choose"),
    ("jnp.choose(x, [x])", ValueError, "choose: a must be an array of integers, got float32"),
    ("xtrace.jit(lambda a: jnp.choose(a, [1, 2]))(0)", CONCRETE, "mode='wrap'"),
    ("jnp.extract(x, x[0])", ValueError, "extract: condition contains entries that are out of bounds"),
    ("jnp.extract([True], x)", TypeError, "extract requires"),
    ("xtrace.jit(jnp.extract)(x, x)", CONCRETE, "size="),
    ("jnp.compress(x, x)", ValueError, r"compress: condition must be a 1D array, got shape \(3, 4\)"),
    ("jnp.compress(x[0], x, axis=0)", ValueError, "compress: condition .* 4 elements for an axis of size 3"),
    ("jnp.compress(x[0], x, axis=1, size=5)", ValueError, "compress: size must not be negative.*size=5 for 4"),
    ("jnp.compress(x[0], x, axis=4)", ValueError, "compress: axis 4 is out of bounds"),
    ("jnp.compress(x[0], x, out=x)", NotImplementedError, "xtrace.numpy.compress"),
    ("jnp.take_along_axis(x, x, 1)", TypeError, "take_along_axis indices must be of integer type, got float32"),
    ("jnp.take_along_axis(x, jnp.ones(2, int), 1)", ValueError, r"same number of dimensions; 1 vs. 2"),
    ("jnp.take_along_axis(x, jnp.ones((2, 2), int), 1)", ValueError, "take_along_axis: Incompatible shapes"),
    ("jnp.take_along_axis(x, jnp.ones((3, 2), int), 3)", ValueError, "take_along_axis: axis 3 is out of bounds"),
    ("jnp.take_along_axis(x, jnp.ones((3, 2), int), 1, mode='foo')", ValueError, "unknown gather/scatter mode 'foo'"),
    ("jnp.take_along_axis(x, [0], 0)", TypeError, "take_along_axis requires"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "xtrace": xtrace, "x": jnp.ones((3, 4))})


def test_derivatives_of_take_along_axis_are_those_of_jax():
    x, at = random_values(np.float32, (3, 4), 1, -2, 2), np.array([[0, 1], [3, -1], [1, 2]], np.int32)
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    check_rules(lambda lax, x, at: modules[lax].take_along_axis(x, at, 1), x, at)


def test_a_gradient_of_piecewise_stays_finite():
    def of(package, numpy):
        return package.grad(lambda x: numpy.piecewise(x, [x > 0], [numpy.log, lambda a: a * a]).sum())

    x = np.array([-1.0, 0.0, 2.0], np.float32)
    got = of(xtrace, jnp)(ours(x))
    assert_same(got, of(jax, jax.numpy)(theirs(x)))
    assert np.isfinite(got).all()


@given(st.integers(1, 3), st.data(), dtypes_in(ALL), st.sampled_from([None, "clip"]), seeds)
@settings(max_examples=12)
def test_take_along_any_axis(rank, data, dtype, mode, seed):
    axis = data.draw(st.integers(-rank, rank - 1))
    shape = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    own = [data.draw(st.integers(0, 3)) if i == axis % rank else data.draw(st.sampled_from([1, n]))
           for i, n in enumerate(shape)]
    thin = [n if i == axis % rank else data.draw(st.sampled_from([1, n])) for i, n in enumerate(shape)]
    values, at = random_values(dtype, thin, seed), random_values(np.int32, own, seed, -5, 5)
    got = jnp.take_along_axis(ours(values), ours(at), axis, mode)
    assert_same(got, jax.numpy.take_along_axis(theirs(values), theirs(at), axis, mode), 0)
