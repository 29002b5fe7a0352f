"""The operation behind gamma samples, which `random` names as jax's does."""

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours, theirs


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("log_space", [False, True])
def test_the_primitive_samples_as_the_function_does(log_space):
    a = np.array([0.5, 1.0, 2.5], np.float32)
    got = xtrace.random.random_gamma_p.bind(xtrace.random.key(3), ours(a), log_space=log_space)
    # Its samples and those of the function are the same bits; jax's agree within roundings of the rejection method.
    function = xtrace.random.loggamma if log_space else xtrace.random.gamma
    np.testing.assert_array_equal(got, function(xtrace.random.key(3), ours(a)))
    assert_same(got, jax.random.random_gamma_p.bind(jax.random.key(3), theirs(a), log_space=log_space), 32)
