"""ravel_pytree against jax.flatten_util's."""

import functools

import jax
import jax.flatten_util
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace.flatten_util import ravel_pytree


def trees(numpy):
    one = numpy.ones
    return [
        {"a": one((2, 2)), "b": 1}, [numpy.arange(3), one(2, "float16")], [], 3.0, [1, 2], [True, one(2, bool)],
        [one(2, "float16"), one(2, "bfloat16")], [1.0, one(2, "complex64")], [numpy.zeros((0, 2))],
        (np.ones(2, np.int8), 3), {"x": (one(()), None, [one((1, 3))])},
    ]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("index", range(len(trees(np))))
def test_there_and_back(index):
    got, back = ravel_pytree(trees(jnp)[index])
    expected, their_back = jax.flatten_util.ravel_pytree(trees(jax.numpy)[index])
    assert_same(got, expected)
    again, their_again = (
        back(got + 1 if got.dtype != bool else got),
        their_back(expected + 1 if expected.dtype != bool else expected),
    )
    assert xtrace.tree.structure(again) == xtrace.tree.structure(trees(jnp)[index])
    assert_same(xtrace.tree.leaves(again), jax.tree.leaves(their_again))


def test_under_transformations():
    tree = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(2)}
    vector, back = ravel_pytree(tree)
    slope = xtrace.jit(xtrace.grad(lambda v: jnp.sum(back(v)["w"] ** 2) + jnp.sum(back(v)["b"])))(vector)
    assert np.asarray(slope).tolist() == [1, 1, 0, 2, 4, 6, 8, 10]
    slopes = xtrace.grad(lambda t: jnp.sum(ravel_pytree(t)[0] ** 2))(tree)
    assert np.array_equal(slopes["w"], 2 * np.asarray(tree["w"])) and np.array_equal(slopes["b"], [2, 2])


def test_functions_of_equal_trees_are_equal():
    traces = []

    @functools.partial(xtrace.jit, static_argnums=1)
    def f(vector, back):
        traces.append(back)
        return back(vector)

    same = [{"a": jnp.ones((2, 2)) * i, "b": (jnp.zeros(3), i)} for i in range(3)]
    found = [ravel_pytree(t) for t in same]
    for vector, back in found:
        f(vector, back)
    assert len(traces) == 1 and len({back for _, back in found}) == 1
    others = [
        {"a": jnp.ones((4, 1)), "b": (jnp.zeros(3), 0)}, {"a": jnp.ones((2, 2)), "b": [jnp.zeros(3), 0]},
        {"a": jnp.ones((2, 2)), "b": (jnp.zeros(3), 0.0)}, {"c": jnp.ones((2, 2)), "b": (jnp.zeros(3), 0)}, [], {},
    ]
    assert len({ravel_pytree(t)[1] for t in [*same, *others]}) == 7
    # With jax it is the same.
    theirs = [jax.flatten_util.ravel_pytree(jax.tree.map(np.asarray, t))[1] for t in [*same, *others]]
    assert len(set(theirs)) == 7 and theirs[0] == theirs[1]


def test_errors():
    _, back = ravel_pytree([jnp.arange(3), jnp.ones(2, "float16")])
    with pytest.raises(TypeError, match="array of dtype float32, but expected dtype float16"):
        back(jnp.ones(5))
    with pytest.raises(ValueError, match=r"shape \(4,\).*5 elements"):
        back(jnp.ones(4, "float16"))
    with pytest.raises(TypeError, match="ravel_pytree"):
        ravel_pytree(["a"])
