"""The rules of slices at fixed and at computed positions, and of pad."""

import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from tests.support.rules import OURS, THEIRS, check_rules
from xtrace import lax

X = finite_values(np.float32, (4, 5), 1)
U = finite_values(np.float32, (2, 3), 2)
SCALAR = np.asarray(np.float32(0.75))
COMPLEX = finite_values(np.complex64, (4, 5), 3)
ONE, TWO = np.asarray(np.int32(1)), np.asarray(np.int32(2))
PADDINGS = {
    "around": ((1, 2, 0), (0, 3, 0)),
    "between": ((0, 0, 2), (1, 0, 1)),
    "negative": ((-1, -2, 0), (-3, 1, 0)),
    "negative and between": ((-1, 2, 1), (2, -3, 2)),
    "all taken away": ((-4, 0, 0), (0, 0, 0)),
}
CASES = {
    "slice": (lambda m, x: m.slice(x, (1, 0), (4, 3)), X),
    "slice with strides": (lambda m, x: m.slice(x, (0, 1), (4, 5), (2, 3)), X),
    "slice of nothing": (lambda m, x: m.slice(x, (1, 2), (4, 2), (1, 2)), X),
    "slice of integers": (lambda m, x: m.slice(x, (1, 0), (4, 3)), X.astype(np.int32)),
    "slice_in_dim": (lambda m, x: m.slice_in_dim(x, 1, None, 2, 1), X),
    "index_in_dim": (lambda m, x: m.index_in_dim(x, -2, 1, keepdims=False), X),
    "pad of complex": (lambda m, x, v: m.pad(x, v, ((1, -1, 1), (0, 0, 0))), COMPLEX, np.asarray(COMPLEX[0, 0])),
    "pad a vector": (lambda m, x: m.pad(x, 0.0, ((1, 1, 0),)), X[0]),
    "pad by a constant": (lambda m, x: m.pad(x, 2.0, ((1, 1, 0), (0, 0, 1))), X),
    "dynamic_slice": (lambda m, x, i, j: m.dynamic_slice(x, (i, j), (2, 3)), X, ONE, TWO),
    "dynamic_slice at a number": (lambda m, x, i: m.dynamic_slice(x, (i, 1), (2, 3)), X, np.asarray(np.int32(9))),
    "dynamic_slice at a vector": (lambda m, x, i: m.dynamic_slice(x, i, (2, 3)), X, np.array([-1, 1], np.int32)),
    "dynamic_slice at numbers": (lambda m, x: m.dynamic_slice(x, (1, 1), (2, 3)), X),
    "dynamic_slice of a scalar": (lambda m, x: m.dynamic_slice(x, (), ()), SCALAR),
    "dynamic_slice_in_dim": (lambda m, x, i: m.dynamic_slice_in_dim(x, i, 2, 1), X, ONE),
    "dynamic_index_in_dim": (lambda m, x, i: m.dynamic_index_in_dim(x, i, 0, False), X, TWO),
    "dynamic_update_slice": (lambda m, x, u, i, j: m.dynamic_update_slice(x, u, (i, j)), X, U, ONE, TWO),
    "dynamic_update_slice at a number": (lambda m, x, u, i: m.dynamic_update_slice(x, u, (2, i)), X, U, TWO),
    "dynamic_update_slice at numbers": (lambda m, x, u: m.dynamic_update_slice(x, u, (2, 9)), X, U),
    "dynamic_update_slice of a scalar": (lambda m, x, u: m.dynamic_update_slice(x, u, ()), SCALAR, SCALAR),
    "dynamic_update_slice in a constant": (
        lambda m, u, i: m.dynamic_update_slice(X.astype(u.dtype), u, (i, i)),
        U,
        ONE,
    ),
    "dynamic_update_slice_in_dim": (lambda m, x, u, i: m.dynamic_update_slice_in_dim(x, u, i, 1), X, X[:, :2], ONE),
    "dynamic_update_index_in_dim": (lambda m, x, u, i: m.dynamic_update_index_in_dim(x, u, i, 0), X, X[0], ONE),
}


WIDENED = "where doubles are, a number has 64 bits, and indices of 32 are refused beside it, by jax too"


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    check_rules(function, *operands, not_smooth=WIDENED if name.endswith("at a number") else "")


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", PADDINGS)
def test_pad(name):
    check_rules(lambda m, x, v: m.pad(x, v, PADDINGS[name]), X, SCALAR, rounding=64)


def test_pad_of_nothing():
    check_rules(lambda m, x, v: m.pad(x, v, ((1, 2, 3), (0, 0, 0))), X[:0], SCALAR, rounding=64)


def test_pad_of_a_constant():
    def call(m, v):
        return m.pad(X.astype(v.dtype), v, ((1, 1, 0), (0, -1, 1)))

    check_rules(call, SCALAR, reverse=False)
    # jax has no reverse mode here: each element that is padding counts.
    weights = finite_values(np.float32, (6, 8), 4)
    got = xtrace.grad(lambda v: (call(lax, v) * weights).sum())(ours(SCALAR))
    padding = np.array([[i in (0, 5) or j % 2 == 1 for j in range(8)] for i in range(6)])
    np.testing.assert_allclose(np.asarray(got), weights[padding].sum(), rtol=1e-5)


@pytest.mark.parametrize("name", ["slice", "pad by a constant", "dynamic_slice_in_dim", "dynamic_update_slice"])
def test_weak_types_of_gradients(name):
    function, *operands = CASES[name]

    def gradients(library, array):
        weak = [array(x, True) for x in operands if x.dtype == np.float32]
        rest = [array(x) for x in operands if x.dtype != np.float32]
        result, pullback = library.api.vjp(lambda *xs: function(library.lax, *xs, *rest), *weak)
        return result, pullback(result)

    assert_same(gradients(OURS, ours), gradients(THEIRS, theirs), 16)
