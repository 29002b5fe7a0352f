"""Distributions against jax.scipy.stats: all their functions inside and outside of the support, and derivatives."""

import importlib

import jax
import jax.scipy.stats
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours, theirs

F32 = np.float32
REAL = np.array([-3.0, -1.0, -0.25, 0.0, 0.3, 0.8, 1.0, 2.5, 6.0], F32)
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 9.0], F32)
PROBABILITIES = np.array([0.05, 0.25, 0.5, 0.75, 0.95], F32)
# The parameters of shape, and whether there are loc and scale.
CONTINUOUS = {
    "norm": ((), True), "uniform": ((), True), "expon": ((), True), "laplace": ((), True), "logistic": ((), True),
    "cauchy": ((), True), "gumbel_r": ((), True), "gumbel_l": ((), True), "pareto": ((1.5,), True),
    "gamma": ((1.7,), True), "chi2": ((3.0,), True), "beta": ((1.5, 2.5), True), "t": ((4.0,), True),
    "gennorm": ((1.5,), False), "vonmises": ((2.0,), False),
    "wrapcauchy": ((0.4,), False), "truncnorm": ((-1.0, 2.0), True),
}
DISCRETE = {"poisson": (2.5,), "bernoulli": (0.3,), "geom": (0.3,), "binom": (5.0, 0.4), "nbinom": (3.0, 0.4),
            "betabinom": (5.0, 1.5, 0.7)}
ALL = {**CONTINUOUS, **{name: (shape, False) for name, shape in DISCRETE.items()}}


def functions(name):
    module = getattr(jax.scipy.stats, name)
    kinds = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
    return [k for k in kinds if hasattr(module, k)]


def library_of(package, name):
    return importlib.import_module(f"{package.__name__}.scipy.stats.{name}")


def values(package, name, *shape, location=()):
    module, found = library_of(package, name), {}
    for kind in functions(name):
        points = PROBABILITIES if kind in ("ppf", "isf") else COUNTS if name in DISCRETE else REAL
        given = () if name == "bernoulli" and kind in ("cdf", "ppf") else location
        found[kind] = getattr(module, kind)(points, *shape, *given)
    return found


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "truncnorm" else n for n in ALL])
def test_values(name):
    shape, scaled = ALL[name]
    shape = tuple(F32(x) for x in shape)
    locations = [(), (F32(0.5), F32(2.0))] if scaled else [()]
    if name == "truncnorm":
        # Its programs are large.
        locations = locations[1:]
    if name in DISCRETE:
        locations.append((F32(1),))
    got = xtrace.jit(lambda *s: [values(xtrace, name, *s, location=at) for at in locations])(*shape)
    expected = jax.jit(lambda *s: [values(jax, name, *s, location=at) for at in locations])(*shape)
    # Logarithms of probabilities near 1 lose what these lose, and some differ from those of jax by a formula.
    for one, other in zip(got, expected, strict=True):
        for kind in other:
            assert one[kind].dtype == other[kind].dtype and one[kind].weak_type == other[kind].weak_type
            np.testing.assert_allclose(
                one[kind], other[kind], rtol=512 * 2.0**-23, atol=32 * 2.0**-23, err_msg=f"{name}.{kind}"
            )


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", ALL)
def test_derivatives(name):
    shape, _ = ALL[name]
    shape = tuple(F32(x) for x in shape)
    log = "logpmf" if name in DISCRETE else "logpdf"
    points = np.array([1.0, 3.0], F32) if name in DISCRETE else np.array([0.3, 0.8], F32)
    points = points[:1] if name == "bernoulli" else points + 1 if name == "pareto" else points
    discrete = name in DISCRETE
    numbers = tuple(range(1, 1 + len(shape))) if discrete else tuple(range(1 + len(shape)))

    def case(package, x):
        function = getattr(library_of(package, name), log)
        return [package.vmap(package.grad(lambda v, *s, i=i: function(v, *s), i), (0, *[None] * len(shape)))(x, *shape)
                for i in numbers]

    expected = jax.jit(lambda x: case(jax, x))(theirs(points))
    assert_same(xtrace.jit(lambda x: case(xtrace, x))(ours(points)), expected, 512)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_outside_of_the_support_no_derivative_is_nan(name):
    shape, _ = ALL[name]
    module = library_of(xtrace, name)
    slopes = xtrace.jit(xtrace.vmap(xtrace.grad(lambda x: module.logpdf(x, *shape))))(ours(REAL))
    assert not np.isnan(np.asarray(slopes)).any()


