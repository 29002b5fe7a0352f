"""`minmax` and `top_k`, which newer jax added, compared with jax's, or with definitions where jax lacks them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.newer import newer
from tests.support.operands import assert_same, ours, random_values, theirs

X = np.array([[1.5, -2.0, 3.0, 3.0], [0.0, 7.0, -1.0, 7.0]], np.float32)
WITH_NAN = np.where(X == 3, np.nan, X)


def both_extremes(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    pair = initial if isinstance(initial, tuple) else (initial, initial)
    return tuple(
        function(a, axis, keepdims=keepdims, initial=start, where=where)
        for function, start in zip((jax.numpy.min, jax.numpy.max), pair, strict=True)
    )


def first_of_sorted(a, k, /, *, axis=-1, mode="largest", sorted=True):
    a = np.asarray(a)
    ordered = a.astype(np.float64)
    # NaN is above all numbers: first of the largest, last of the smallest.
    if mode == "largest":
        ordered = -np.where(np.isnan(ordered), np.inf, ordered)
    places = np.argsort(ordered, axis, kind="stable").take(range(k), axis).astype(np.int32)
    return np.take_along_axis(a, places, axis), places


def compare(name, definition, *arguments, **options):
    expected = newer(jax.numpy, name, definition)
    results = getattr(jnp, name)(*map(ours, arguments[:1]), *arguments[1:], **options)
    assert type(results) is tuple
    assert_same(results, tuple(expected(*map(theirs, arguments[:1]), *arguments[1:], **options)))


MINMAX = {
    "all": {}, "an axis": {"axis": 0}, "axes": {"axis": (0, 1), "keepdims": True}, "negative axis": {"axis": -1},
    "initial": {"initial": 2.0}, "pair": {"axis": 1, "initial": (-1.0, 5.0)}, "where": {"where": X > 0, "initial": 0.0},
    "no axes": {"axis": ()},
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("case", MINMAX)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint32", "bool", "complex64"])
def test_minmax(case, dtype):
    x = np.asarray(ours(X).astype(dtype))
    options = dict(MINMAX[case])
    if dtype != "float32" and "initial" in options and not isinstance(options["initial"], tuple):
        options["initial"] = x.dtype.type(1)
    if isinstance(options.get("initial"), tuple):
        options["initial"] = tuple(x.dtype.type(v > 0) for v in options["initial"])
    compare("minmax", both_extremes, x, **options)


def test_minmax_of_nan_and_of_nothing():
    compare("minmax", both_extremes, WITH_NAN, axis=1)
    compare("minmax", both_extremes, X[:0], axis=0, initial=1.0)


def test_minmax_is_differentiated_and_mapped():
    def spread(x):
        low, high = jnp.minmax(x)
        return high - low

    np.testing.assert_array_equal(xtrace.grad(spread)(np.array([1.0, 3.0, 2.0], np.float32)), [-1, 1, 0])
    np.testing.assert_array_equal(xtrace.vmap(spread)(X), X.max(1) - X.min(1))
    np.testing.assert_array_equal(xtrace.jit(spread)(X), X.max() - X.min())


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32", "bool"])
def test_top_k(dtype, axis, mode):
    x = random_values(dtype, (3, 5), 1, -9, 9) if dtype != "int8" else random_values(dtype, (3, 5), 1)
    for k in (0, 1, 3):
        compare("top_k", first_of_sorted, x, k, axis=axis, mode=mode)


@pytest.mark.parametrize("mode", ["largest", "smallest"])
def test_top_k_of_hard_values(mode):
    compare("top_k", first_of_sorted, WITH_NAN, 3, mode=mode)
    compare("top_k", first_of_sorted, np.array([-128, 127, 0, -128], np.int8), 3, mode=mode)
    compare("top_k", first_of_sorted, np.array([2, 0, 255, 0], np.uint8), 4, mode=mode, sorted=False)
    compare("top_k", first_of_sorted, np.array([np.inf, 1, -np.inf, np.inf], np.float32), 4, mode=mode)


def test_top_k_is_differentiated_and_mapped():
    def total(x):
        return jnp.top_k(x, 2, mode="smallest")[0].sum()

    np.testing.assert_array_equal(xtrace.grad(total)(X), [[1, 1, 0, 0], [1, 0, 1, 0]])
    values, places = xtrace.vmap(lambda x: jnp.top_k(x, 2))(X)
    np.testing.assert_array_equal(values, [[3, 3], [7, 7]])
    np.testing.assert_array_equal(places, [[2, 3], [1, 3]])


WRONG = {
    "out": (lambda: jnp.minmax(X, out=X), NotImplementedError, "'out' argument"),
    "list": (lambda: jnp.minmax([1, 2]), TypeError, "minmax requires ndarray or scalar"),
    "nothing": (lambda: jnp.minmax(X[:0]), ValueError, "no identity"),
    "where": (lambda: jnp.minmax(X, where=X > 0), ValueError, "specify 'initial'"),
    "three values": (lambda: jnp.minmax(X, initial=(1, 2, 3)), ValueError, "pair of values, got a tuple of 3"),
    "axis of minmax": (lambda: jnp.minmax(X, axis=2), ValueError, "axis 2 is out of bounds"),
    "mode": (lambda: jnp.top_k(X, 1, mode="a"), ValueError, "'largest' or 'smallest', got 'a'"),
    "many": (lambda: jnp.top_k(X, 5), ValueError, "k must be from 0 to the size 4"),
    "negative": (lambda: jnp.top_k(X, -1), ValueError, "got -1"),
    "float": (lambda: jnp.top_k(X, 1.0), TypeError, "k must be an integer"),
    "complex": (lambda: jnp.top_k(X * 1j, 1), ValueError, "complex numbers are not ordered"),
    "axis": (lambda: jnp.top_k(X, 1, axis=2), ValueError, "axis 2 is out of bounds"),
    "no axis": (lambda: jnp.top_k(X, 1, axis=None), TypeError, "axis must be an integer"),
    "scalar": (lambda: jnp.top_k(1.0, 1), ValueError, "out of bounds"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        call()
