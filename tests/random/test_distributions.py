"""Every distribution against jax: the same bits, eagerly and under jit, for one key."""

import jax
import jax.random
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same
from tests.support.random import assert_identical, pair, settings
from xtrace import random

CHANCES = np.array([0.2, 0.7], np.float32)
SIZES = np.array([2.0, 3.0], np.float32)
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
COVARIANCE = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
BOUNDS = np.array([3, -2], np.int32)

# Name, arguments after the key, keywords.
CASES = [
    *[(name, ((3, 4),), {}) for name in ("exponential", "laplace", "logistic", "cauchy", "gumbel", "normal")],
    *[(name, ((3,), "bfloat16"), {}) for name in ("exponential", "laplace", "cauchy", "normal", "uniform")],
    ("normal", ((2,), "complex64"), {}), ("normal", ((), "float16"), {}), ("uniform", ((2, 2), None, -1, SIZES), {}),
    ("uniform", ((), None, SIZES[:1], SIZES[1:]), {}), ("uniform", ((), "bfloat16", SIZES[:1, None]), {}),
    ("uniform", ((2,), None, SIZES, 5 + SIZES[None]), {}), ("uniform", ((), None, 0, SIZES[None, :1]), {}),
    ("gumbel", ((3,),), {"mode": "high"}), ("gumbel", ((50,),), {"mode": "highest"}),
    ("gumbel", ((3,), "float16"), {"mode": "highest"}),
    ("rademacher", ((3,),), {}), ("rademacher", ((3,), "float32"), {}),
    *[(name, (CHANCES, (3, 2)), {}) for name in ("pareto", "rayleigh", "wald", "geometric")],
    *[(name, (0.5,), {}) for name in ("pareto", "rayleigh", "wald", "lognormal", "geometric")],
    ("lognormal", (), {}), ("truncated_normal", (-1.0, SIZES), {}), ("truncated_normal", (-1, 1, (3,), "float16"), {}),
    ("triangular", (0.0, CHANCES, 1.0), {}), ("weibull_min", (CHANCES, SIZES, (2,)), {}),
    ("randint", ((4,), 0, 10), {}), ("randint", ((3, 2), BOUNDS - 5, BOUNDS + 5), {}),
    ("randint", ((3,), 0, 300, "uint8"), {}), ("randint", ((3,), -128, 128, "int8"), {}),
    ("randint", ((4,), 5, 2), {}), ("randint", ((20,), -(2**31), 2**31 - 1), {}),
    ("bernoulli", (), {}), ("bernoulli", (CHANCES, (3, 2)), {}), ("bernoulli", (CHANCES,), {"mode": "high"}),
    ("permutation", (5,), {}), ("permutation", (MATRIX,), {}), ("permutation", (MATRIX,), {"axis": 1}),
    ("permutation", (MATRIX,), {"independent": True}), ("permutation", (-3,), {}),
    ("choice", (5, (3,)), {}), ("choice", (MATRIX, (4,)), {"axis": 1}), ("choice", (5, (3,), False), {}),
    ("choice", (MATRIX, (2,), False), {"axis": 1}), ("choice", (SIZES, (5,)), {"p": CHANCES}),
    ("choice", (2, (2,), False), {"p": CHANCES}), ("choice", (2, (3,)), {"p": CHANCES, "mode": "unused"}),
    ("categorical", (MATRIX,), {}), ("categorical", (MATRIX,), {"axis": 0}),
    ("categorical", (CHANCES,), {"shape": (5,)}), ("categorical", (MATRIX,), {"axis": np.array(-2)}),
    ("categorical", (MATRIX,), {"shape": (3, 2), "replace": False}), ("categorical", (MATRIX,), {"mode": "high"}),
    ("multivariate_normal", (SIZES, COVARIANCE), {}), ("multivariate_normal", (SIZES, COVARIANCE, (3,)), {}),
    ("multivariate_normal", (SIZES, COVARIANCE), {"dtype": "float16"}),
    ("multivariate_normal", (SIZES, COVARIANCE), {"method": "svd"}),
    ("multivariate_normal", (SIZES, COVARIANCE), {"method": "eigh"}),
    ("poisson", (np.array([0.5, 3.0, 20.0, 1000.0, 0.0, -1.0, np.nan, np.inf], np.float32),), {}),
    ("binomial", (np.float32([0, 3, 50, 1e4, 1e6, -1, np.nan, np.inf]), np.array([[0.01], [0.3], [0.8]])), {}),
    ("binomial", (40, np.float16([0.5, -0.1, 1.5, 1.0]), (3, 4)), {"dtype": "float16"}),
    ("multinomial", (SIZES * 20, MATRIX / 12), {"dtype": int}), ("multinomial", (5, CHANCES), {"shape": (3, 2)}),
    ("poisson", (3, (2,), "int16"), {}), ("orthogonal", (3,), {}),
    ("orthogonal", (3, (2,)), {"m": 4}), ("orthogonal", (4,), {"m": 2}),
]