# Parameters beyond the domain and at its edges, and points that are NaN or at the edges of the support. Left out: of a
# negative or infinite scale, and of locations that are no integers, where SciPy has NaN and jax what its formulas give.
EDGES = {
    "beta.logpdf": [(5, -1, 1), (5, 0, 1), (5, 1, -1), (0.5, -1, 1), (0.5, -0.5, 1), (0.5, -0.5, -0.5), (0, 1, 1),
                    (1, 1, 1), (0, 0.5, 1), (0.5, 0, 1), (np.nan, 1, 1), (0.5, 1, 1, 0, -1), (0.5, 1, 1, 0, 0),
                    (5, 1, 1, np.nan)],
    "beta.cdf": [(5, -1, 1), (0.5, -1, 1), (0, 1, 1), (1, 1, 1), (np.nan, 1, 1)],
    "gamma.logpdf": [(5, -1), (-5, -1), (0, 1), (0, 0.5), (0, 2), (5, 1, 0, -1), (-5, 1, 0, -1), (-5, 1, 0, 0)],
    "gamma.cdf": [(np.nan, 1), (5, -1), (0, 1), (-5, 1, 0, 0)], "gamma.sf": [(np.nan, 1), (5, -1), (0, 1)],
    "chi2.logpdf": [(5, -1), (np.nan, 1), (5, 1, 0, -1)], "chi2.cdf": [(np.nan, 1), (5, -1)],
    "pareto.logpdf": [(0, 1, 2, -1), (0, 1, 0, 0), (1, 0, 0, 1), (np.nan, 1)],
    "pareto.sf": [(0, 1, 2, -1), (0, 1, 0, 0), (0, 1, 1, -1.5), (np.nan, 1)],
    "pareto.cdf": [(0, 1, 2, -1), (0, 1, 0, 0), (np.nan, 1)], "pareto.logcdf": [(0, 1, 2, -1), (5, 2), (1e3, 3)],
    "norm.logpdf": [(0, 0, -1), (1, 0, -0.5), (0, 0, 0), (np.nan,), (1, np.inf, 1)], "norm.pdf": [(0, 0, -2)],
    "t.logpdf": [(0, 1, 0, -1), (1, -1, 0, 1), (1, 0, 0, 1), (np.nan, 1)],
    "truncnorm.pdf": [(0.5, 0, 1, 0, -1), (0, 0, 1, 1, -1), (0, 1, 0, 0, 1)],
    "expon.logcdf": [(0, np.nan, 1), (10, 0, 1), (0,)],
    "logistic.logpdf": [(0, np.inf, 1), (np.inf, 0, 1), (-np.inf, 0, 1), (0, 0, -1), (0, 0, 0)],
    "uniform.cdf": [(0, 0, -1), (-0.5, 0, -1), (0.5, 0, -1), (1, 0, 1), (0, 0, 1)],
    "gumbel_r.logsf": [(3, 0, 0.25), (-2, 0, 0.25), (-2, 0, 1), (0, 1, 0.25), (0, 0, -1)],
    "poisson.logpmf": [(0, 0, np.nan), (0, -1), (0.5, 1), (0, 0)],
    "binom.logpmf": [(0, -1, 0.5), (0, 5, -0.5), (0, 5, 1.5), (6, 5, 0.5), (5, 5, 1), (0, 5, 0)],
    "nbinom.logpmf": [(0, 1, 0.5, np.nan), (np.nan, 1, 0.5), (0, -1, 0.5), (0, 1, 1.5), (-1, 1, 0.5)],
    "betabinom.logpmf": [(5, 3, 0, 1), (0, -1, 1, 1), (0.5, 3, 1, 1), (0.5, 3, 1, 1, 0.5), (np.nan, 3, 1, 1),
                         (4, 3, 1, 1)],
    "wrapcauchy.pdf": [(1, 0), (1, 2), (1, 1), (np.nan, 0.5), (-1, 0.5), (7, 0.5)],
}


def test_beyond_the_domain():
    """Parameters out of the domain, the edges of the support, and NaN."""

    def case(package):
        return [
            [getattr(library_of(package, name.partition(".")[0]), name.partition(".")[2])(*map(F32, a)) for a in given]
            for name, given in EDGES.items()
        ]

    for (name, given), one, other in zip(EDGES.items(), case(xtrace), case(jax), strict=True):
        for arguments, got, expected in zip(given, one, other, strict=True):
            assert_same(got, expected, 256, f"{name}{arguments}", floor=1.0)


def test_types_and_keywords():
    norm, theirs_norm = library_of(xtrace, "norm"), jax.scipy.stats.norm
    for x in (2, 2.0, np.arange(3), np.ones(2, np.float16), np.arange(3, dtype=np.int8)):
        assert_same(norm.logpdf(x), theirs_norm.logpdf(x), 16)
    assert_same(norm.cdf(x=1.5, scale=ours(REAL[-2:])), theirs_norm.cdf(1.5, scale=theirs(REAL[-2:])), 16)
    # Whether results are weakly typed is up to the first operand, in whatever order keywords are given.
    for keywords in ({"x": 2.0, "loc": 0.0}, {"loc": 0.0, "x": 2.0}, {"x": 0.5, "loc": 2.0}):
        given = [{k: p.lax.full((3,), v) if v == 2.0 else v for k, v in keywords.items()} for p in (xtrace, jax)]
        assert norm.logpdf(**given[0]).weak_type == theirs_norm.logpdf(**given[1]).weak_type, keywords
    with pytest.raises(TypeError, match=r"norm\.logpdf requires ndarray or scalar"):
        norm.logpdf([1.0])
    with pytest.raises(ValueError, match=r"gamma\.cdf: Incompatible shapes"):
        library_of(xtrace, "gamma").cdf(np.ones(2), np.ones(3))
