"""Functions of the library as programs: operands by keyword, static arguments, and what is replayed."""

import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace._src.api.jit.inline_jit import inline_jit

X = jnp.arange(3.0)


@pytest.fixture
def scaled():
    calls = []

    @inline_jit
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


@pytest.mark.parametrize(
    "values", [(1, True, 1.0, 1 + 0j), (0.0, -0.0), ((1,), (True,), (1.0,)), ((2, (0.0,)), (2, (-0.0,)))]
)
def test_equal_static_values_of_unlike_types_are_told_apart(values):
    seen = []

    @inline_jit
    def noted(x, *, value):
        seen.append(value)
        return x + 1

    for _ in range(2):
        for value in values:
            xtrace.make_jaxpr(lambda x, value=value: noted(x, value=value))(X)
    assert [repr(x) for x in seen] == [repr(x) for x in values]


def test_operands_by_keyword_are_replayed():
    seen = []

    @inline_jit(static=("axis",), public=True)
    def total(x, y=None, axis=0):
        seen.append(axis)
        return jnp.sum(x + y, axis)

    texts = {str(xtrace.make_jaxpr(lambda x: total(x, y=x, axis=0))(X)) for _ in range(3)}
    assert len(texts) == 1 and seen == [0]
    # An array in the place of a static argument is for the function to report.
    with pytest.raises(xtrace.errors.ConcretizationTypeError, match="axis"):
        xtrace.make_jaxpr(lambda x: total(x, x, x.sum().astype(int)))(X)
