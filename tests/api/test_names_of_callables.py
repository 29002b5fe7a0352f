"""Callables with names that a function cannot have, and how transformations wrap them."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp


class Named:
    """A callable object, as libraries make them of modules."""

    def __init__(self):
        self.__name__, self.__qualname__, self.__module__ = 3, [1], None

    def __call__(self, x):
        return x * 2.0


USES = {
    "jit": lambda f: xtrace.jit(f)(1.0),
    "vmap": lambda f: xtrace.vmap(f)(jnp.ones(2)),
    "grad": lambda f: xtrace.grad(f)(1.0),
    "value_and_grad": lambda f: xtrace.value_and_grad(f)(1.0)[0],
    "jacfwd": lambda f: xtrace.jacfwd(f)(1.0),
    "jacrev": lambda f: xtrace.jacrev(f)(1.0),
    "checkpoint": lambda f: xtrace.checkpoint(f)(1.0),
    "named_call": lambda f: xtrace.named_call(f)(1.0),
    "custom_jvp": lambda f: [xtrace.custom_jvp(f), f(1.0)][1],
    "vectorize": lambda f: jnp.vectorize(f)(jnp.ones(2)),
    "pmap": lambda f: xtrace.pmap(f)(jnp.ones((1, 2))),
}


@pytest.mark.parametrize("use", USES)
def test_names_that_are_no_strings_are_left_out(use):
    np.testing.assert_array_equal(np.unique(USES[use](Named())), [2.0])


def test_names_that_are_strings_are_kept():
    f = Named()
    f.__name__ = "double"
    assert xtrace.vmap(f).__name__ == xtrace.jit(f).__name__ == "double"
