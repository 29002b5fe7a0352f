"""Initializers against jax.nn.initializers: the same numbers for the same key."""

import jax
import numpy as np
import pytest

import xtrace
import xtrace.random
from tests.support.operands import assert_same
from xtrace.nn import initializers

NAMED = ["glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform",
         "lecun_normal", "lecun_uniform", "xavier_normal", "xavier_uniform"]


def check(make, shape, rounding=4, *dtype):
    """Assert that ``make(library)`` gives jax's numbers, eagerly and under jit."""
    theirs, initializer, key = make(jax.nn.initializers), make(initializers), xtrace.random.key(3)
    expected = theirs(jax.random.key(3), shape, *dtype)
    assert (initializer.__name__, initializer.__qualname__) == (theirs.__name__, theirs.__qualname__)
    assert_same(initializer(key, shape, *dtype), expected, rounding)
    assert_same(xtrace.jit(lambda k: initializer(k, shape, *dtype))(key), expected, rounding)


def test_plain():
    check(lambda i: i.normal(0.1), (2, 3))
    check(lambda i: i.normal(), (2,), 4, np.float16)
    check(lambda i: i.uniform(0.5), (4,))
    check(lambda i: i.truncated_normal(0.3, lower=-1.0, upper=0.5), (5,))
    check(lambda i: i.constant(np.arange(3)), (2, 3))
    check(lambda i: i.constant(2, dtype=np.int8), (3,))
    check(lambda i: i.zeros, (2, 3), 4, np.int32)
    check(lambda i: i.ones, (2, 0))


@pytest.mark.parametrize("name", NAMED)
def test_named(name):
    check(lambda i: getattr(i, name)(), (3, 4))


@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
def test_variance_scaling(distribution):
    for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
        check(lambda i, mode=mode: i.variance_scaling(1.7, mode, distribution), (3, 2, 4))
    axes = {"in_axis": (0, 1), "out_axis": 2, "batch_axis": 3}
    check(lambda i: i.variance_scaling(2.0, "fan_in", distribution, **axes), (2, 3, 4, 5))
    check(lambda i: i.variance_scaling(2.0, "fan_in", distribution, dtype=np.complex64), (3, 4), 16)


def test_orthogonal():
    # Q is exact to a few roundings of numbers of size 1.
    for shape, axis in (((3, 3), -1), ((2, 3), -1), ((4, 2), -1), ((4, 2, 3), 0), ((2, 3, 4), 1)):
        got = initializers.orthogonal(2.0, axis)(xtrace.random.key(3), shape)
        expected = jax.nn.initializers.orthogonal(2.0, axis)(jax.random.key(3), shape)
        np.testing.assert_allclose(got, expected, atol=64 * 2.0**-23)
        matrix = np.moveaxis(np.asarray(got), axis, -1).reshape(-1, shape[axis]) / 2
        square = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
        np.testing.assert_allclose(square, np.eye(len(square)), atol=64 * 2.0**-23)
    for shape in ((3, 2, 3), (2, 4, 2, 2), (3, 3, 3, 1, 2)):
        got = initializers.delta_orthogonal(0.5)(xtrace.random.key(3), shape)
        expected = jax.nn.initializers.delta_orthogonal(0.5)(jax.random.key(3), shape)
        np.testing.assert_allclose(got, expected, atol=64 * 2.0**-23)


def test_errors():
    key = xtrace.random.key(0)
    for error, words, initializer, shape in (
        (ValueError, "invalid mode for variance scaling initializer: foo",
         initializers.variance_scaling(1.0, "foo", "normal"), (2, 3)),
        (ValueError, "invalid distribution for variance scaling initializer: foo",
         initializers.variance_scaling(1.0, "fan_in", "foo"), (2, 3)),
        (ValueError, "Can't compute input and output sizes of a 1-dimensional", initializers.he_normal(), (3,)),
        (IndexError, "axes 5 are out of bounds", initializers.he_normal(in_axis=5), (3, 2)),
        (ValueError, "requires at least a 2D shape", initializers.orthogonal(), (3,)),
        (ValueError, "requires a 3D, 4D or 5D shape", initializers.delta_orthogonal(), (3, 3)),
        (ValueError, "`fan_in` must be less", initializers.delta_orthogonal(), (3, 3, 2)),
        (ValueError, "float", initializers.normal(dtype=np.int32), (3,)),
        (ValueError, "float", initializers.he_uniform(dtype=np.int32), (3, 2)),
    ):
        with pytest.raises(error, match=words):
            initializer(key, shape)
    with pytest.raises(TypeError):
        initializers.normal()(3, (2,))
    with pytest.raises(TypeError, match="out_sharding"):
        initializers.zeros(key, (2,), out_sharding="x")
    assert isinstance(initializers.normal(), initializers.Initializer)
