"""The family of linear operations: a new one states its emission and its transpose, and the rest follows."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.algebra.vector_space import canonical_axis, linear
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace.test_util import check_grads


def _written(x, *, shift, axis):
    first, last = lax.split(x, (x.shape[axis] - shift, shift), axis)
    return lax.concatenate([last, first], axis)


def _transposed(cotangent, operand, *, shift, axis):
    return rotate(cotangent, operand.aval.shape[axis] - shift, axis)


@linear(("shift", "axis"), name="rotate_in_test", emit=lower_fun(_written), transpose=_transposed, axes=("axis",))
def rotate(x, shift, axis=0):
    """Rotate the elements of `x` along an axis by `shift` places."""
    return rotate.bind(x, shift=shift, axis=canonical_axis(axis, x.ndim))


X = (np.arange(24, dtype=np.float32) / 24).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values_and_derivatives(axis):
    x = jnp.asarray(X)
    for call in (rotate, xtrace.jit(rotate, static_argnums=(1, 2))):
        np.testing.assert_array_equal(call(x, 1, axis), np.roll(X, 1, axis))
    check_grads(lambda x: jnp.sin(rotate(x, 1, axis)), (x,), order=2)
    weights = jnp.asarray(X[::-1])
    gradient = xtrace.grad(lambda x: (rotate(x, 1, axis) * weights).sum())(x)
    np.testing.assert_array_equal(gradient, np.roll(X[::-1], -1, axis))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("axis", [0, 1])
def test_batching_follows_from_the_names_of_the_axes(place, axis):
    mapped = xtrace.vmap(lambda x: rotate(x, 1, axis), place, place)(jnp.asarray(X))
    moved = np.moveaxis(X, place, 0)
    np.testing.assert_array_equal(mapped, np.moveaxis(np.stack([np.roll(x, 1, axis) for x in moved]), 0, place))


def test_keys_are_moved_as_other_elements():
    keys = xtrace.random.split(xtrace.random.key(0), (2, 3))
    rotated = xtrace.jit(xtrace.vmap(lambda k: rotate(k, 1)))(keys)
    np.testing.assert_array_equal(
        xtrace.random.key_data(rotated), np.roll(xtrace.random.key_data(keys), 1, 1)
    )


def test_printed():
    printed = str(xtrace.make_jaxpr(lambda x: rotate(x, 1))(X))
    assert "rotate_in_test[axis=0 shift=1]" in printed
