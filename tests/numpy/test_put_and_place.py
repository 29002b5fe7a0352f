"""place, put, put_along_axis and fill_diagonal, compared with jax."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted

CALLS = [
    text[:-1] + ", inplace=False)"
    for text in (
        "jnp.place(x, x > 3, n)", "jnp.place(x, b[:, :1].repeat(4, 1), s)", "jnp.place(i, i > 2, i[0, 1:2])",
        "jnp.place(x, x, jnp.arange(20.0))", "jnp.place(x, b, 5)", "jnp.place(x, b.ravel(), v)",
        "jnp.place(z, z, v)", "jnp.put(x, n, v)", "jnp.put(x, np.array([0, 15, -1, -13]), v[:2])",
        "jnp.put(x, np.array([0, 15, -1]), 9.0, mode='wrap')", "jnp.put(x, np.array([0, 15, -1, -20]), 9.0, 'clip')",
        "jnp.put(i, 0, 9)", "jnp.put(x, n[:1], v)", "jnp.put(x, n, z)", "jnp.put(x, n[None], v)",
        "jnp.put(z, n, 1.0)",
        "jnp.put_along_axis(x, np.array([[0, 1]]), 9.0, 1)", "jnp.put_along_axis(x, n[:, None], 9.0, 1)",
        "jnp.put_along_axis(x, np.array([[0], [1], [9]]), 9.0, 1)", "jnp.put_along_axis(x, n, 9.0, None)",
        "jnp.put_along_axis(x, np.array([[0], [1], [9]]), 9.0, 1, mode='clip')",
        "jnp.put_along_axis(x, n[:, None], np.array([[1.0], [2], [3]]), 1)", "jnp.put_along_axis(y, i[None, :2], s, 1)",
        "jnp.fill_diagonal(x, 7)", "jnp.fill_diagonal(x, v[:2])", "jnp.fill_diagonal(x.T, x)",
        "jnp.fill_diagonal(jnp.zeros((2, 2, 2)), 7.0)", "jnp.fill_diagonal(i, 7)", "jnp.fill_diagonal(b, True)",
    )
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", CALLS)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=CALLS)


def test_jitted_values_are_those_of_jax():
    check_jitted(CALLS)


ERRORS = [
    ("jnp.place(x, x, x)", ValueError, "xtrace.numpy.place cannot modify arrays in-place"),
    ("jnp.place(x, x[0], x, inplace=False)", ValueError, r"same size, got shapes \(3, 4\) and \(4,\)"),
    ("jnp.place(x, x, x[:0], inplace=False)", ValueError, "place values from an empty array"),
    ("jnp.place(x, x, [1], inplace=False)", TypeError, "argument 2"),
    ("jnp.put(x, [0], 1)", ValueError, "xtrace.numpy.put cannot modify arrays in-place"),
    ("jnp.put(x, 0, 1)", ValueError, "xtrace.numpy.put cannot modify arrays in-place"),
    ("jnp.put(x, 0, 1, mode='raise', inplace=False)", NotImplementedError, "put: mode 'raise'"),
    ("jnp.put(x, 0, 1, mode='foo', inplace=False)", ValueError, "mode='foo'"),
    ("jnp.put(x, 0.5, 1, inplace=False)", TypeError, "put: ind must have an integer type, got float32"),
    ("jnp.put(x, [0], 1, inplace=False)", TypeError, "argument 1"),
    ("jnp.put_along_axis(x, jnp.ones((1, 1), int), 1, 1)", ValueError, "put_along_axis cannot modify arrays in-place"),
    ("jnp.put_along_axis(x, jnp.ones(2, int), 1, 1, inplace=False)", ValueError, "must have same ndim"),
    ("jnp.put_along_axis(x, x, 1, 1, inplace=False)", TypeError, "integer type, got float32"),
    ("jnp.put_along_axis(x, jnp.ones((3, 1), int), jnp.ones((2, 2)), 1, inplace=False)", ValueError,
     r"broadcastable to 'indices'. Got values.shape=\(2, 2\)"),
    ("jnp.put_along_axis(x, jnp.ones((3, 1), int), 1, 5, inplace=False)", ValueError, "axis 5 is out of bounds"),
    ("jnp.put_along_axis(x, jnp.ones((3, 1), int), 1, 1, inplace=False, mode='foo')", ValueError, "'foo'"),
    ("jnp.fill_diagonal(x, 1)", NotImplementedError, "fill_diagonal cannot modify arrays in-place"),
    ("jnp.fill_diagonal(x, 1, wrap=True, inplace=False)", NotImplementedError, "wrap=True"),
    ("jnp.fill_diagonal(x[0], 1, inplace=False)", ValueError, r"at least 2-d, got shape \(4,\)"),
    ("jnp.fill_diagonal(jnp.ones((2, 3, 2)), 1, inplace=False)", ValueError, "equal length"),
    ("jnp.fill_diagonal(x, x[:0], inplace=False)", ValueError, "val has no element"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "x": jnp.ones((3, 4))})


def test_gradients_reach_what_is_kept_and_what_is_put():
    x, v = jnp.arange(6.0).reshape(2, 3), jnp.array([5.0, 7.0])
    kept, given = xtrace.grad(lambda x, v: (jnp.place(x, x > 2, v, inplace=False) * x).sum(), (0, 1))(x, v)
    np.testing.assert_array_equal(kept, [[0, 2, 4], [5, 7, 5]])
    np.testing.assert_array_equal(given, [3 + 5, 4])
