"""Functions that run as one program: operands by keyword, and what a static argument must be."""

import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace.api.units import unit

X = jnp.arange(3.0)


@pytest.fixture
def scaled():
    calls = []

    @unit
    def scaled(x, factor=2.0, /, offset=0.0, *, times=1):
        calls.append(times)
        return (x * factor + offset) * times

    scaled.calls = calls
    return scaled


def test_operands_by_keyword_are_those_by_position(scaled):
    expected = scaled(X, X, X, times=2).tolist()
    assert scaled(X, X, offset=X, times=2).tolist() == expected == [0, 4, 12]
    assert scaled(X, X, times=2, offset=X).tolist() == expected
    # One program: the function was traced once.
    assert scaled.calls == [2]
    assert xtrace.jit(lambda x: scaled(x, x, offset=x, times=2))(X).tolist() == expected
    assert xtrace.vmap(lambda x: scaled(x, x, offset=x, times=2))(X).tolist() == expected
    assert xtrace.grad(lambda x: scaled(x, x, offset=x, times=2).sum())(X).tolist() == [2, 6, 10]
    assert xtrace.jit(xtrace.grad(lambda x: scaled(X, X, offset=x).sum()))(X).tolist() == [1, 1, 1]


def test_public_functions_take_their_operands_by_keyword():
    assert jnp.iscomplex(x=X).tolist() == [False] * 3
    assert xtrace.jit(lambda x: jnp.isreal(x=x))(X).tolist() == [True] * 3
    with pytest.raises(TypeError, match=r"hypot\(\): .*positional.only"):
        jnp.hypot(x1=X, x2=X)
    with pytest.raises(TypeError, match=r"iscomplex\(\): missing a required argument: 'x'"):
        jnp.iscomplex(y=X)


@pytest.mark.parametrize("value", [[1], {"a": 1}, X])
def test_static_arguments_that_are_not_hashable(scaled, value):
    message = rf"scaled: the argument times decides what is compiled.*got {type(value).__name__}.*a tuple"
    with pytest.raises(ValueError, match=message):
        scaled(X, X, times=value)
    with pytest.raises(ValueError, match=message):
        xtrace.jit(lambda x: scaled(x, x, times=value))(X)
    assert scaled(X, times=3).tolist() == [0, 6, 12]
