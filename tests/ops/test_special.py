"""Incomplete gamma and beta functions: against jax, against SciPy's in float64, their derivatives, and bad input."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.special

import xtrace
from tests.support.operands import FLOAT, assert_same, ours, random_values, theirs
from tests.support.rules import check_rules
from xtrace import lax

NAMES = ["igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "betainc"]
EPSILON = float(np.finfo(np.float32).eps)


def operands(name: str, dtype: Any = np.float32, shape: Any = (3, 4)) -> list[np.ndarray[Any, Any]]:
    """Return values where both the series and the fractions are used."""
    if name == "betainc":
        return [random_values(dtype, shape, i, *bounds) for i, bounds in enumerate([(0.3, 5), (0.3, 5), (0.05, 0.95)])]
    return [random_values(dtype, shape, i, 0.2, 8) for i in range(2)]


# Values


# jax has the same series and fractions; the results differ by what is exponentiated, sums of logarithms up to some ten.
@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_types_agree(name):
    values = [operands(name, dtype) for dtype in FLOAT]
    expected = jax.jit(lambda values: [getattr(jax.lax, name)(*v) for v in values])(theirs(values))
    got = xtrace.jit(lambda values: [getattr(lax, name)(*v) for v in values])(ours(values))
    assert_same(got, expected, 64)
    assert_same(getattr(lax, name)(*ours(values[0])), expected[0], 64, "eager")


EDGES = np.array([-np.inf, -1, -0.0, 0, 1e-30, 0.001, 0.5, 1, 1.5, 10, 100, np.inf, np.nan], np.float32)


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a"])
def test_incomplete_gamma_at_the_ends_of_its_domain(name):
    a, x = [values.ravel() for values in np.meshgrid(EDGES, EDGES)]
    expected = np.array(getattr(jax.lax, name)(theirs(a), theirs(x)))
    if name == "igamma":
        # jax has NaN for some of these.
        expected[(a == 0) & (x > 0)] = 1
    assert_same(getattr(lax, name)(ours(a), ours(x)), theirs(expected), 64)


def test_incomplete_beta_at_the_ends_of_its_domain():
    unit = np.array([-1, 0, 0.3, 0.5, 1, 1.5, np.nan, np.inf], np.float32)
    a, b, x = [values.ravel() for values in np.meshgrid(EDGES, EDGES, unit)]
    got = np.asarray(lax.betainc(ours(a), ours(b), ours(x)))
    expected = np.asarray(jax.lax.betainc(theirs(a), theirs(b), theirs(x)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    special = ~((a > 0) & (b > 0) & (a < np.inf) & (b < np.inf) & (x > 0) & (x < 1))
    np.testing.assert_array_equal(got[special], expected[special])


def log_density(a: Any, x: Any) -> Any:
    """Return the logarithm of the density of the gamma distribution of shape `a` at `x`."""
    return (a - 1) * np.log(x) - x - scipy.special.gammaln(a)


def slope(function: Any, at: Any, distance: Any) -> Any:
    """Return the derivative of `function`, in float64, by central differences."""
    return (function(at + distance) - function(at - distance)) / (2 * distance)


def slope_of_gammainc(a: Any, x: Any) -> Any:
    """Return dP(a, x)/da, exact to some eight digits."""
    return slope(lambda a: scipy.special.gammainc(a, x), a, 1e-5 * a)


def test_incomplete_gamma_against_scipy():
    random = np.random.default_rng(1)
    wide_a = 10 ** random.uniform(-2, 2.5, 400)
    a, x = wide_a.astype(np.float32), np.maximum(random.gamma(wide_a), 1e-3).astype(np.float32)
    wide = a.astype(np.float64), x.astype(np.float64)
    # Each term of the exponentiated logarithm is rounded, so its size times epsilon is the relative error.
    logarithms = 1 + np.abs(wide[0] * np.log(wide[1])) + np.abs(scipy.special.gammaln(wide[0])) + wide[1]
    allowed = 4 * EPSILON * logarithms
    for name, expected in (
        ("igamma", scipy.special.gammainc(*wide)), ("igammac", scipy.special.gammaincc(*wide)),
        ("igamma_grad_a", slope_of_gammainc(*wide)),
    ):
        error = np.abs(np.asarray(getattr(lax, name)(ours(a), ours(x))) - expected)
        assert np.all(error <= allowed * np.maximum(1, np.abs(expected))), name


def test_incomplete_beta_against_scipy():
    random = np.random.default_rng(1)
    a, b = [(10 ** random.uniform(-2, 2.5, 400)).astype(np.float32) for _ in range(2)]
    x = random.uniform(0, 1, 400).astype(np.float32)
    wide = [v.astype(np.float64) for v in (a, b, x)]
    logarithms = 1 + sum(np.abs(scipy.special.gammaln(v)) for v in (wide[0], wide[1], wide[0] + wide[1]))
    logarithms += np.abs(wide[0] * np.log(wide[2])) + np.abs(wide[1] * np.log1p(-wide[2]))
    got = np.asarray(lax.betainc(ours(a), ours(b), ours(x)))
    assert np.all(np.abs(got - scipy.special.betainc(*wide)) <= 4 * EPSILON * logarithms)


def test_large_parameters_against_scipy():
    # jax's results are off by 1e-3 for parameters of a thousand and by 1 for a million.
    random = np.random.default_rng(1)
    a, b = [(10 ** random.uniform(1.3, 6, 300)).astype(np.float32) for _ in range(2)]
    x = random.gamma(a.astype(np.float64)).astype(np.float32)
    y = np.clip(random.beta(a.astype(np.float64), b.astype(np.float64)), 1e-6, 1 - 1e-6).astype(np.float32)
    wide = [v.astype(np.float64) for v in (a, b, x, y)]
    sizes = wide[0], (wide[0] + wide[1]) ** 2 / np.minimum(wide[0], wide[1])
    # The operands' own rounding moves the distance from the mean, in standard deviations, by epsilon times the root.
    for got, expected, size in (
        (lax.igamma(ours(a), ours(x)), scipy.special.gammainc(wide[0], wide[2]), sizes[0]),
        (lax.igammac(ours(a), ours(x)), scipy.special.gammaincc(wide[0], wide[2]), sizes[0]),
        (lax.betainc(ours(a), ours(b), ours(y)), scipy.special.betainc(wide[0], wide[1], wide[3]), sizes[1]),
    ):
        assert np.all(np.abs(np.asarray(got) - expected) <= 4 * EPSILON * (64 + np.sqrt(size)))


def test_the_derivative_of_a_sample_far_below_the_mean():
    # jax 0.10 ends the series after its first term here, and is off by up to a tenth.
    a, x = np.array([100, 100, 100, 200], np.float32), np.array([1, 2, 10, 50], np.float32)
    wide = a.astype(np.float64), x.astype(np.float64)
    expected = -slope_of_gammainc(*wide) / np.exp(log_density(*wide))
    np.testing.assert_allclose(np.asarray(lax.random_gamma_grad(ours(a), ours(x))), expected, 1e-5)


def test_loops_end_for_large_arguments():
    # In float32 a + 1 is a from 2**24 on, and no term of the series is smaller than the one before.
    a = np.array([1e6, 3e7, 1e30], np.float32)
    for name in ("igamma", "igammac", "igamma_grad_a"):
        assert np.isfinite(np.asarray(getattr(lax, name)(ours(a), ours(a)))[0])
    assert np.isfinite(np.asarray(lax.betainc(ours(a), ours(a), 0.5))[0])


# Types and shapes


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a", "betainc"])
def test_jaxprs_scalars_and_shapes_are_those_of_jax(name):
    count = 3 if name == "betainc" else 2
    values = [np.full((2, 1), 0.5, np.float32), np.full((1, 3), 0.25, np.float32), np.float32(0.75)][:count]
    function, model = getattr(lax, name), getattr(jax.lax, name)
    assert str(xtrace.make_jaxpr(function)(*values)).split() == str(jax.make_jaxpr(model)(*values)).split()
    for given in (values, [0.5] * count, [values[0], *[0.5] * (count - 1)]):
        found, expected = xtrace.eval_shape(function, *given), jax.eval_shape(model, *given)
        assert (found.shape, found.dtype, found.weak_type) == (expected.shape, expected.dtype, expected.weak_type)


@pytest.mark.parametrize("name", NAMES)
def test_operands_that_do_not_go_together_are_named(name):
    function, values = getattr(lax, name), ours(operands(name))
    with pytest.raises(TypeError, match=r"same dtypes, got float32, .*float16"):
        function(*values[:-1], values[-1].astype(np.float16))
    with pytest.raises(TypeError, match="does not accept dtype int32"):
        function(*[v.astype(np.int32) for v in values])
    with pytest.raises(TypeError, match=r"\(3, 4\).*\(2, 4\)"):
        function(*values[:-1], values[-1][:2])


# Rules


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", NAMES)
def test_batched_forms_agree(name):
    first, *others = operands(name, shape=(2, 3))
    function, model = getattr(lax, name), getattr(jax.lax, name)
    axes = (1, *[None] * len(others))
    found = xtrace.vmap(function, axes)(*ours([first, *[x[:, 0] for x in others]]))
    assert_same(found, jax.vmap(model, axes)(*theirs([first, *[x[:, 0] for x in others]])), 64)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_derivatives_of_incomplete_gamma(name):
    a, x = operands(name, shape=(2, 3))
    check_rules(lambda lax, a, x: getattr(lax, name)(a, x), a, x, rounding=256, second=False, batching=False)


def test_second_derivatives_by_x():
    a, x = operands("igamma", shape=(2, 3))
    check_rules(lambda lax, x: lax.igamma(a.astype(x.dtype), x), x, rounding=256, batching=False)
    a, b, x = operands("betainc", shape=(2, 3))

    def call(lax, x):
        return lax.betainc(a.astype(x.dtype), b.astype(x.dtype), x)

    check_rules(call, x, rounding=256, batching=False)


def test_derivatives_of_the_derivative_of_a_sample():
    a, x = operands("random_gamma_grad", shape=(2, 3))
    # jax differentiates its loop, in forward mode only.
    function = lambda lax, a, x: lax.random_gamma_grad(a, x)  # noqa: E731
    check_rules(function, a, x, rounding=256, reverse=False, batching=False)
    tangents = [np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)]
    _, forward = xtrace.jvp(lax.random_gamma_grad, ours([a, x]), ours(tangents))
    backward = xtrace.grad(lambda a: lax.reduce_sum(lax.random_gamma_grad(a, ours(x)), (0, 1)))(ours(a))
    assert_same(backward, theirs(np.asarray(forward)))


def test_the_derivative_of_a_sample_takes_two_operands():
    with pytest.raises(TypeError):
        jax.lax.random_gamma_grad(jax.numpy.ones(3))
    with pytest.raises(TypeError, match="takes the shape a and the sample; got 1 arguments"):
        lax.random_gamma_grad(1.0)


def test_igamma_grad_a_by_x():
    # The mixed derivative of P is that of the density by a, p (log x - ψ(a)); jax has no rule.
    a, x = operands("igamma_grad_a", shape=(2, 3))
    gradient = xtrace.grad(lambda x: lax.reduce_sum(lax.igamma_grad_a(ours(a), x), (0, 1)))(ours(x))
    wide = a.astype(np.float64), x.astype(np.float64)
    expected = np.exp(log_density(*wide)) * (np.log(wide[1]) - scipy.special.digamma(wide[0]))
    np.testing.assert_allclose(np.asarray(gradient), expected, 64 * EPSILON, 64 * EPSILON)


@pytest.mark.parametrize(
    ("name", "position", "error", "message"),
    [
        ("betainc", 0, ValueError, "with respect to a and b is not supported"),
        ("betainc", 1, ValueError, "with respect to a and b is not supported"),
        ("igamma_grad_a", 0, NotImplementedError, "second derivative of igamma with respect to a"),
    ],
)
def test_derivatives_that_do_not_exist_are_named(name, position, error, message):
    values = operands(name, shape=())
    with pytest.raises(error):
        jax.grad(getattr(jax.lax, name), position)(*theirs(values))
    with pytest.raises(error, match=message):
        xtrace.grad(getattr(lax, name), position)(*ours(values))
