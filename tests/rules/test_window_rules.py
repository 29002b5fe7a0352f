"""Rules of operations on windows."""

import numpy as np
import pytest

from tests.support.operands import random_values
from tests.support.rules import check_rules

X = random_values(np.float32, (3, 4), 1, -2, 2)
Y = random_values(np.float32, (5,), 2, -2, 2)
N = np.int32(X * 9)
# In a window with equal elements the first is chosen.
TIED = np.array([[1, 2, 2, 0], [2, 2, 3, 3], [0, 3, 3, 3]], np.float32)
PADDING = ((1, 0), (0, 1))


def sums(*arguments, **details):
    return lambda lax, x: lax.reduce_window(x, 0.0, lax.add, *arguments, **details)


def largest(*arguments, **details):
    return lambda lax, x: lax.reduce_window(x, -np.inf, lax.max, *arguments, **details)


def smallest(*arguments, **details):
    return lambda lax, x: lax.reduce_window(x, np.inf, lax.min, *arguments, **details)


CASES = {
    "sum": (sums((2, 2), (2, 1), PADDING), X),
    "sum with dilation": (sums((2, 2), (2, 1), PADDING, base_dilation=(2, 1), window_dilation=(1, 2)), X),
    "sum with negative padding": (sums((2,), None, ((-1, 2),), base_dilation=(2,)), Y),
    "sum of complex": (
        lambda lax, x: lax.reduce_window(x, np.complex64(0), lax.add, (2, 2), (1, 2), "SAME"),
        random_values(np.complex64, (3, 4), 3, -2, 2),
    ),
    "sum over no window": (sums((4, 2)), X),
    "max": (largest((2, 2), (2, 1), PADDING), X),
    "max of ties": (largest((2, 2)), TIED),
    "max of separate windows": (largest((2,), (2,), "SAME"), Y),
    "min": (smallest((2, 3), (1, 2), "SAME_LOWER"), X),
}
# In forward mode only.
FORWARD = {
    "max with dilation": (largest((2, 2), (2, 1), PADDING, base_dilation=(2, 1), window_dilation=(1, 2)), X),
    "product": (lambda lax, x: lax.reduce_window(x, 1.0, lax.mul, (2, 2), (2, 1), PADDING), X),
    "any function": (lambda lax, x: lax.reduce_window(x, 0.0, lambda a, b: a + b + a * b, (3,), (2,)), Y),
    "two operands": (lambda lax, x, y: lax.reduce_window((x, y), (0.0, 1.0), _sum_and_product, (2, 2)), X, TIED),
    "start that is not neutral": (lambda lax, x: lax.reduce_window(x, np.ones((), x.dtype), lax.add, (2,)), Y),
}
FLAT = {
    "sum of integers": (lambda lax, x: lax.reduce_window(x, 0, lax.add, (2, 2), (1, 2), PADDING), N),
    "max of integers": (lambda lax, x: lax.reduce_window(x, np.iinfo(np.int32).min, lax.max, (2, 2)), N),
    "or": (lambda lax, x: lax.reduce_window(x, False, lax.bitwise_or, (2, 2), (1, 1), "SAME"), X > 1),
}


def _sum_and_product(x, y):
    return x[0] + y[0], x[1] * y[1]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_reductions_of_windows(name):
    function, *operands = CASES[name]
    turning = "turns where elements are equal" if name == "max of ties" else ""
    check_rules(function, *operands, rounding=32, not_smooth=turning)


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_only(name):
    function, *operands = FORWARD[name]
    check_rules(function, *operands, rounding=32, reverse=False)


@pytest.mark.parametrize("name", FLAT)
def test_without_derivative(name):
    function, *operands = FLAT[name]
    check_rules(function, *operands, derivatives=False)
