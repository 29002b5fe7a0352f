"""Specification, section 4: the operations behind the functions."""

import re

import pytest

import xtrace as jax
import xtrace.numpy as jnp
from xtrace import lax

SQUARE = jnp.arange(9.0).reshape(3, 3)
# Functions of numpy of each kind, some of them made of many operations.
FUNCTIONS = {
    "sinc": lambda x: jnp.sinc(x), "std": lambda x: jnp.std(x, axis=0), "cumsum": lambda x: jnp.cumsum(x),
    "sort": lambda x: jnp.sort(x), "einsum": lambda x: jnp.einsum("ij,jk", x, x),
    "where": lambda x: jnp.where(x > 1, x, 0),
    "pad": lambda x: jnp.pad(x, 1), "take": lambda x: jnp.take(x, jnp.array([0, 2])), "median": lambda x: jnp.median(x),
    "convolve": lambda x: jnp.convolve(x[0], x[1]), "histogram": lambda x: jnp.histogram(x, 3)[0],
    "unique": lambda x: jnp.unique(x, size=4), "solve": lambda x: jnp.linalg.solve(x, x[0]),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x)), "at": lambda x: x.at[0].add(1), "floor_divide": lambda x: x // 2,
}


def primitives_of(jaxpr):
    """The operations of a jaxpr and of those inside of it."""
    for equation in jaxpr.eqns:
        yield equation.primitive
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from primitives_of(inner)


def test_4_2_lax_is_the_strict_layer():
    assert repr(jnp.add(1, 1.0)) == "Array(2., dtype=float32, weak_type=True)"
    with pytest.raises(TypeError, match="add"):
        lax.add(1, 1.0)
    with pytest.raises(TypeError, match=r"float32.*int32"):
        lax.add(jnp.float32(1), jnp.int32(1))
    assert float(lax.add(jnp.float32(1), 1.0)) == 2
    assert jnp.add(jnp.ones((2, 1)), jnp.ones(3)).shape == (2, 3)
    with pytest.raises(TypeError, match="number of dimensions"):
        lax.add(jnp.ones((2, 1)), jnp.ones(3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_4_2_numpy_is_expressed_in_lax_and_that_in_stablehlo(name):
    public = {getattr(getattr(module, n), "name", None) for module in (lax, lax.linalg) for n in dir(module)}
    for primitive in primitives_of(jax.make_jaxpr(FUNCTIONS[name])(SQUARE).jaxpr):
        assert primitive.name in public | CALLS, primitive
    text = jax.jit(FUNCTIONS[name]).lower(SQUARE).as_text()
    dialects = set(re.findall(r"^\s*(?:%[\w:, %]+ = )?\"?(\w+)\.\w+", text, re.M))
    assert dialects <= {"stablehlo", "chlo", "func"} and "stablehlo" in dialects, dialects


# Operations that hold jaxprs, which functions such as lax.scan make.
CALLS = {"jit", "scan", "while", "cond", "custom_jvp_call", "custom_vjp_call", "custom_lin", "linear_solve"}


def test_4_3_convolve_and_conv_general_dilated():
    x, y = jnp.array([1, 2, 1]), jnp.ones(10)
    expected = [1, 3, 4, 4, 4, 4, 4, 4, 4, 4, 3, 1]
    assert jnp.convolve(x, y).tolist() == expected
    found = lax.conv_general_dilated(
        x.reshape(1, 1, 3).astype(float), y.reshape(1, 1, 10), window_strides=(1,), padding=[(len(y) - 1, len(y) - 1)]
    )
    assert found[0, 0].tolist() == expected
