"""The rules of `cond` and `switch`: derivatives, transposes and batched forms agree with jax's."""

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same
from tests.support.rules import check_rules

X = np.array([0.5, -1.0, 2.0], np.float32)
Y = np.array([-0.25, 1.5, 0.75], np.float32)
P = np.float32(1.5)


def is_positive(lax, x):
    first = x if x.ndim == 0 else lax.index_in_dim(x, 0, keepdims=False)
    return lax.gt(lax.real(first) if first.dtype.kind == "c" else first, 0.0)


def number(lax, x):
    """0, 1 or 2, which differs between the three examples that tests map over."""
    return lax.convert_element_type(lax.index_in_dim(x, 0, keepdims=False) + 1.0, np.int32)


CASES = {
    "of its own operand": (lambda lax, x: lax.cond(is_positive(lax, x), lambda x: lax.sin(x), lambda x: x * x, x), X),
    "of another operand": (
        lambda lax, p, x, y: lax.cond(
            is_positive(lax, p), lambda x, y: lax.sin(x) * y, lambda x, y: lax.exp(y), x, y
        ), P, X, Y,
    ),
    "the other branch": (lambda lax, p, x: lax.cond(is_positive(lax, p), lax.sin, lax.exp, x), -P, X),
    "a number": (lambda lax, p, x: lax.cond(p, lax.sin, lax.exp, x), P, X),
    "known": (lambda lax, x: lax.cond(True, lax.sin, lax.exp, x), X),
    "closures": (lambda lax, x, y: lax.cond(is_positive(lax, x), lambda: x * y, lambda: lax.sin(y)), X, Y),
    "trees": (
        lambda lax, x, y: lax.cond(
            is_positive(lax, x), lambda d: (d["a"], lax.exp(d["b"])), lambda d: (d["b"], d["a"] * d["b"]),
            {"a": x, "b": y},
        ), X, Y,
    ),
    "a branch without derivative": (
        lambda lax, x: lax.cond(is_positive(lax, x), lambda x: lax.sin(x), lambda x: lax.full_like(x, 2), x), X,
    ),
    "no derivative at all": (
        lambda lax, x: lax.cond(is_positive(lax, x), lambda x: lax.full_like(x, 1), lambda x: lax.full_like(x, 2), x),
        X,
    ),
    "results as residuals": (
        lambda lax, x: lax.cond(is_positive(lax, x), lambda x: lax.exp(x), lambda x: lax.tanh(x), x), X,
    ),
    "residuals of several types": (
        lambda lax, x, y: lax.switch(
            number(lax, x),
            [
                lambda x, y: lax.sin(lax.sin(x)) * y,
                lambda x, y: x * lax.tanh(lax.reduce_sum(y * y, (0,))),
                lambda x, y: lax.exp(lax.sin(lax.exp(x))) * lax.cos(lax.reduce_sum(y, (0,))),
            ],
            x, y,
        ), X, Y,
    ),
    "complex": (
        lambda lax, x: lax.cond(is_positive(lax, x), lambda x: lax.sin(x) * x, lambda x: x, x),
        (X + 1j * Y).astype(np.complex64),
    ),
    "nested": (
        lambda lax, x, y: lax.cond(
            is_positive(lax, x),
            lambda x: lax.cond(is_positive(lax, y), lambda: x * y, lambda: lax.sin(y)),
            lambda x: lax.exp(x) * y,
            x,
        ), X, Y,
    ),
    "platform": (lambda lax, x: lax.platform_dependent(x, cpu=lax.sin, tpu=lax.cos, default=lambda x: x), X),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    check_rules(function, *operands, rounding=32)


def test_integers_go_along():
    def function(lax, x, n):
        def take(x, n):
            return lax.sin(x) * lax.convert_element_type(n, x.dtype)

        return lax.cond(is_positive(lax, x), take, lambda x, n: x, x, n)

    check_rules(function, X, np.arange(3, dtype=np.int32))


def one_of(api, x):
    return api.lax.switch(
        api.lax.convert_element_type(x * 3, np.int32),
        [lambda x: api.lax.cond(x > -1, api.lax.sin, api.lax.exp, x), lambda x: x * x * x, lambda x: api.lax.log(x)],
        x,
    )


COMPOSITIONS = {
    "gradient of vmap": lambda api, f: api.grad(lambda x: api.numpy.sum(api.vmap(f)(x))),
    "gradient of two vmaps": lambda api, f: api.grad(lambda x: api.numpy.sum(api.vmap(api.vmap(f), 1)(x * x[:, None]))),
    "vmap of gradients": lambda api, f: api.vmap(api.grad(api.grad(f))),
    "hessian of vmap": lambda api, f: api.hessian(lambda x: api.numpy.sum(api.vmap(f)(x))),
    "jacobians": lambda api, f: api.jacfwd(api.jacrev(api.vmap(f))),
    "jit at every level": lambda api, f: api.jit(api.grad(lambda x: api.numpy.sum(api.jit(api.vmap(api.jit(f)))(x)))),
}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions(name):
    x = np.array([0.5, -1.5, 2.0, -0.25], np.float32)
    got, expected = (COMPOSITIONS[name](api, lambda v, api=api: one_of(api, v))(x) for api in (xtrace, jax))
    assert_same(got, expected, 64)
