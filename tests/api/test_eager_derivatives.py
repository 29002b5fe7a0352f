"""Eager derivatives of library functions: each function is one program with its derivative, as it is in jax."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace

_UNARY = ("tanh sin cos exp exp2 log log1p log2 log10 expm1 sqrt cbrt arctan arcsinh arccosh sinh cosh arctanh arcsin "
          "arccos square reciprocal sinc tan")
_BINARY = "logaddexp power hypot arctan2 divide float_power multiply subtract maximum"
_ACTIVATIONS = ("celu elu hard_silu leaky_relu log_sigmoid log_softmax mish relu selu silu soft_sign softmax softplus "
                "squareplus")
_INSIDE = ("arctanh", "arcsin", "arccos")


def _numbers(seed, size=500):
    return np.random.default_rng(seed).uniform(0.1, 0.9, size).astype(np.float32)


def _derivatives(package, function, operands, tangents):
    f = function(package)
    out, pullback = package.vjp(f, *operands)
    moved = package.jvp(f, operands, tangents)
    pushed = package.linearize(f, *operands)[1](*tangents)
    return [out, *pullback(package.numpy.asarray(tangents[0])), *moved, pushed]


def _assert_equal_bits(function, *operands):
    tangents = tuple(_numbers(7 + i, x.shape) for i, x in enumerate(operands))
    found, wanted = (_derivatives(p, function, operands, tangents) for p in (xtrace, jax))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", _UNARY.split())
def test_derivatives_of_functions_of_one_operand_are_those_of_jax_to_the_last_bit(name):
    scale = 1 if name in _INSIDE else 3
    offset = 1 if name == "arccosh" else 0
    _assert_equal_bits(lambda p: getattr(p.numpy, name), _numbers(0) * scale + offset)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", _BINARY.split())
def test_derivatives_of_functions_of_two_operands_are_those_of_jax_to_the_last_bit(name):
    _assert_equal_bits(lambda p: getattr(p.numpy, name), _numbers(0) * 3, _numbers(1) * 2)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", _ACTIVATIONS.split())
def test_derivatives_of_activations_are_those_of_jax_to_the_last_bit(name):
    _assert_equal_bits(lambda p: getattr(p.nn, name), _numbers(0) * 4 - 2)


def _mlp(package):
    def loss(x, w, b, v, c):
        return package.numpy.sum((package.numpy.tanh(x @ w + b) @ v + c) ** 2)

    return loss


@pytest.mark.parametrize("transform", ["jacfwd", "jacrev", "grad"])
def test_derivatives_of_a_network_are_those_of_jax_to_the_last_bit(transform):
    operands = [_numbers(i, s) - 0.5 for i, s in enumerate([(8, 4), (4, 16), (16,), (16, 3), (3,)])]
    for jitted in (False, True):
        found, wanted = (
            (p.jit if jitted else lambda f: f)(getattr(p, transform)(_mlp(p), argnums=(1, 2, 3)))(*operands)
            for p in (xtrace, jax)
        )
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
