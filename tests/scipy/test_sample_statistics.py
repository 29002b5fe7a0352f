"""Modes, ranks and errors of samples, and densities estimated from them, against jax.scipy.stats."""

import dataclasses

import jax
import jax.scipy.stats
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours, theirs
from xtrace.scipy.stats import descriptive, gaussian_kde, kernel_density, mode, rankdata, sem

F32 = np.float32
FUNCTIONS = {"mode": mode, "rankdata": rankdata, "sem": sem}
TIED = np.array([[1, 2, 2], [3, 1, 2], [3, 3, 2]], F32)
GAPS = np.array([[1, np.nan, 2], [3, 1, np.nan], [3, np.nan, 2]], F32)
METHODS = ("average", "min", "max", "dense", "ordinal")

CASES = [
    *[(name, a, {"axis": axis}) for name in FUNCTIONS for a in (TIED, GAPS) for axis in (0, -1, None)],
    *[(name, a, {}) for name in FUNCTIONS for a in (
        TIED.astype(np.int32), TIED.astype(np.float16), TIED > 1, np.ones(0, F32), np.ones((3, 0), F32),
        np.array([1, np.inf, -np.inf, 2], F32), np.array([0.0, -0.0, 1], F32))],
    *[(name, TIED, {"axis": axis, "keepdims": True}) for name in ("mode", "sem") for axis in (1, None)],
    *[("mode", a, {}) for a in (F32(3), 3.0, TIED.astype(np.complex64), np.ones((0, 3), np.int32))],
    *[("rankdata", a, {"method": method, "axis": 0}) for method in METHODS for a in (TIED, GAPS)],
    *[("sem", GAPS, {"nan_policy": "omit", "axis": axis, "ddof": ddof}) for axis, ddof in ((0, 1), (None, 0))],
    *[("sem", TIED, {"ddof": ddof}) for ddof in (0, 1.5, 3)],
]


def results(functions, convert):
    return [functions[name](convert(a), **keywords) for name, a, keywords in CASES]


def test_values():
    expected = jax.jit(lambda: results({n: getattr(jax.scipy.stats, n) for n in FUNCTIONS}, theirs))()
    got = xtrace.jit(lambda: results(FUNCTIONS, ours))()
    for (name, _, keywords), one, other in zip(CASES, got, expected, strict=True):
        assert_same(one, other, 16, f"{name}{keywords}")


def test_outside_of_jit():
    found = mode(ours(TIED))
    assert isinstance(found, descriptive.ModeResult) and found._fields == ("mode", "count")
    assert_same(tuple(found), tuple(jax.scipy.stats.mode(TIED)))
    np.testing.assert_array_equal(rankdata(TIED[0]), [1, 2.5, 2.5])


@pytest.mark.parametrize("method", METHODS)
def test_ranks_of_slices_in_a_batch(method):
    got = xtrace.jit(xtrace.vmap(lambda a: (rankdata(a, method), mode(a).mode, sem(a))))(TIED)
    for i, row in enumerate(TIED):
        np.testing.assert_array_equal(got[0][i], jax.scipy.stats.rankdata(row, method))
    np.testing.assert_array_equal(got[1], [2, 1, 3])


def test_derivative_of_the_error():
    spread = np.array([1.0, 2, 4, 8], F32)
    expected = jax.grad(jax.scipy.stats.sem)(spread)
    assert_same(xtrace.jit(xtrace.grad(sem))(spread), expected, 16)


# Estimated densities

NUMBERS = np.array([0.1, -0.3, 0.9, 1.4, -1.0], F32)
VECTORS = np.array([[0.1, -0.3, 0.9, 1.4, -1.0], [2, 0.5, 0.1, -0.7, 1]], F32)
WEIGHTS = np.array([1, 2, 0, 3, 1], F32)
ESTIMATES = [
    ((NUMBERS,), NUMBERS[:3]), ((NUMBERS, "silverman"), 0.5), ((NUMBERS, 0.5, WEIGHTS), NUMBERS),
    ((np.arange(5, dtype=np.int32), lambda kde: 2 * kde.neff ** -0.2), np.arange(3, dtype=np.int32)),
    ((VECTORS,), VECTORS[:, :4]), ((VECTORS, F32(0.7), WEIGHTS), VECTORS[:, 0]), ((VECTORS, -1), np.ones((2, 0), F32)),
]
LIBRARIES = {"xtrace": (xtrace, gaussian_kde, ours), "jax": (jax, jax.scipy.stats.gaussian_kde, theirs)}


def estimated(library):
    """Return the arrays and all integrals of densities, in one program."""
    _, kind, convert = LIBRARIES[library]
    found = []
    for (data, *rest), points in ESTIMATES:
        kde = kind(convert(data), *convert(rest))
        found.append([getattr(kde, name) for name in ("neff", "dataset", "weights", "covariance", "inv_cov")])
        found.append([f(convert(points)) for f in (kde, kde.evaluate, kde.pdf, kde.logpdf)])
        found.append(kde.integrate_kde(kind(convert(data) * 2, 0.5)))
        mean = np.arange(kde.d, dtype=F32)
        found.append(kde.integrate_gaussian(convert(mean), convert(np.eye(kde.d, dtype=F32) * 2)))
        if kde.d == 1:
            found.append([kde.integrate_box_1d(-0.5, convert(F32(1))), kde.integrate_box_1d(-np.inf, np.inf)])
    return found


def test_densities():
    assert_same(xtrace.jit(lambda: estimated("xtrace"))(), jax.jit(lambda: estimated("jax"))(), 512)


