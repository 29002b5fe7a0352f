"""Distributions of vectors, and the entropy of counts, against jax.scipy.stats."""

import jax
import jax.scipy.stats
import numpy as np
import pytest

import xtrace
from tests.support.differences import check_differences
from tests.support.operands import assert_same, ours, theirs
from tests.support.rules import check_rules
from xtrace.scipy.stats import dirichlet, multinomial, multivariate_normal, poisson, truncnorm

F32 = np.float32
OURS = {"dirichlet": dirichlet, "multinomial": multinomial, "multivariate_normal": multivariate_normal,
        "poisson": poisson, "truncnorm": truncnorm}
POINT, ALPHA = np.array([0.2, 0.3, 0.5], F32), np.array([1, 2, 3.5], F32)
COUNTS = np.array([1, 2, 3], np.int32)
MEAN, COVARIANCE = np.array([0.5, 0, -1], F32), np.array([[2, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 3]], F32)
MANY = np.arange(12, dtype=F32).reshape(4, 3) / 8

CASES = [
    *[("dirichlet", name, arguments) for name in ("logpdf", "pdf") for arguments in (
        (POINT, ALPHA), (POINT[:2], ALPHA), (2 * POINT, ALPHA), (np.array([-0.2, 0.7, 0.5], F32), ALPHA),
        (np.stack([POINT, POINT[::-1]], 1), ALPHA), (np.array([0, 1], np.int32), COUNTS[:2]),
        (POINT.astype(np.float16), ALPHA.astype(np.float16)), (np.ones(0, F32), np.ones(1, F32)))],
    *[("multinomial", name, arguments) for name in ("logpmf", "pmf") for arguments in (
        (COUNTS, 6, POINT), (COUNTS, 7, POINT), (np.array([-1, 4, 3], np.int32), 6, POINT),
        (np.array([0, 3], np.int32), 3, np.array([0, 0.5], F32)), (COUNTS[:2], 3, np.array([0, 1], np.int32)),
        (COUNTS, 6, POINT.astype(np.float16)))],
    *[("multivariate_normal", name, arguments) for name in ("logpdf", "pdf") for arguments in (
        (POINT, MEAN, COVARIANCE), (0.2, 0.1, 2.0), (POINT, 0.5, 2.0), (POINT, MEAN, 2.0), (POINT, 0.0, COVARIANCE),
        (MANY, MEAN, COVARIANCE), (POINT, MANY, COVARIANCE), (MANY, MEAN, np.stack([COVARIANCE] * 4)), (1, 1, 1),
        (np.stack([MANY] * 2), MEAN, np.stack([COVARIANCE] * 4)), (POINT, MEAN, -COVARIANCE),
        (np.ones((0, 3), F32), MEAN, COVARIANCE), (POINT.astype(np.complex64), MEAN, COVARIANCE))],
    *[("poisson", "entropy", arguments) for arguments in (
        (np.array([-1, 0, 0.1, 1, 9.9, 10.1, 99, 100, 1e4, np.inf, np.nan], F32),), (2.5, np.ones(2, F32)), (3,),
        (np.float16(3),), (np.ones((2, 1), F32), np.ones(3, F32)))],
]


def results(package, library, convert):
    return [getattr(library[kind], name)(*convert(arguments)) for kind, name, arguments in CASES]


def test_values():
    library = {kind: getattr(jax.scipy.stats, kind) for kind in OURS}
    expected = jax.jit(lambda: results(jax, library, theirs))()
    got = xtrace.jit(lambda: results(xtrace, OURS, ours))()
    for case, one, other in zip(CASES, got, expected, strict=True):
        # Terms of the entropy are exponentials of differences of numbers up to 500.
        assert_same(one, other, 512 if case[0] == "poisson" else 64, f"{case[0]}.{case[1]}{case[2]}")


def test_outside_of_jit():
    for kind, name, arguments in CASES[::5]:
        module = OURS[kind]
        under_jit = xtrace.jit(getattr(module, name))(*ours(arguments))
        assert_same(getattr(module, name)(*ours(arguments)), under_jit, 64)


def test_counts_in_batches():
    # jax adds up all counts, and compares that with each number of trials.
    got = np.asarray(multinomial.logpmf(np.stack([COUNTS, COUNTS]), np.array([6, 7]), POINT))
    np.testing.assert_allclose(got, [-2.00248, -np.inf], rtol=1e-5)


def test_not_between_its_bounds():
    # Of the exponential of a NaN that is known beforehand, XLA makes whatever is in the memory.
    functions = [getattr(truncnorm, name) for name in ("pdf", "cdf", "sf", "logpdf", "logcdf", "logsf")]
    found = xtrace.jit(lambda *a: [f(*a) for f in functions])(MEAN, F32(2), F32(1))
    assert np.isnan(np.asarray(found)).all()
    assert np.isnan(np.asarray(xtrace.jit(lambda *a: [f(*a) for f in functions])(F32(np.nan), F32(1), F32(2)))).all()


def function_of(kind, name):
    return lambda lax, *a: getattr(OURS[kind] if lax is xtrace.lax else getattr(jax.scipy.stats, kind), name)(*a)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "operands"),
    [
        ("dirichlet", "logpdf", (np.array([0.25, 0.5], F32), ALPHA)),
        ("multivariate_normal", "logpdf", (POINT, MEAN, COVARIANCE)),
    ],
)
def test_derivatives(kind, name, operands):
    check_rules(function_of(kind, name), *operands, rounding=2048, second=False, batching=kind != "dirichlet")


def test_derivative_of_the_entropy():
    # jax's is NaN.
    check_differences(poisson.entropy, (np.array([0.5, 20, 150], F32),), 2048, True)


MISTAKES = [
    ("dirichlet", "logpdf", (np.ones(5, F32), ALPHA), ValueError, r"one entry fewer; got shapes \(5,\) and \(3,\)"),
    ("dirichlet", "logpdf", (POINT, np.ones((2, 3), F32)), ValueError, r"one-dimensional; got shape \(2, 3\)"),
    ("dirichlet", "logpdf", ([0.5], ALPHA), TypeError, r"dirichlet\.logpdf requires ndarray or scalar"),
    ("multinomial", "logpmf", (POINT, 6.0, POINT), ValueError, "integer type; got dtypes float32"),
    ("multinomial", "pmf", (1, 1, 1.0), ValueError, "axis -1"),
    ("multivariate_normal", "logpdf", (POINT, MEAN, MEAN), ValueError, r"shape \(..., n, n\), n = 3"),
    ("multivariate_normal", "logpdf", (POINT, MEAN, COVARIANCE[:2, :2]), ValueError, r"got shape \(2, 2\)"),
    ("multivariate_normal", "logpdf", (POINT, MEAN, COVARIANCE, True), NotImplementedError, "allow_singular"),
    ("poisson", "entropy", (1j,), TypeError, "lgamma"),
    ("truncnorm", "cdf", (np.ones(2, np.float16), np.float16(0), np.float16(1)), TypeError, r"cdf: dtype float16"),
    ("truncnorm", "pdf", ([1.0], 0, 1), TypeError, r"truncnorm\.pdf requires ndarray or scalar"),
]


@pytest.mark.parametrize(("kind", "name", "arguments", "error", "words"), MISTAKES)
def test_mistakes(kind, name, arguments, error, words):
    with pytest.raises(error, match=words):
        getattr(OURS[kind], name)(*arguments)
    with pytest.raises(error):
        getattr(getattr(jax.scipy.stats, kind), name)(*arguments)
