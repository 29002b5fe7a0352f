"""NumPy's indexing, updates and rearrangements differentiate and batch as jax's do."""

import jax
import numpy as np
import pytest

import xtrace.lax
import xtrace.numpy
from tests.support.operands import assert_same, finite_values, ours, theirs
from tests.support.rules import OURS, THEIRS, check_rules

NUMPY = {xtrace.lax: xtrace.numpy, jax.lax: jax.numpy}
X = finite_values(np.float32, (4, 5), 1)
ROWS = np.array([2, -1, 0], np.int32)
AGAIN = np.array([1, 1, 3], np.int32)
U = finite_values(np.float32, (3, 5), 2)
COUNT = np.asarray(np.int32(-2))
CASES = {
    "x[i]": (lambda m, x, i: x[i], X, COUNT),
    "x[1, ::-2]": (lambda m, x: x[1, ::-2], X),
    "x[:, None, 1:3]": (lambda m, x: x[:, None, 1:3], X),
    "x[rows]": (lambda m, x, i: x[i], X, ROWS),
    "x[rows, columns]": (lambda m, x, i, j: x[i, j], X, ROWS, AGAIN),
    "x[1:, columns]": (lambda m, x, j: x[1:, j], X, AGAIN),
    "x[mask]": (lambda m, x: x[X[:, 0] > 0], X),
    "x[outside]": (lambda m, x, i: x[i], X, np.array([9, 1], np.int32)),
    "x.at[i].get": (lambda m, x, i: x.at[i].get(mode="clip"), X, np.array([9, 1], np.int32)),
    "x.at[i].set": (lambda m, x, i, u: x.at[i].set(u), X, AGAIN, U),
    "x.at[i].set number": (lambda m, x, i: x.at[i].set(2.0), X, AGAIN),
    "x.at[:, 1].set": (lambda m, x, u: x.at[:, 1].set(u), X, U[0, :4]),
    "x.at[i].add": (lambda m, x, i, u: x.at[i].add(u), X, AGAIN, U),
    "x.at[i, j].add": (lambda m, x, i, j, u: x.at[i, j].add(u), X, ROWS, AGAIN, U[:, 0]),
    "x.at[::2].subtract": (lambda m, x, u: x.at[::2].subtract(u), X, U[:2]),
    "x.at[i].multiply": (lambda m, x, i, u: x.at[i].multiply(u, unique_indices=True), X, ROWS, U),
    "x.at[i].divide": (lambda m, x, i, u: x.at[i].divide(u, unique_indices=True), X, ROWS, U),
    "x.at[i].min": (lambda m, x, i, u: x.at[i].min(u), X, AGAIN, U),
    "x.at[i].max": (lambda m, x, i, u: x.at[i].max(u), X, ROWS, U),
    "take": (lambda m, x, i: m.take(x, i, axis=1), X, AGAIN),
    "sort": (lambda m, x: m.sort(x, axis=0), X),
    "argsort": (lambda m, x: x[m.argsort(x)], X[0]),
    "concatenate": (lambda m, x, u: m.concatenate([x, u]), X, U),
    "stack": (lambda m, x, u: m.stack([x[:3], u], axis=-1), X, U),
    "split": (lambda m, x: m.split(x, [1, 3], axis=1)[1], X),
    "repeat": (lambda m, x: m.repeat(x, 2, axis=0), X),
    "repeat by counts": (lambda m, x: m.repeat(x, np.array([1, 0, 2, 1]), axis=0, total_repeat_length=4), X),
    "roll": (lambda m, x: m.roll(x, 2, axis=1), X),
    "roll by operands": (lambda m, x, i: m.roll(x, [i, 1, -i, i + 1], axis=(0, 1, 0, 1)), X, COUNT),
    "roll by an operand": (lambda m, x, i: m.roll(x, i, axis=0), X, COUNT),
    "pad by an operand": (lambda m, x, v: m.pad(x, 1, constant_values=v), X, X[0, 0]),
    "pad": (lambda m, x: m.pad(x, ((1, 0), (2, 1))), X),
    "tile": (lambda m, x: m.tile(x, (2, 1)), X),
    "flip": (lambda m, x: m.flip(x, 1), X),
}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    outside = "reads the last row, and drops its cotangent, as jax does" if name == "x[outside]" else ""
    check_rules(lambda m, *values: function(NUMPY[m], *values), *operands, rounding=32, not_smooth=outside)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", ["x[rows]", "x.at[i].set", "x.at[i].max", "sort"])
def test_nested_maps_and_second_derivatives(name):
    function, *operands = CASES[name]
    wide = [np.stack([np.stack([x, x[::-1]]), np.stack([np.roll(x, 1, 0), x])], 1) for x in operands]

    def gradients(library, array):
        def loss(x, *rest):
            return (function(library.np, x, *rest) ** 3).sum()

        once = library.api.vmap(library.api.grad(loss))
        return library.api.jvp(
            lambda x: library.api.vmap(once, 1)(x, *map(array, wide[1:])), (array(wide[0]),), (array(wide[0]),)
        )

    assert_same(gradients(OURS, ours), gradients(THEIRS, theirs), 64)