# Sums of a few squares and samples of loops, whose rounding depends on how XLA fuses them.
ROUNDED = [
    ("maxwell", ((3, 4),), {}, 4), ("lognormal", (CHANCES, (3, 2)), {}, 4),
    ("double_sided_maxwell", (CHANCES, CHANCES, (2,)), {}, 8),
    ("gamma", (SIZES, (3, 2)), {}, 16), ("loggamma", (CHANCES,), {}, 16), ("beta", (CHANCES, SIZES), {}, 32),
    ("dirichlet", (MATRIX + 1, (4, 2)), {}, 32), ("chisquare", (SIZES,), {}, 32), ("t", (SIZES, (3, 2)), {}, 32),
    ("f", (SIZES, SIZES), {}, 64), ("generalized_normal", (1.5, (3,)), {}, 32), ("ball", (3, 1.5, (4,)), {}, 64),
]


def calls(name, arguments, keywords):
    """Return the call of a distribution with a key, in both packages."""
    return [called(getattr(module, name), arguments, keywords) for module in (random, jax.random)]


def called(function, arguments, keywords):
    """Return `function` as a function of its first argument."""
    return lambda key: function(key, *arguments, **keywords)


@pytest.mark.slow
@pytest.mark.drawn(0.15)
@pytest.mark.parametrize(("name", "arguments", "keywords"), CASES)
def test_the_same_bits(name, arguments, keywords):
    ours, theirs = pair(11, "threefry2x32")
    call, expected = calls(name, arguments, keywords)
    expected = expected(theirs)
    assert_identical(call(ours), expected)
    assert_identical(xtrace.jit(call)(ours), expected)


@pytest.mark.slow
@pytest.mark.drawn(0.15)
@pytest.mark.parametrize(("name", "arguments", "keywords", "rounding"), ROUNDED)
def test_the_same_numbers(name, arguments, keywords, rounding):
    ours, theirs = pair(11, "threefry2x32")
    call, expected = calls(name, arguments, keywords)
    assert_same(call(ours), expected(theirs), rounding, name)


@pytest.mark.slow
def test_64_bits():
    with settings("enable_x64", True):
        ours, theirs = pair(1, "threefry2x32")
        for name, arguments in (("normal", ((3,),)), ("randint", ((3,), 0, 2**40)), ("permutation", (3,))):
            call, expected = calls(name, arguments, {})
            assert_identical(call(ours), expected(theirs))


@pytest.mark.slow
def test_vmap_over_keys_and_parameters():
    ours, theirs = pair(5, "threefry2x32")
    keys, their_keys = random.split(ours, 2), jax.random.split(theirs, 2)
    for name in ("exponential", "pareto"):
        extra = (SIZES,) if name == "pareto" else ()
        got = xtrace.vmap(getattr(random, name))(keys, *extra)
        expected = jax.vmap(getattr(jax.random, name))(their_keys, *extra)
        assert_identical(got, expected)


@pytest.mark.slow
def test_the_derivative_of_gamma():
    ours, theirs = pair(5, "threefry2x32")
    for name in ("gamma", "loggamma"):
        call, their_call = getattr(random, name), getattr(jax.random, name)
        expected = jax.grad(lambda a, f=their_call: f(theirs, a).sum())(SIZES)
        assert_same(xtrace.grad(lambda a, f=call: f(ours, a).sum())(SIZES), expected, 256, name)


