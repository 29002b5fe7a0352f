"""Specification, section 5: transformations, which compose in any order."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import xtrace as jax
import xtrace.numpy as jnp
from xtrace import grad, jit, lax, vmap


def sum_logistic(x):
    return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))


def first_finite_differences(f, x, eps=1e-3):
    return jnp.array([(f(x + eps * v) - f(x - eps * v)) / (2 * eps) for v in jnp.eye(len(x))])


def test_5_1_gradient() -> None:
    x = jnp.arange(3.0)
    assert str(grad(sum_logistic)(x)) == "[0.25       0.19661197 0.10499357]"
    np.testing.assert_allclose(grad(sum_logistic)(x), first_finite_differences(sum_logistic, x), atol=2e-4)


_THIRD_DERIVATIVE = """
import xtrace.numpy as jnp
from xtrace import grad, jit
def sum_logistic(x):
    return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))
found = grad(jit(grad(jit(grad(sum_logistic)))))(1.0)
print(found, found.dtype)
"""


def test_5_2_gradients_of_gradients() -> None:
    # To the last digit, so with the code that XLA generates for users (tests/conftest.py asks for cheaper code).
    done = subprocess.run(
        [sys.executable, "-c", _THIRD_DERIVATIVE], env={**os.environ, "XLA_FLAGS": ""}, capture_output=True, text=True,
        check=True,
    )
    assert done.stdout == "-0.0353256 float32\n"


def test_5_3_python_control_flow_outside_jit() -> None:
    def branches(x):
        if x > 3:
            return 3.0 * x**2
        return -4.0 * x

    def loops(x):
        while x < 10:
            x = x * x
        return x

    def recursive(x, depth=3):
        return x if depth == 0 else x * recursive(jnp.sin(x), depth - 1)

    assert float(grad(branches)(2.0)) == -4 and float(grad(branches)(4.0)) == 24
    assert float(grad(loops)(2.0)) == 32
    eps = 1e-3
    slope = (recursive(0.7 + eps) - recursive(0.7 - eps)) / (2 * eps)
    np.testing.assert_allclose(grad(recursive)(0.7), slope, rtol=1e-3)

    scale = 3.0

    def outer(x):
        return grad(lambda y: scale * x * y**3)(2.0)

    assert float(grad(outer)(5.0)) == 36


def test_5_3_derivatives_of_each_other_and_through_control_flow() -> None:
    def f(x):
        return lax.cond(x > 0, lambda y: lax.fori_loop(0, 3, lambda i, s: s * y, y), lambda y: y, x)

    # f(x) = x^4 for positive x, so all of these are 12 x^2.
    seconds = [
        grad(grad(f)), jax.jacfwd(grad(f)), grad(jax.jacfwd(f)), jax.jacrev(jax.jacfwd(f)), jax.hessian(f),
        lambda x: jax.jvp(grad(f), (x,), (1.0,))[1], lambda x: jax.vjp(grad(f), x)[1](1.0)[0],
        lambda x: grad(lambda y: jax.jvp(f, (y,), (1.0,))[1])(x), lambda x: jax.value_and_grad(grad(f))(x)[1],
        jit(grad(jit(grad(f)))), lambda x: vmap(grad(grad(f)))(jnp.stack([x, x]))[1],
    ]
    assert [float(second(0.5)) for second in seconds] == [3.0] * len(seconds)
    assert float(grad(grad(f))(-0.5)) == 0


def test_5_3_the_derivatives() -> None:
    x = jnp.array([1.0, 2.0])

    def f(x):
        return jnp.sum(x**3)

    value, gradient = jax.value_and_grad(f)(x)
    assert float(value) == 9 and gradient.tolist() == [3, 12]
    assert jax.hessian(f)(x).tolist() == [[6, 0], [0, 12]]
    assert jax.jacfwd(lambda x: x**2)(x).tolist() == jax.jacrev(lambda x: x**2)(x).tolist() == [[2, 0], [0, 4]]
    assert [float(v) for v in jax.jvp(f, (x,), (jnp.array([1.0, 0.0]),))] == [9, 3]
    value, pullback = jax.vjp(f, x)
    assert pullback(2.0)[0].tolist() == [6, 24]


def test_5_4_vmap() -> None:
    random = np.random.default_rng(0)
    matrix = jnp.asarray(random.normal(size=(150, 100)).astype(np.float32))
    batched = jnp.asarray(random.normal(size=(10, 100)).astype(np.float32))

    def apply_matrix(v):
        return jnp.dot(matrix, v)

    one_by_one = jnp.stack([apply_matrix(v) for v in batched])
    # Sums of 100 products of numbers of size 1.
    np.testing.assert_allclose(vmap(apply_matrix)(batched), one_by_one, atol=100 * 1.2e-7 * 4)
    np.testing.assert_allclose(jit(vmap(apply_matrix))(batched), one_by_one, atol=100 * 1.2e-7 * 4)
    assert apply_matrix(100).shape == (150, 100)
    with pytest.raises(ValueError, match="rank should be at least 1"):
        vmap(apply_matrix)(100)


def test_5_4_vmap_runs_the_function_once_for_all() -> None:
    calls = []

    def apply_matrix(v):
        calls.append(v.shape)
        return jnp.dot(jnp.ones((150, 100)), v)

    jaxprs = [jax.make_jaxpr(vmap(apply_matrix))(jnp.ones((n, 100))) for n in (10, 1000)]
    assert calls == [(100,), (100,)]
    # As many operations for a thousand vectors as for ten.
    assert [len(j.eqns) for j in jaxprs] == [len(jaxprs[0].eqns)] * 2
    assert [j.out_avals[0].shape for j in jaxprs] == [(10, 150), (1000, 150)]


def test_5_5_control_flow_on_traced_values() -> None:
    x = jnp.array(3.0)
    assert float(jit(lambda x: lax.cond(x > 2, lambda y: y * 2, lambda y: y - 1, x))(x)) == 6
    assert int(jit(lambda n: lax.while_loop(lambda s: s < n, lambda s: s * 2 + 1, 0))(10)) == 15
    assert float(jit(lambda x: lax.fori_loop(0, 4, lambda i, s: s + i * x, 0.0))(x)) == 18
    carry, ys = jit(lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x))(jnp.arange(4.0))
    assert float(carry) == 6 and ys.tolist() == [0, 0, 2, 9]
    assert float(lax.switch(2, [lambda x: x, lambda x: -x, lambda x: x * x], x)) == 9