def drawn(library, data, shape):
    package, kind, convert = LIBRARIES[library]
    return kind(convert(data), None, convert(WEIGHTS)).resample(package.random.key(3), shape)


def test_samples_of_a_density():
    for data, shape in ((NUMBERS, (6,)), (VECTORS, ()), (VECTORS, (4,))):
        assert_same(drawn("xtrace", data, shape), drawn("jax", data, shape), 64)
    # jax draws for a shape of one axis only.
    assert drawn("xtrace", VECTORS, (3, 4)).shape == (2, 3, 4)


def test_a_density_is_a_tree():
    kde = gaussian_kde(ours(NUMBERS))
    assert len(xtrace.tree_util.tree_leaves(kde)) == 5 and "gaussian_kde(neff=" in repr(kde)
    again = xtrace.jit(lambda k: xtrace.tree_util.tree_map(lambda x: x, k))(kde)
    assert isinstance(again, kernel_density.gaussian_kde) and (again.d, again.n) == (1, 5)
    assert_same(again.logpdf(NUMBERS), theirs(np.asarray(kde.logpdf(NUMBERS))), 64)


def derivatives(library):
    package, kind, convert = LIBRARIES[library]
    return [
        package.grad(lambda data: kind(data).logpdf(convert(NUMBERS[:2])).sum())(convert(NUMBERS)),
        package.vmap(lambda data: kind(data)(0.3))(convert(VECTORS)),
        package.grad(lambda data: kind(data).integrate_kde(kind(data, 0.3)))(convert(VECTORS)),
    ]


def test_derivatives_and_batches():
    assert_same(xtrace.jit(lambda: derivatives("xtrace"))(), jax.jit(lambda: derivatives("jax"))(), 4096)


MISTAKES = [
    (lambda s: s.mode(TIED, 2), ValueError, "axis 2"), (lambda s: s.mode([1.0]), TypeError, "mode"),
    (lambda s: s.mode(TIED, nan_policy="omit"), NotImplementedError, "mode: nan_policy='omit'"),
    (lambda s: s.rankdata(TIED, nan_policy="raise"), NotImplementedError, "rankdata: nan_policy='raise'"),
    (lambda s: s.mode(TIED, nan_policy="x"), ValueError, "one of propagate, omit, raise; got 'x'"),
    (lambda s: s.rankdata(TIED, "x"), ValueError, "method must be one of average, .*; got 'x'"),
    (lambda s: s.rankdata(TIED, axis=1.0), TypeError, "rankdata: axis"),
    (lambda s: s.sem(TIED, nan_policy="raise"), ValueError, "'propagate' or 'omit'; got 'raise'"),
    (lambda s: s.gaussian_kde(np.ones(1, F32)), ValueError, r"multiple elements; got shape \(1,\)"),
    (lambda s: s.gaussian_kde(np.ones((2, 2, 2), F32)), ValueError, r"shape \(2, 2, 2\)"),
    (lambda s: s.gaussian_kde(1j * NUMBERS), NotImplementedError, "complex data"),
    (lambda s: s.gaussian_kde([1.0, 2.0]), TypeError, "gaussian_kde requires"),
    (lambda s: s.gaussian_kde(NUMBERS, "x"), ValueError, "'scott', 'silverman', a scalar or a function; got 'x'"),
    (lambda s: s.gaussian_kde(NUMBERS, [0.3]), ValueError, "got"),
    (lambda s: s.gaussian_kde(NUMBERS, weights=np.ones(4, F32)), ValueError, r"of the 5 samples; got shape \(4,\)"),
    (lambda s: s.gaussian_kde(VECTORS)(np.ones((3, 2), F32)), ValueError, r"d = 2, .*got shape \(3, 2\)"),
    (lambda s: s.gaussian_kde(NUMBERS)(1j), NotImplementedError, "complex points"),
    (lambda s: s.gaussian_kde(VECTORS).integrate_gaussian(0.0, 1.0), ValueError, "mean does not have dimension 2"),
    (lambda s: s.gaussian_kde(NUMBERS).integrate_gaussian(0.0, np.eye(2)), ValueError, "cov does not have dimension 1"),
    (lambda s: s.gaussian_kde(VECTORS).integrate_box_1d(0.0, 1.0), ValueError, "must be 1-dimensional, got dimension"),
    (lambda s: s.gaussian_kde(NUMBERS).integrate_box_1d(NUMBERS, 1.0), ValueError, "must be scalars"),
    (lambda s: s.gaussian_kde(NUMBERS).integrate_kde(s.gaussian_kde(VECTORS)), ValueError, "dimensionality, 1 and 2"),
    (lambda s: s.gaussian_kde(NUMBERS).integrate_box(0, 1), NotImplementedError, "integrate_box_1d"),
    (lambda s: s.gaussian_kde(NUMBERS).set_bandwidth(0.3), NotImplementedError, "make a new"),
    (lambda s: setattr(s.gaussian_kde(NUMBERS), "neff", 1), dataclasses.FrozenInstanceError, "neff"),
]


@pytest.mark.parametrize(("call", "error", "words"), MISTAKES)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call(xtrace.scipy.stats)


@pytest.mark.slow
def test_mistakes_are_those_of_jax():
    for call, error, _ in MISTAKES:
        with pytest.raises(error):
            call(jax.scipy.stats)


def test_what_is_no_density():
    with pytest.raises(TypeError, match="must be a gaussian_kde, got int"):
        gaussian_kde(NUMBERS).integrate_kde(3)
    with pytest.raises(TypeError, match="shape must be a sequence"):
        gaussian_kde(NUMBERS).resample(xtrace.random.key(0), 3)
