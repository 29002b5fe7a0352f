"""Softmax and its relatives, standardize and one_hot against jax.nn."""

import itertools

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import HALF, assert_same, finite_values, ours, theirs
from xtrace import nn

MASK = np.array([True, False, True, True])
DTYPES = [np.dtype(np.float32), HALF[0], np.dtype(np.int32), np.dtype(np.complex64)]
WEIGHTS = np.array([1.0, 0.0, -2.0, 3.0], np.float32)


def both(case, *operands, rounding=64):
    """Assert that ``case(library, *operands)``, a list or dict of results, agrees under jit."""
    expected = jax.jit(lambda *a: case(jax.nn, *a))(*map(theirs, operands))
    assert_same(xtrace.jit(lambda *a: case(nn, *a))(*map(ours, operands)), expected, rounding)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax(dtype):
    def case(library, x):
        return {
            f"{name} {axis} {mask}": getattr(library, name)(x, axis=axis, where=mask)
            for name in ("softmax", "log_softmax")
            for axis in (-1, 0, (0, 1), None)
            for mask in (None, MASK, np.zeros(4, bool))
            if mask is None or dtype != np.complex64
        }

    # jax warns of its own conversion of -inf to an integer.
    both(case, finite_values(dtype, (3, 4), 1))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logsumexp(dtype):
    def case(library, x):
        found = {}
        for axis, keepdims, sign, b, mask in itertools.product(
            (-1, None), (False, True), (False, True), (None, WEIGHTS, 2), (None, MASK)
        ):
            found[f"{axis} {keepdims} {sign} {b} {mask}"] = library.logsumexp(x, axis, b, keepdims, sign, mask)
        for axis, keepdims, mask in itertools.product((0, None), (False, True), (None, MASK)):
            found[f"mean {axis} {keepdims} {mask}"] = library.logmeanexp(x, axis, mask, keepdims)
        return found

    if dtype == np.complex64:
        # In jax, complex elements below a mask are left out of the maximum but overflow all the same.
        both(lambda library, x: [library.logsumexp(x, 1), library.logsumexp(x, 0, WEIGHTS, return_sign=True),
                                 library.logmeanexp(x)], finite_values(dtype, (3, 4), 1))
    else:
        both(case, finite_values(dtype, (3, 4), 1))


def test_far_out():
    """No overflow, nor NaN, where the result is representable; derivatives too."""
    x = np.array([[1e30, 0, -1e30, 1], [-np.inf] * 4, [np.inf, 0, 1, 2], [1000, 1000, 999, -np.inf]], np.float32)
    both(lambda library, x: [library.logsumexp(x, 1), library.logmeanexp(x, 1), library.softmax(x),
                             library.log_softmax(x)], x)
    slope = xtrace.grad(nn.logsumexp)(jnp.array([1e30, 0.0, -np.inf]))
    assert np.asarray(slope).tolist() == [1.0, 0.0, 0.0]
    assert np.isfinite(np.asarray(xtrace.jacrev(nn.log_softmax)(jnp.array([500.0, -500.0, 0.0])))).all()


def test_derivatives():
    x = finite_values(np.float32, (3, 4), 3)

    def case(library, x):
        api, numpy = (jax, jax.numpy) if library is jax.nn else (xtrace, jnp)
        functions = [
            library.softmax, library.log_softmax, lambda x: library.softmax(x, 0, MASK),
            lambda x: library.logsumexp(x, 1, WEIGHTS, return_sign=True)[0],
            lambda x: library.logsumexp(x, 1, where=MASK), lambda x: library.logmeanexp(x, 0),
            library.standardize, lambda x: library.standardize(x, 0, where=MASK, algorithm="stable"),
        ]

        def derivatives(function):
            first = api.grad(lambda x: numpy.sum(numpy.sin(function(x))))
            return first(x), api.grad(lambda x: numpy.sum(first(x) ** 2))(x), api.vmap(function)(x[None])

        return [derivatives(f) for f in functions]

    both(case, x, rounding=4096)


def test_eager():
    x = finite_values(np.float32, (3, 4), 5)
    for case in (
        lambda library, x: library.softmax(x), lambda library, x: library.log_softmax(x, (0, 1)),
        lambda library, x: library.logsumexp(x, b=WEIGHTS, return_sign=True),
        lambda library, x: library.standardize(x, epsilon=0.1), lambda library, x: library.logmeanexp(x, 0, MASK),
    ):
        assert_same(case(nn, ours(x)), case(jax.nn, theirs(x)), 64)


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), HALF[1], np.dtype(np.int32)], ids=str)
def test_standardize(dtype):
    options = [{}, {"mean": 1}, {"variance": 2.0}, {"epsilon": 1e-3}]
    if dtype.kind == "f":
        # Of integers, jax's result would be weakly typed in this case alone.
        options.append({"mean": 0.5, "variance": 1.5, "epsilon": 0.1})

    def case(library, x):
        return {
            f"{axis} {mask} {algorithm} {i}": library.standardize(x, axis, where=mask, algorithm=algorithm, **keywords)
            for axis in (-1, None)
            for mask in (None, MASK)
            for algorithm in ("fast", "stable")
            for i, keywords in enumerate(options)
        }

    # The fast variance is a difference of numbers a few times larger.
    both(case, finite_values(dtype, (3, 4), 1), rounding=512)


def test_one_hot():
    x = np.array([[0, 2, -1], [4, 1, 2]])

    def case(library, x):
        return {
            f"{axis} {count} {dtype}": library.one_hot(x, count, axis=axis, dtype=dtype)
            for axis in (-1, 0, 1, -3)
            for count in (0, 3, 300)
            for dtype in (None, bool, np.int8, "float16")
        }

    for dtype in (np.int32, np.uint8, np.int8):
        both(case, x.astype(dtype))
    for positions in (2, [0, 2, 1], ((1, 0), (0, 2)), range(3)):
        assert_same(nn.one_hot(positions, 4), jax.nn.one_hot(positions, 4))

    def mapped(library, x):
        api = jax if library is jax.nn else xtrace
        return api.vmap(lambda x: library.one_hot(x, 3, axis="i"), axis_name="i")(x)

    both(mapped, np.array([2, 0, 1], np.int32))


def test_errors():
    x = jnp.ones((2, 3))
    for name in ("softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"):
        function = getattr(nn, name)
        with pytest.raises(ValueError, match=rf"{name}.*axis 5 is out of bounds"):
            function(x, axis=5)
        with pytest.raises(ValueError, match=f"{name}: where must be None or a boolean array; got float32"):
            function(x, where=x)
        with pytest.raises(TypeError, match=name):
            function([1.0])
    with pytest.raises(TypeError, match="softmax does not accept dtype bool"):
        nn.softmax(x > 0)
    with pytest.raises(ValueError, match=r"Unknown algorithm 'welford'. Expected 'fast' or 'stable'"):
        nn.standardize(x, algorithm="welford")
    with pytest.raises(TypeError, match=r"num_classes must be an integer, got 2.5"):
        nn.one_hot(jnp.arange(2), 2.5)
    with pytest.raises(ValueError, match=r"one_hot.*out of bounds"):
        nn.one_hot(jnp.arange(2), 2, axis=2)
    with pytest.warns(DeprecationWarning, match="one_hot: x should be of an integer dtype, got float32"):
        nn.one_hot(x, 2)
    with pytest.raises(ValueError, match="num_classes must be the size 2 of the mapped axis 'i', got 3"):
        xtrace.vmap(lambda x: nn.one_hot(x, 3, axis="i"), axis_name="i")(jnp.arange(2))
