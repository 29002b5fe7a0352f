"""Arguments of random's functions that are of a wrong kind."""

import numpy as np
import pytest

from xtrace import nn, random
from xtrace import numpy as jnp


@pytest.mark.parametrize("d", ["x", None, 2.5])
def test_the_dimensions_of_a_ball_are_an_integer(d):
    with pytest.raises(TypeError, match=r"ball: d must be an integer, got"):
        random.ball(random.key(0), d)


SHAPED = {
    "normal": lambda key, shape: random.normal(key, shape), "uniform": lambda key, shape: random.uniform(key, shape),
    "randint": lambda key, shape: random.randint(key, shape, 0, 9), "bits": lambda key, shape: random.bits(key, shape),
    "gamma": lambda key, shape: random.gamma(key, 2.0, shape), "beta": lambda key, shape: random.beta(key, 2, 3, shape),
    "bernoulli": lambda key, shape: random.bernoulli(key, 0.5, shape),
    "t": lambda key, shape: random.t(key, 2.0, shape),
    "poisson": lambda key, shape: random.poisson(key, 2.0, shape),
    "ball": lambda key, shape: random.ball(key, 2, 2, shape),
    "dirichlet": lambda key, shape: random.dirichlet(key, jnp.ones(3), shape),
    "categorical": lambda key, shape: random.categorical(key, jnp.ones(3), shape=shape),
    "multivariate_normal": lambda key, shape: random.multivariate_normal(key, jnp.ones(2), jnp.eye(2), shape),
    "truncated_normal": lambda key, shape: random.truncated_normal(key, -1.0, 1.0, shape),
    "orthogonal": lambda key, shape: random.orthogonal(key, 2, shape),
    "wald": lambda key, shape: random.wald(key, 1.0, shape),
    "he_normal": lambda key, shape: nn.initializers.he_normal()(key, shape),
}


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_are_iterators(name):
    draw, key = SHAPED[name], random.key(0)
    np.testing.assert_array_equal(draw(key, (n for n in (2, 3))), draw(key, (2, 3)))


@pytest.mark.parametrize("shape", [{2, 3}, "23", (2.0,), None])
def test_shapes_are_ordered_integers(shape):
    with pytest.raises(TypeError, match="normal: shape must be an integer or a sequence of integers"):
        random.normal(random.key(0), shape)
