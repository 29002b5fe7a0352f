"""Elements taken out and put in, compared with jax."""

import jax
import numpy as np
import pytest

import xtrace
import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.rules import check_rules

CASES = [
    "jnp.delete(v, 1)", "jnp.delete(v, -1)", "jnp.delete(x, 1, axis=0)", "jnp.delete(x, 1)",
    "jnp.delete(v, slice(0, 2))", "jnp.delete(v, slice(None, None, -2))", "jnp.delete(v, np.array([0, 0, 1]))",
    "jnp.delete(v, np.array([True, False, True, False]))",
    "jnp.delete(v, jnp.array([0, 1]), assume_unique_indices=True)", "jnp.delete(v, np.array([-1, 0]))",
    "jnp.delete(v, n[:2], assume_unique_indices=True)",
    "jnp.delete(v, jnp.array([0, 9]), assume_unique_indices=True)",
    "jnp.delete(x, n[1:], assume_unique_indices=True, axis=1)", "jnp.delete(v, np.array([], int))",
    "jnp.delete(x, np.array([[0, 1]]), axis=1)", "jnp.delete(v, True)",
    "jnp.delete(v, wi, assume_unique_indices=True)", "jnp.insert(v, 1, 9)", "jnp.insert(v, 1, jnp.array([7, 8]))",
    "jnp.insert(x, 1, 5, axis=0)", "jnp.insert(x, 1, 5)", "jnp.insert(x, 1, v, axis=0)",
    "jnp.insert(x, jnp.array([1, 2]), v[:2], axis=1)", "jnp.insert(x, 1, x[:, :2].T, axis=1)", "jnp.insert(v, -1, 9)",
    "jnp.insert(v, 9, 9)", "jnp.insert(v, slice(0, 2), 9)", "jnp.insert(v, jnp.array([1, 1]), jnp.array([8, 9]))",
    "jnp.insert(v, jnp.array([3, 0]), jnp.array([8, 9]))", "jnp.insert(n, 1, 2.7)", "jnp.insert(2, 0, 1)",
    "jnp.insert(x, 1, v[:3], axis=1)", "jnp.insert(x, jnp.array([1]), v[:3, None], axis=1)",
    "jnp.insert(v, jnp.array([0, 9]), 1)", "jnp.insert(v, jnp.array([], int), 1)", "jnp.insert(v, wi, 9)",
    "jnp.insert(v, n, 9)", "jnp.insert(v, -9, 9)", "jnp.insert(w, 0, 2)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 4, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 4)


@pytest.mark.slow
def test_rules():
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = np.array([[1.5, 4.0, -3.0, 2.5], [0.5, 3.0, -1.0, 7.0]], np.float32)

    def several(lax, x):
        library = modules[lax]
        return [
            library.insert(x, 1, 9.0, axis=1),
            library.delete(x, 1, axis=1),
            library.insert(x, np.array([0, 2]), 7.0, axis=0),
        ]

    check_rules(several, x, second=False, rounding=64)


# Their shapes depend on values, so that they do not go into a jitted function.
TRIMMED = [
    "jnp.trim_zeros(u)", "jnp.trim_zeros(v, 'f')", "jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]), 'b')",
    "jnp.trim_zeros(v * 0)", "jnp.trim_zeros(v, 'q')", "jnp.trim_zeros(v, 'FB')", "jnp.trim_zeros(v, '')",
    "jnp.trim_zeros(2)", "jnp.trim_zeros(jnp.eye(3)[1:])", "jnp.trim_zeros(jnp.eye(3)[1:], axis=(0,))",
    "jnp.trim_zeros(jnp.eye(3)[1:], 'f')", "jnp.trim_zeros(jnp.zeros((2, 3)), axis=1)", "jnp.trim_zeros(q * 0)",
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("text", TRIMMED)
def test_trimmed_values_are_those_of_jax(text):
    check_eagerly(text)


ERRORS = [
    ("jnp.delete(v, 4)", ValueError, "delete: index 4 is out of bounds for axis 0 of length 4"),
    ("jnp.delete(v, [0, 1])", TypeError, "delete requires ndarray or scalar arguments; argument 1"),
    ("jnp.delete(v, np.array([0, 9]))", IndexError, "delete: an index is out of bounds"),
    ("jnp.delete(v, 1.5)", ValueError, "delete: obj must be a slice, integers or booleans"),
    ("jnp.delete(v, np.array([True]))", ValueError, "one-dimensional with the length of the axis, 4"),
    ("jnp.delete(x, 0, axis=5)", ValueError, "delete: axis 5 is out of bounds"),
    ("xtrace.jit(jnp.delete)(v, 1)", xtrace.errors.ConcretizationTypeError, "without assume_unique_indices=True"),
    ("jnp.insert(v, 1.5, 1)", ValueError, "insert: obj must be integers or a slice"),
    ("jnp.insert(v, jnp.array([[1]]), 1)", ValueError, "a one-dimensional array, or a scalar; got shape"),
    ("jnp.insert(x, 1, v[:2], axis=1)", ValueError, "Incompatible types for broadcasting"),
    ("xtrace.jit(jnp.trim_zeros)(v)", xtrace.errors.ConcretizationTypeError, "trim_zeros argument filt"),
    ("jnp.trim_zeros(v, 2)", TypeError, "trim_zeros: trim must be a string"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "xtrace": xtrace, **names})
