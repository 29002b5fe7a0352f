"""Windows, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same

NAMES = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def of(numpy, name, length):
    # Near 0 the weights are differences of numbers near 1, so they are compared beside it.
    return getattr(numpy, name)(length, *([3.0] if name == "kaiser" else [])) + 1


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_jax(name):
    for length in (0, 1, 2, 5, 8, 2.5):
        assert_same(of(jnp, name, length), of(jax.numpy, name, length), 4)
        assert_same(xtrace.jit(lambda length=length: of(jnp, name, length))(), of(jax.numpy, name, length), 4)


def test_kaiser_of_other_types():
    for beta in (np.float16(2), np.int32(2), 0):
        assert_same(jnp.kaiser(4, beta), jax.numpy.kaiser(4, beta), 16)
    got = xtrace.grad(lambda beta: jnp.kaiser(5, beta).sum())(2.0)
    assert_same(got, jax.grad(lambda beta: jax.numpy.kaiser(5, beta).sum())(2.0), 64)


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    with pytest.raises(TypeError, match=f"{name}: the length M must not be negative"):
        of(jnp, name, -2)
    with pytest.raises(ValueError, match="invalid literal"):
        of(jnp, name, "a")
    with pytest.raises(xtrace.errors.ConcretizationTypeError, match=f"numpy.{name}"):
        xtrace.jit(lambda length: of(jnp, name, length))(3)
