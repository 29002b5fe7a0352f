"""Composite operations and sinks."""

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace import lax


def test_a_composite_is_a_named_call():
    double = lax.composite(lambda x, *, factor: {"a": x * factor}, "my.scale", version=3)

    def f(x):
        return double(x, factor=2.0)["a"] + 1

    x = np.arange(3, dtype=np.float32)
    assert_same(xtrace.jit(f)(x), jax.numpy.asarray(2 * x + 1))
    assert_same(f(x), jax.numpy.asarray(2 * x + 1))
    text = xtrace.lower(f, x).as_text()
    assert (
        'stablehlo.composite "my.scale" %arg0 {composite_attributes = {"factor" = 2.000000e+00 : f64}, '
        "decomposition = @my.scale, version = 3 : i32} : (tensor<3xf32>) -> tensor<3xf32>"
    ) in text
    printed = str(xtrace.make_jaxpr(f)(x))
    assert "composite[" in printed and "name=my.scale" in printed and "version=3" in printed
    assert_same(xtrace.vmap(f)(np.stack([x, x + 1])), jax.numpy.stack([2 * x + 1, 2 * x + 3]))


def test_composites_close_over_values_and_refuse_derivatives():
    shift = jnp.asarray([1.0, 2.0])
    moved = lax.composite(lambda x: x + shift, "my.shift")
    assert xtrace.jit(moved)(shift).tolist() == [2, 4]
    with pytest.raises(ValueError, match="a composite has no derivative"):
        xtrace.grad(lambda x: moved(x).sum())(shift)
    with pytest.raises(TypeError, match="attribute mode is"):
        lax.composite(lambda x, mode: x, "my.op")(shift, mode=object())
    with pytest.raises(TypeError, match="name must be a string"):
        lax.composite(lambda x: x, 3)
    with pytest.raises(TypeError, match="decomposition must be a function"):
        lax.composite("f", "my.op")
    for name in ("op", "", "my op.f", "1.op", "my.", "ü.op"):
        with pytest.raises(ValueError, match="composite: name must be a namespace and a name"):
            lax.composite(lambda x: x, name)
    for name in ("my.op.f", "m1.2$"):
        assert xtrace.jit(lax.composite(lambda x: x + 1, name))(1.0) == 2


def test_a_sink_keeps_what_is_computed():
    def f(x):
        lax.dce_sink({"unused": jnp.sin(x)})
        return x

    assert "stablehlo.sine" in xtrace.lower(f, 1.0).as_text()
    assert float(xtrace.jit(f)(2.0)) == 2 and float(f(2.0)) == 2
    assert float(xtrace.jit(xtrace.grad(f))(2.0)) == 1
    assert xtrace.vmap(f)(np.ones(3, np.float32)).tolist() == [1, 1, 1]
    assert "dce_sink" in str(xtrace.make_jaxpr(f)(1.0))