KEY = random.key(0)
MISTAKES = [
    (lambda: random.normal(KEY, (2,), int), ValueError, "dtype argument to `normal` must be a float or complex"),
    (lambda: random.uniform(KEY, (2,), complex), ValueError, "dtype argument to `uniform` must be a float dtype"),
    (lambda: random.bits(KEY, (2,), "int32"), ValueError, "unsigned int dtype, got int32"),
    (lambda: random.normal(KEY, (-1,)), TypeError, "negative"),
    (lambda: random.gumbel(KEY, mode="x"), ValueError, "gumbel.*'x'"),
    (lambda: random.choice(KEY, 2, (2,), False, CHANCES, mode="x"), ValueError, "gumbel.*'x'"),
    (lambda: random.pareto(KEY, np.ones((2, 3)), (4,)), ValueError, r"b \(2, 3\).*shape \(4,\)"),
    (lambda: random.pareto(KEY, np.ones((2, 3)), (3,)), ValueError, r"b \(2, 3\) do not broadcast.*\(3,\)"),
    (lambda: random.pareto(KEY, [1.0]), TypeError, "pareto requires ndarray or scalar arguments: b"),
    (lambda: random.gamma(KEY, 1j), ValueError, "complex"),
    (lambda: random.randint(KEY, (2,), 0, 1, "float32"), TypeError, "int dtype, got float32"),
    (lambda: random.randint(KEY, (2,), np.zeros(3, int), 4), ValueError, r"minval \(3,\)"),
    (lambda: random.bernoulli(KEY, 1), TypeError, "floating dtype, got int32"),
    (lambda: random.bernoulli(KEY, 0.5, mode="x"), ValueError, "expected 'high' or 'low'"),
    (lambda: random.permutation(KEY, 1.5), TypeError, "integer or at least 1-dimensional"),
    (lambda: random.permutation(KEY, np.ones(3), axis=1), ValueError, "axis 1"),
    (lambda: random.choice(KEY, 0, (3,)), ValueError, "greater than 0"),
    (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, r"size 4.*size 3"),
    (lambda: random.choice(KEY, 3, (4,), p=np.ones(4)), ValueError, r"p has shape \(4,\)"),
    (lambda: random.choice(KEY, 3, 2), TypeError, "must be a sequence"),
    (lambda: xtrace.jit(lambda n: random.choice(KEY, n, (2,)))(5), TypeError, "random.choice"),
    (lambda: random.categorical(KEY, np.ones((2, 3)), axis=5), IndexError, r"axis 5.*\(2, 3\)"),
    (lambda: random.categorical(KEY, np.ones((2, 3)), shape=(3,)), ValueError, "logits"),
    (lambda: random.categorical(KEY, np.ones((2, 0))), ValueError, "nothing to choose"),
    (lambda: random.dirichlet(KEY, 1.0), ValueError, "alpha.ndim >= 1"),
    (lambda: random.multivariate_normal(KEY, np.ones(3), np.eye(2)), ValueError, r"n=3.*\(2, 2\)"),
    (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="x"), ValueError, "cholesky, eigh, svd"),
    (lambda: random.poisson(random.key(0, impl="rbg"), 3.0), NotImplementedError, "threefry2x32, got rbg"),
    (lambda: random.binomial(KEY, 5, 0.5, dtype=int), ValueError, "dtype argument to `binomial` must be a float dtype"),
    (lambda: random.binomial(KEY, np.ones(2), np.ones(3)), ValueError, r"n \(2,\), p \(3,\)"),
    (lambda: random.multinomial(KEY, 5, 0.5), ValueError, "must have an axis of outcomes"),
    (lambda: random.multinomial(KEY, np.ones(2), np.ones((4, 3))), ValueError, r"n \(2,\)"),
    (lambda: random.multinomial(KEY, np.ones((3, 2)), np.ones((2, 3))), ValueError, r"n of shape \(3, 2\)"),
    (lambda: random.orthogonal(KEY, -1), ValueError, "negative dimensions"),
]


@pytest.mark.parametrize(("call", "error", "words"), MISTAKES)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
