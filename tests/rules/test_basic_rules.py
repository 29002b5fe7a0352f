"""The rules that the others are made of: sums, products, spreading and permuting axes."""

import numpy as np
import pytest

from tests.support.rules import check_rules

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3) / 4
Y = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
Z = (X + 1j * Y).astype(np.complex64)
CASES = {
    "mul of complex": (lambda lax, x, y: lax.mul(x, y), Z, Z[::-1]),
    "neg": (lambda lax, x: lax.neg(x), X),
    "mul of a row": (lambda lax, x, y: lax.mul(x, y), X, Y[:1]),
    "reduce_sum": (lambda lax, x: lax.reduce_sum(x, (0,)), X),
    "broadcast_in_dim": (lambda lax, x: lax.broadcast_in_dim(x, (2, 3, 2), (0, 1)), X),
    "broadcast of size 1": (lambda lax, x: lax.broadcast_in_dim(x, (4, 3, 2), (1, 2)), X[:, :2][:1].repeat(3, 0)),
    "reshape": (lambda lax, x: lax.reshape(x, (3, 2)), X),
    "reshape of permuted": (lambda lax, x: lax.reshape(x, (6,), (1, 0)), X),
    "transpose": (lambda lax, x: lax.transpose(x, (1, 0)), X),
    "convert": (lambda lax, x: lax.convert_element_type(x, "bfloat16"), X),
    "select_n": (lambda lax, x, y: lax.select_n(Y > 0, x, y), X, Y),
    "exp": (lambda lax, x: lax.exp(x), X),
    "tanh": (lambda lax, x: lax.tanh(x), X),
    "integer_pow": (lambda lax, x: lax.integer_pow(x, 3), X),
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    check_rules(function, *operands)


DOTS = {
    "matrices": (((1,), (1,)), ((), ()), (2, 3), (4, 3)),
    "batched": (((2,), (1,)), ((0,), (0,)), (2, 3, 4), (2, 4, 3)),
    "two axes": (((0, 2), (2, 0)), ((), ()), (2, 3, 4), (4, 5, 2)),
    "all at once": (((3, 1), (0, 2)), ((2,), (3,)), (2, 3, 4, 2), (2, 5, 3, 4)),
    "vectors": (((0,), (0,)), ((), ()), (3,), (3,)),
}


@pytest.mark.parametrize("name", DOTS)
def test_dot_general(name):
    contracting, batch, left, right = DOTS[name]
    random = np.random.default_rng(0)
    operands = [random.uniform(-1, 1, s).astype(np.float32) for s in (left, right)]
    check_rules(lambda lax, x, y: lax.dot_general(x, y, (contracting, batch)), *operands, rounding=64)
