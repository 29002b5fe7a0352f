"""Rules of reductions, cumulative operations and positions of extremes."""

import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours, random_values
from tests.support.rules import check_rules

X = random_values(np.float32, (2, 3, 3), 1, -2, 2)
# Equal elements share the derivative of an extreme.
TIED = np.array([[1, 2, 2, 0], [3, 3, 3, 1]], np.float32)
Y = random_values(np.float32, (2, 5), 2, -2, 2)
Z = random_values(np.complex64, (2, 3), 3, -2, 2)
N = random_values(np.int32, (2, 3, 3), 4, -5, 5)
EXTREMES = {
    "reduce_max": (lambda lax, x: lax.reduce_max(x, (0, 2)), X),
    "reduce_max of ties": (lambda lax, x: lax.reduce_max(x, (1,)), TIED),
    "reduce_max of complex": (lambda lax, x: lax.reduce_max(x, (1,)), Z),
    "reduce_min": (lambda lax, x: lax.reduce_min(x, (1,)), X),
    "reduce_min over nothing": (lambda lax, x: lax.reduce_min(x, ()), X),
}
PRODUCTS = {
    "reduce_prod": (lambda lax, x: lax.reduce_prod(x, (1,)), X),
    "reduce_prod over two axes": (lambda lax, x: lax.reduce_prod(x, (2, 0)), X[:, :, :2]),
    "reduce_prod over all": (lambda lax, x: lax.reduce_prod(x, (0, 1)), Z),
    "reduce_prod with zeros": (lambda lax, x: lax.reduce_prod(x, (1,)), np.array([[0, 2, 3], [0, 0, 4]], np.float32)),
    "reduce_prod over nothing": (lambda lax, x: lax.reduce_prod(x, ()), Y),
    "reduce": (lambda lax, x: lax.reduce(x, x.dtype.type(1), lambda a, b: a * b, (0, 2)), X),
    "reduce by a formula": (lambda lax, x: lax.reduce(x, x.dtype.type(0), _smooth_sum, (1,)), Y / 8),
    "reduce of two": (
        lambda lax, x, y: lax.reduce((x, y), (x.dtype.type(0), x.dtype.type(1)), _sum_and_product, (1,)), Y, Y[:, ::-1],
    ),
}
CUMULATIVE = {
    "cumsum": (lambda lax, x: lax.cumsum(x, 1), X),
    "cumsum from the end": (lambda lax, x: lax.cumsum(x, 0, reverse=True), Z),
    "cumprod": (lambda lax, x: lax.cumprod(x, 1), X),
    "cumprod from the end": (lambda lax, x: lax.cumprod(x, 1, reverse=True), Y[:, :3]),
    "cumprod of four": (lambda lax, x: lax.cumprod(x, 1), Y[:, :4]),
    "cummax": (lambda lax, x: lax.cummax(x, 1), TIED[:, :3]),
    "cummin": (lambda lax, x: lax.cummin(x, 1, reverse=True), Y[:, :3]),
    "cumlogsumexp": (lambda lax, x: lax.cumlogsumexp(x, 1), Y[:, :3]),
}
SHARED = "equal elements share the derivative"
FLAT = {
    "argmax": (lambda lax, x: lax.argmax(x, 1, np.int32), X),
    "argmin": (lambda lax, x: lax.argmin(x, 0, np.int32), X),
    "reduce_and": (lambda lax, x: lax.reduce_and(x, (1,)), N),
    "reduce_or": (lambda lax, x: lax.reduce_or(x, (0, 2)), N),
    "reduce_xor": (lambda lax, x: lax.reduce_xor(x, (2,)), N),
    "reduce_max of integers": (lambda lax, x: lax.reduce_max(x, (2,)), N),
    "cumprod of integers": (lambda lax, x: lax.cumprod(x, 2), N),
}


def _smooth_sum(x, y):
    return x + y + x * y


def _sum_and_product(x, y):
    return x[0] + y[0], x[1] * y[1]


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name):
    function, *operands = EXTREMES[name]
    check_rules(function, *operands, not_smooth=SHARED if name == "reduce_max of ties" else "")


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_reducers(name):
    function, *operands = PRODUCTS[name]
    check_rules(function, *operands, rounding=64)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative(name):
    function, *operands = CUMULATIVE[name]
    check_rules(function, *operands, rounding=64, not_smooth=SHARED if name == "cummax" else "")


@pytest.mark.parametrize("name", FLAT)
def test_flat(name):
    function, *operands = FLAT[name]
    check_rules(function, *operands, derivatives=False)


def test_a_reducer_that_calls_a_jitted_function():
    def product(x):
        return xtrace.lax.reduce(x, np.float32(1), lambda a, b: multiply(a, b), (1,))

    multiply = xtrace.jit(lambda a, b: a * b)
    x = ours(Y)
    expected = xtrace.vjp(lambda x: xtrace.lax.reduce_prod(x, (1,)), x)
    got = xtrace.vjp(product, x)
    assert_same(got[0], expected[0], 16)
    assert_same(got[1](got[0]), expected[1](got[0]), 32)
    mapped = xtrace.vmap(xtrace.grad(lambda row: product(row[None])[0]))(x)
    assert_same(mapped, xtrace.vmap(xtrace.grad(lambda row: xtrace.lax.reduce_prod(row, (0,))))(x), 32)


def test_infinities_have_no_share_in_sums_of_exponentials():
    inf = np.inf
    values = np.array([[-inf, -inf, 1], [inf, 0, inf], [-inf, 2, 1]], np.float32)
    check_rules(
        lambda lax, x: lax.cumlogsumexp(x, 1), values, second=False, batching=False,
        not_smooth="infinities have no differences",
    )


def test_initial_values_are_constants():
    x, start = ours(Y), ours(np.float32(1))
    with pytest.raises(NotImplementedError, match="reduce has no derivative in init_values"):
        xtrace.grad(lambda i: xtrace.lax.reduce(x, i, lambda a, b: a * b, (0, 1)))(start)
    with pytest.raises(NotImplementedError, match="reduce cannot be mapped over init_values"):
        xtrace.vmap(lambda i: xtrace.lax.reduce(x, i, lambda a, b: a * b, (0, 1)))(x[0])
