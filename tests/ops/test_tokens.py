"""Tokens: made, joined, passed into and out of compiled functions and control flow, and refused as numbers."""

from __future__ import annotations

import copy
import re

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operations import check_jaxpr, plain_text
from xtrace import lax
from xtrace._src.core.avals import AbstractToken
from xtrace._src.xla.mlir.modules import verify


def is_token(x) -> bool:
    return xtrace.typeof(x) is AbstractToken()


def joined(lax, x):
    return lax.after_all(lax.create_token(x), lax.create_token()), x


def passed_on(lax, token, x):
    return lax.after_all(token, token), x


def test_jaxprs_read_as_jax_does():
    check_jaxpr(joined, np.float32(1))
    mine = xtrace.make_jaxpr(lambda t, x: passed_on(lax, t, x))(lax.create_token(), 1.0)
    other = jax.make_jaxpr(lambda t, x: passed_on(jax.lax, t, x))(jax.lax.create_token(), 1.0)
    assert plain_text(str(mine)) == plain_text(str(other))


def test_modules_read_as_jax_does():
    mine = xtrace.jit(lambda t, x: passed_on(lax, t, x)).lower(lax.create_token(), 1.0)
    other = jax.jit(lambda t, x: passed_on(jax.lax, t, x)).lower(jax.lax.create_token(), 1.0)
    verify(mine.as_text(debug_info=True))
    body = re.compile(r"%0 = .*\n.*return.*")
    assert body.search(mine.as_text())[0] == body.search(other.as_text())[0]
    verify(xtrace.jit(lambda: lax.after_all()).lower().as_text())


def test_the_type_of_a_token():
    token = lax.create_token()
    aval, other = xtrace.typeof(token), jax.typeof(jax.lax.create_token())
    assert (repr(aval), aval.str_short(True)) == (repr(other), other.str_short(True))
    assert xtrace.eval_shape(lambda x: joined(lax, x), 1.0)[0] is aval
    assert xtrace.eval_shape(lax.after_all, aval) is aval


def test_tokens_go_into_and_out_of_compiled_functions():
    token = lax.after_all(lax.create_token(), lax.create_token(), lax.after_all())
    assert is_token(token)
    jitted = xtrace.jit(lambda t, x: passed_on(lax, t, x))
    # Often enough for the signature to get code of its own.
    for _ in range(10):
        token, y = jitted(token, 2.0)
    assert is_token(token.block_until_ready()) and y == 2.0
    assert is_token(xtrace.jit(lambda x: (lax.after_all(token), x))(1.0)[0])
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        assert is_token(xtrace.jit(lambda t: t, donate_argnums=0)(token))
    assert is_token(xtrace.jit(lambda t: t).lower(token).compile()(token))
    inner = xtrace.jit(passed_on, static_argnums=0)
    assert is_token(xtrace.jit(lambda x: inner(lax, lax.create_token(), x))(1.0)[0])


def test_tokens_go_through_control_flow():
    token = lax.create_token()
    assert is_token(lax.cond(True, lax.after_all, lambda t: t, token))
    assert is_token(lax.fori_loop(0, 3, lambda i, t: lax.after_all(t, t), token))
    carry, ys = lax.scan(lambda t, x: (lax.after_all(t), x), token, np.ones(3, np.float32))
    assert is_token(carry) and ys.shape == (3,)
    assert is_token(xtrace.jit(lambda: lax.optimization_barrier(lax.create_token()))())


def test_transformations_pass_tokens_on():
    y, token = xtrace.grad(lambda x: (x * 2, joined(lax, x)[0]), has_aux=True)(1.0)
    assert y == 2.0 and is_token(token)
    (token, _), _ = xtrace.jvp(lambda x: joined(lax, x), (1.0,), (1.0,))
    assert is_token(token)
    token, ys = xtrace.vmap(lambda x: joined(lax, x), out_axes=(None, 0))(np.ones(3, np.float32))
    assert is_token(token) and ys.shape == (3,)


def test_tokens_show_and_copy():
    token = lax.create_token()
    device = repr(xtrace.devices()[0])
    assert repr(token) == str(token) == f"{token}" == f"<Token on {device}>"
    assert copy.copy(token) is token and is_token(copy.deepcopy(token))
    assert is_token(xtrace.device_put(token, xtrace.devices()[0]))


@pytest.mark.parametrize("operand", [1.0, np.ones(3, np.float32)], ids=["scalar", "array"])
def test_after_all_takes_tokens_only(operand):
    with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
        jax.lax.after_all(operand)
    with pytest.raises(TypeError, match=r"Arguments to after_all must be tokens; argument 1 is .*lax.create_token\(\)"):
        lax.after_all(lax.create_token(), operand)
    with pytest.raises(TypeError, match="argument 0 is 'text'"):
        lax.after_all("text")


def test_after_all_bound_to_something_else_is_refused():
    with pytest.raises(TypeError, match=r"argument 0 is f32\[\]"):
        xtrace.make_jaxpr(lax.after_all.bind)(1.0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (np.asarray, "a token orders operations and has no value"),
        (lax.sin, "sin does not accept dtype token"),
        (xtrace.numpy.sin, "sin does not accept dtype token"),
        (lambda t: lax.convert_element_type(t, "float32"), "Tok is no array of numbers and does not convert"),
        (lambda t: lax.broadcast(t, (3,)), "a token has no axes"),
        (lambda t: xtrace.vmap(lambda x: (x, t))(np.ones(3, np.float32)), "a token has no axes"),
        (xtrace.grad(lambda t: lax.after_all(t)), "argument t of .* is Tok"),
    ],
    ids=["asarray", "sin", "promoting", "convert", "broadcast", "vmap", "grad"],
)
def test_tokens_are_no_numbers(function, message):
    with pytest.raises(TypeError, match=message):
        function(lax.create_token())
