"""Reverse mode meets a loop of unknown length: ValueError on every way there, and what is known is still computed."""

import re

import jax
import pytest

import xtrace
from tests.support.operands import assert_same


def loop(api, x):
    def grow(s):
        return s * x

    return api.lax.while_loop(lambda s: s < 10.0, grow, x)


def counted(api, x, n):
    return api.lax.fori_loop(0, n, lambda i, s: s * x, x)


def in_scan(api, x):
    return api.lax.scan(lambda c, _: (loop(api, c), None), x, None, length=2)[0]


def with_rule(api):
    """A function whose derivative is a loop over the value, which is known, and the tangent."""

    @api.custom_jvp
    def f(x):
        return api.numpy.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        def body(carry):
            i, x, t = carry
            return i + 1, api.numpy.sin(x), t * api.numpy.cos(x)

        _, y, t = api.lax.while_loop(lambda c: c[0] < 2, body, (0, *primals, *tangents))
        return y * y, t * y

    return f


PATHS = {
    "grad": lambda api: api.grad(lambda x: loop(api, x))(2.0),
    "value_and_grad": lambda api: api.value_and_grad(lambda x: loop(api, x))(2.0),
    "vjp": lambda api: api.vjp(lambda x: loop(api, x), 2.0)[1](1.0),
    "linearize and transpose": lambda api: api.linear_transpose(api.linearize(lambda x: loop(api, x), 2.0)[1], 1.0)(
        1.0
    ),
    "linear_transpose": lambda api: api.linear_transpose(lambda x: loop(api, x), 1.0)(1.0),
    "jit of grad": lambda api: api.jit(api.grad(lambda x: loop(api, x)))(2.0),
    "grad of jit": lambda api: api.grad(api.jit(lambda x: loop(api, x)))(2.0),
    "vmap of grad": lambda api: api.vmap(api.grad(lambda x: loop(api, x)))(api.numpy.arange(2.0, 4.0)),
    "grad of vmap": lambda api: api.grad(lambda x: api.vmap(lambda x: loop(api, x))(x).sum())(
        api.numpy.arange(2.0, 4.0)
    ),
    "jacrev": lambda api: api.jacrev(lambda x: loop(api, x))(2.0),
    "hessian": lambda api: api.hessian(lambda x: loop(api, x))(2.0),
    "traced count": lambda api: api.jit(api.grad(lambda x, n: counted(api, x, n)))(2.0, 3),
    "in scan": lambda api: api.grad(lambda x: in_scan(api, x))(2.0),
    "in cond": lambda api: api.grad(lambda x: api.lax.cond(x > 0, lambda x: loop(api, x), lambda x: x, x))(2.0),
    "in while": lambda api: api.grad(lambda x: api.lax.while_loop(lambda s: s < 10, lambda s: loop(api, s), x))(2.0),
    "in checkpoint": lambda api: api.grad(api.checkpoint(lambda x: loop(api, x)))(2.0),
    "of the tangents of a rule": lambda api: api.grad(with_rule(api))(2.0),
    "of the tangents of a rule in scan": lambda api: api.grad(
        lambda x: api.lax.scan(lambda c, _: (with_rule(api)(c), None), x, None, length=2)[0]
    )(2.0),
}


@pytest.mark.parametrize("path", PATHS)
def test_reverse_mode_is_refused(path):
    words = r"Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop"
    with pytest.raises(ValueError, match=words):
        PATHS[path](jax)
    with pytest.raises(ValueError, match=words) as caught:
        PATHS[path](xtrace)
    name = {"traced count": "fori_loop whose body_fun is <lambda>", "of": "while_loop whose body_fun is body"}.get(
        path if path == "traced count" else path.split()[0], "while_loop whose body_fun is (grow|<lambda>)"
    )
    assert re.search(name + r" at \S*test_while_in_reverse.py:\d+", str(caught.value))
    assert all(f in str(caught.value) for f in ("lax.scan", "static start/stop", "custom_vjp", "jacfwd"))


def test_forward_mode_and_known_loops():
    def results(api):
        x = api.numpy.float32(2)
        return [
            api.jacfwd(lambda x: loop(api, x))(x),
            api.jacfwd(api.jacfwd(lambda x: loop(api, x)))(x),
            api.linearize(with_rule(api), x)[1](x),
            api.jvp(api.jacfwd(with_rule(api)), (x,), (x,)),
            api.grad(lambda x: x * api.lax.stop_gradient(loop(api, x)))(x),
            api.grad(lambda x: counted(api, x, 3))(x),
            # The counter of the loop is known: only what the tangents go through is refused.
            api.grad(lambda x: api.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x))[0] * x)(x),
        ]

    expected = results(jax)
    assert_same(results(xtrace), expected, 16)
    assert_same(xtrace.jit(lambda: results(xtrace))(), expected, 16)
