"""The bwd rules of users are called for zero cotangents as in jax: they may return others than zero."""

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy

ONES = np.ones(3, np.float32)


def make(api):
    """Return a function whose bwd rule adds 1 to the cotangent, and one whose rule gives its first operand none."""

    @api.custom_vjp
    def shifted(x):
        return x * 2

    shifted.defvjp(lambda x: (shifted(x), None), lambda _, cotangent: (cotangent + 1,))

    @api.custom_vjp
    def second(x, y):
        return y * 2

    second.defvjp(lambda x, y: (second(x, y), None), lambda _, cotangent: (None, cotangent))
    return shifted, second


CASES = {
    "None for a custom rule's result": lambda np_, api, f, g: lambda x, y: g(f(x), y),
    "through operations": lambda np_, api, f, g: lambda x, y: g(np_.sin(-f(x)).reshape(3), y),
    "of a part": lambda np_, api, f, g: lambda x, y: g(f(x), y) + f(x),
    "twice": lambda np_, api, f, g: lambda x, y: g(f(f(x)), y),
    "in jit as a whole": lambda np_, api, f, g: api.jit(lambda x, y: g(f(x), y)),
    "in jit alone": lambda np_, api, f, g: lambda x, y: g(api.jit(f)(x), y),
    "under checkpoint": lambda np_, api, f, g: api.checkpoint(lambda x, y: g(f(x), y)),
    "in a loop": lambda np_, api, f, g: lambda x, y: api.lax.scan(lambda c, _: (g(f(c), y), None), x, None, 2)[0],
    "in a branch": lambda np_, api, f, g: lambda x, y: api.lax.cond(y[0] > 0, lambda: g(f(x), y), lambda: x),
    "mapped": lambda np_, api, f, g: api.vmap(lambda x, y: g(f(x), y)),
    "unused": lambda np_, api, f, g: lambda x, y: (np_.sin(f(x)), y)[1],
    "stopped": lambda np_, api, f, g: lambda x, y: api.lax.stop_gradient(f(x)) * y,
    "rounded": lambda np_, api, f, g: lambda x, y: f(x).astype(np.int32) * y,
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_that_zero_cotangents_reach_is_called(name):
    def gradients(api, np_):
        function = CASES[name](np_, api, *make(api))
        return api.grad(lambda x, y: function(x, y).sum(), (0, 1))(ONES, ONES)

    found, expected = gradients(xtrace, xtrace.numpy), gradients(jax, jax.numpy)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_symbolic_zeros_reach_a_rule():
    kinds = []
    for api in (xtrace, jax):
        _, second = make(api)

        @api.custom_vjp
        def told(x):
            return x * 2

        def bwd(_, cotangent):
            kinds.append(type(cotangent).__name__)
            return (cotangent,)

        told.defvjp(lambda x: (x.value * 2, None), bwd, symbolic_zeros=True)
        api.jit(api.grad(lambda x, y, f=told, g=second: g(f(x), y).sum()))(ONES, ONES)
    assert kinds == ["SymbolicZero", "SymbolicZero"]
