"""The layouts that operations are asked for: None, and where an array is made the one device."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operations import plain_text
from xtrace import lax

X = np.ones(4, np.float32)
CONV = np.ones((1, 1, 4), np.float32)
CALLS = {
    "broadcast": lambda **k: lax.broadcast(X, (2,), **k),
    "broadcast_in_dim": lambda **k: lax.broadcast_in_dim(X, (2, 4), (1,), **k),
    "broadcasted_iota": lambda **k: lax.broadcasted_iota(np.int32, (3,), 0, **k),
    "conv_general_dilated": lambda **k: lax.conv_general_dilated(CONV, CONV, (1,), "SAME", **k),
    "dot": lambda **k: lax.dot(X, X, **k),
    "dot_general": lambda **k: lax.dot_general(X, X, (((0,), (0,)), ((), ())), **k),
    "empty": lambda **k: lax.empty((3,), np.float32, **k),
    "ragged_dot": lambda **k: lax.ragged_dot(np.ones((4, 2)), np.ones((1, 2, 3)), np.array([4]), **k),
    "reduce": lambda **k: lax.reduce(X, np.float32(0), lax.add, (0,), **k),
    "reduce_sum": lambda **k: lax.reduce_sum(X, (0,), **k),
    "reshape": lambda **k: lax.reshape(X, (2, 2), **k),
    "rng_bit_generator": lambda **k: lax.rng_bit_generator(np.zeros(4, np.uint32), (3,), **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_objects_that_are_no_shardings_are_refused(name):
    CALLS[name](out_sharding=None)
    with pytest.raises(TypeError, match=f"{name}.*out_sharding leaf specifications are expected"):
        CALLS[name](out_sharding=3)
    auto = xtrace.make_mesh((1,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    with pytest.raises(ValueError, match=r"cannot contain axis names that are of type Auto.*x is no explicit axis"):
        CALLS[name](out_sharding=xtrace.NamedSharding(auto, xtrace.P("x")))


@pytest.mark.parametrize("name", CALLS)
def test_the_sharding_of_a_type_without_a_mesh_asks_for_nothing(name):
    asked, plain = CALLS[name](out_sharding=xtrace.typeof(xtrace.numpy.ones(2)).sharding), CALLS[name]()
    for x, y in zip(xtrace.tree.leaves(asked), xtrace.tree.leaves(plain), strict=True):
        assert x.sharding == y.sharding and x.shape == y.shape and x.committed == y.committed


@pytest.mark.parametrize("name", ["full", "full_like"])
def test_an_array_is_made_on_a_device(name):
    sharding = xtrace.device_put(X, xtrace.devices()[0]).sharding
    first = (3,) if name == "full" else X
    made = getattr(lax, name)(first, 1.0, sharding=sharding)
    assert made.sharding == sharding and made.committed
    jitted = xtrace.jit(lambda: getattr(lax, name)(first, 1.0, sharding=sharding))
    np.testing.assert_array_equal(np.asarray(jitted()), np.asarray(made))
    with pytest.raises(NotImplementedError, match=f"{name}: sharding=3 is not supported"):
        getattr(lax, name)(first, 1.0, sharding=3)


PRODUCTS = {
    "gradient": lambda p, a, c: p.grad(lambda a, c: p.lax.reduce_sum(p.lax.dot(a, c), (0, 1)), (0, 1))(a, c),
    "one mapped": lambda p, a, c: p.vmap(lambda c: p.lax.dot(a, c), 1)(c),
    "both mapped": lambda p, a, c: p.vmap(lambda a: p.lax.dot(a, a))(a),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_made_by_rules_print_as_those_of_users(name):
    operands = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    mine = str(xtrace.make_jaxpr(lambda *xs: PRODUCTS[name](xtrace, *xs))(*operands))
    other = str(jax.make_jaxpr(lambda *xs: PRODUCTS[name](jax, *xs))(*operands))
    assert "dot_general[dimension_numbers=((" in plain_text(mine)
    assert plain_text(mine) == plain_text(other)
