"""Special functions against jax.scipy.special, and against definitions where jax has none."""

import fractions
import math
import statistics

import jax
import jax.scipy.special
import numpy as np
import pytest
import scipy.special

import xtrace
import xtrace.numpy as jnp
import xtrace.scipy.special as special
from tests.support.operands import assert_same, ours, theirs

F32 = np.float32
AROUND = np.array([-3.5, -2.0, -1.5, -1.0, -0.25, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 7.0, 30.0], F32)
POSITIVE = np.array([0.0, 0.01, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 7.0, 12.0, 30.0], F32)
OPEN = np.array([0.01, 0.2, 0.5, 0.7, 0.99], F32)
FAR = np.array([-40.0, -15.0, -9.5, -5.0, -1.0, -0.1, 0.0, 0.5, 2.0, 4.9, 5.5, 9.0], F32)
UNARY = {
    "erf": AROUND, "erfc": AROUND, "erfinv": OPEN, "expit": FAR, "digamma": AROUND + F32(0.1), "gammaln": AROUND,
    "i0": AROUND, "i0e": AROUND, "i1": AROUND, "i1e": AROUND, "gamma": AROUND,
    "loggamma": POSITIVE[1:], "gammasgn": AROUND, "entr": AROUND,
    "logit": OPEN, "ndtr": FAR, "ndtri": OPEN, "log_ndtr": FAR, "factorial": AROUND, "softmax": OPEN,
    "log_softmax": OPEN,
}
GRID = [x.ravel() for x in np.meshgrid(POSITIVE, POSITIVE)]
INSIDE = [x.ravel() for x in np.meshgrid(POSITIVE[1:], POSITIVE[1:])]
BINARY = {
    "beta": INSIDE, "betaln": INSIDE, "boxcox": INSIDE, "boxcox1p": GRID, "kl_div": GRID, "rel_entr": GRID,
    "xlogy": GRID, "xlog1py": GRID, "poch": INSIDE, "gammainc": INSIDE, "gammaincc": INSIDE, "comb": GRID,
    "zeta": [np.array([1.5, 2.0, 4.0, 9.0], F32), np.array([0.5, 1.0, 3.0, 10.0], F32)],
}
# exp of differences of log gammas up to 100 loses what these lose: some hundred spacings.
LOSSY = {"beta": 512, "betaln": 512, "poch": 1024, "comb": 512, "gamma": 256, "factorial": 512, "gammainc": 512,
         "gammaincc": 512, "ndtri": 64, "digamma": 64, "gammaln": 64, "log_ndtr": 64,
         "loggamma": 64}


def check(case, operands, rounding):
    expected = jax.jit(lambda *a: case(jax.scipy.special, jax, *a))(*map(theirs, operands))
    assert_same(xtrace.jit(lambda *a: case(special, xtrace, *a))(*map(ours, operands)), expected, rounding)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check(lambda library, api, x: getattr(library, name)(x), [UNARY[name]], LOSSY.get(name, 32))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    check(lambda library, api, x, y: getattr(library, name)(x, y), BINARY[name], LOSSY.get(name, 32))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("softmax", "log_softmax", "gammasgn", "factorial")])
def test_unary_derivatives(name):
    inside = UNARY[name]
    if name in ("gamma", "gammaln", "digamma", "entr"):
        inside = POSITIVE[2:]
    if name == "i0":
        # jax 0.10 has 1 at 0, where an even function has 0.
        inside = inside[inside != 0]
        assert float(xtrace.grad(special.i0)(0.0)) == 0

    def case(library, api, x):
        slope = api.grad(getattr(library, name))
        return api.vmap(slope)(x)

    check(case, [inside], 16 * LOSSY.get(name, 32))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", [n for n in BINARY if n != "zeta"])
def test_binary_derivatives(name):
    chosen = (0,) if name in ("gammainc", "gammaincc") else (0, 1)
    points = [np.array([0.25, 1.5, 7.0, 12.0], F32), np.array([0.5, 2.0, 0.9, 3.0], F32)]

    def case(library, api, x, y):
        return [api.vmap(api.grad(getattr(library, name), i))(x, y) for i in chosen]

    check(case, points, 16 * LOSSY.get(name, 32))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_near_a_large_mean(name):
    # There jax's values are anything, and SciPy's lose digits: far out the distribution is normal.
    mean = np.exp2([12, 14, 15, 17, 20, 24, 28, 31])[:, None] * 1.25
    distance = np.array([-6, -3, -1, 0, 1, 3, 6])
    a = np.broadcast_to(mean, (8, 7)).astype(np.float32)
    x = (mean + np.sqrt(mean) * distance).astype(np.float32)
    wide = a.astype(np.float64), x.astype(np.float64)
    with xtrace.enable_x64(True):
        exact = np.asarray(getattr(special, name)(*map(ours, wide)))
    np.testing.assert_allclose(exact[:4], getattr(scipy.special, name)(*wide)[:4], rtol=1e-11)
    z = (wide[1] - wide[0]) / np.sqrt(wide[0])
    normal = scipy.special.ndtr(z if name == "gammainc" else -z)
    np.testing.assert_allclose(exact[4:], normal[4:], rtol=0.06, atol=5e-4)
    assert_same(getattr(special, name)(ours(a), ours(x)), ours(exact.astype(np.float32)), 128)
    for same in np.float32([2**60, 3e38]):
        assert getattr(special, name)(same, same) == np.float32(0.5)


def test_poles_and_large_arguments():
    poles = np.array([0, -1, -2, complex(-0.0, 0.0), complex(-3, -0.0)], np.complex64)
    for name in ("gamma", "loggamma"):
        assert_same(getattr(special, name)(ours(poles)), getattr(jax.scipy.special, name)(theirs(poles)), 4)
    a = np.array([1, 0.5, 2, 1e-38, 30, 3e38, 1e25], np.float32)
    x = np.array([3e38, 1e30, 1e25, 1, 3e38, 1e30, 3e38], np.float32)
    for name in ("gammainc", "gammaincc"):
        assert_same(getattr(special, name)(ours(a), ours(x)), ours(getattr(scipy.special, name)(a, x)), 4)
    # The term of the argument that is fixed must not make its derivative NaN.
    huge = np.float32(3e38)
    for name in ("xlogy", "rel_entr", "betaln"):
        for case in ((huge, np.float32(0.5)), (np.float32(2), huge)):
            got, expected = [p.grad(getattr(p.scipy.special, name))(*case) for p in (xtrace, jax)]
            assert_same(got, expected, 64, f"{name}{case}", floor=1.0)


def test_zeta_by_its_exponent():
    x = np.array([-1, 0, 0.5, 1, 1.0001, 1.5, 2, 3, 10, 100, 2, 2, 2, np.nan], np.float32)
    q = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100, 0.001, -0.5, 1], np.float32)

    def slopes(package, x, q):
        return [package.vmap(package.grad(package.scipy.special.zeta, i))(x, q) for i in (0, 1)]

    assert_same(slopes(xtrace, ours(x), ours(q)), slopes(jax, theirs(x), theirs(q)), 4096)
    with xtrace.enable_x64(True):
        # zeta'(2), zeta''(2)
        assert abs(float(xtrace.grad(special.zeta)(2.0)) + 0.9375482543158438) < 1e-14
        assert abs(float(xtrace.grad(xtrace.grad(special.zeta))(2.0)) - 1.9892802342989010) < 1e-13


def test_limits_of_derivatives():
    """At 0, where the formulas would give NaN."""
    for function, x, y, expected in (
        (special.xlogy, 0.0, 2.0, math.log(2)), (special.xlog1py, 0.0, 1.0, math.log(2)),
        (special.rel_entr, 1.0, 1.0, 1.0),
    ):
        assert float(xtrace.grad(function)(x, y)) == pytest.approx(expected, rel=1e-6)
    assert float(xtrace.grad(special.xlogy, 1)(0.0, 3.0)) == 0.0
    assert np.isfinite(float(xtrace.grad(special.log_ndtr)(-200.0)))
    assert float(xtrace.grad(special.ndtri)(0.5)) == pytest.approx(math.sqrt(2 * math.pi), rel=1e-6)


def test_types():
    integers = np.array([1, 2], np.int32)
    halves = np.array([0.5, 0.25], np.float16)

    def case(library, api, i, h):
        one = [getattr(library, n)(i) for n in ("erf", "expit", "gammaln", "gamma", "entr", "logit", "i0", "factorial")]
        two = [getattr(library, n)(i, h) for n in BINARY if n != "zeta"]
        weak = [library.erf(2.0), library.xlogy(2.0, 1), library.betaln(1, 2), library.entr(2), library.logit(0.5)]
        orders = [library.polygamma(n, h.astype("float32")) for n in (0, 1, 3, i)]
        sums = [library.multigammaln(h + 3, 3), library.multigammaln(5.0, 2)]
        return one, two, weak, orders, sums, library.logsumexp(h), library.betainc(i, h, 0.25)

    # float16 has 10 bits of mantissa, and products of a few functions of size 10 lose 4 of them.
    check(case, [integers, halves], 64)


def test_eager_and_keywords():
    x = jnp.array([0.25, 0.5])
    other = theirs(np.asarray(x))
    assert_same(special.gammainc(a=x, x=x), jax.scipy.special.gammainc(other, other), 64)
    assert_same(special.comb(5, 2), jax.scipy.special.comb(5, 2), 64)
    assert_same(special.comb(N=5.0, k=x, repetition=True),
                jax.scipy.special.comb(5.0, theirs(np.asarray(x)), repetition=True), 64)
    assert_same(special.log_ndtr(x, series_order=5), jax.scipy.special.log_ndtr(theirs(np.asarray(x)), 5), 32)
    assert float(special.comb(0, 0, repetition=True)) == 1.0


def test_against_exact_values():
    normal = statistics.NormalDist()
    for p in (1e-30, 1e-10, 1e-4, 0.02, 0.3, 0.5, 0.9, 0.999):
        assert float(special.ndtri(F32(p))) == pytest.approx(normal.inv_cdf(float(F32(p))), rel=16 * 2.0**-23)
    with xtrace.enable_x64(True):
        for p in (1e-300, 1e-30, 1e-4, 0.02, 0.3, 0.9):
            assert float(special.ndtri(p)) == pytest.approx(normal.inv_cdf(p), rel=16 * 2.0**-52)
        for a, b in ((0.5, 100.0), (10.0, 12.0), (1e-3, 50.0), (3.0, 1e6)):
            expected = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
            assert float(special.betaln(a, b)) == pytest.approx(expected, rel=1e-9)
    numbers = np.asarray(special.bernoulli(12))
    assert numbers[12] == F32(fractions.Fraction(-691, 2730)) and numbers[1] == -0.5 and not numbers[3:12:2].any()
    assert float(special.zeta(2.0)) == pytest.approx(math.pi**2 / 6, rel=8 * 2.0**-23)


def test_errors():
    z = jnp.ones(2, "complex64")
    for name in ("entr", "gammasgn"):
        with pytest.raises(ValueError, match=f"{name} does not support complex-valued inputs"):
            getattr(special, name)(z)
    for name in ("beta", "kl_div", "rel_entr", "poch"):
        with pytest.raises(ValueError, match=f"{name} does not support complex-valued inputs"):
            getattr(special, name)(z, 1.0)
    for name in ("erf", "gammaln", "digamma", "i0"):
        with pytest.raises(TypeError, match="complex64"):
            getattr(special, name)(z)
    for name in ("ndtr", "ndtri", "log_ndtr"):
        with pytest.raises(TypeError, match=f"{name}: dtype int32 is not supported"):
            getattr(special, name)(jnp.arange(2))
    with pytest.raises(ValueError, match="series_order must be from 0 to 30, got 31"):
        special.log_ndtr(1.0, 31)
    with pytest.raises(ValueError, match="`n` to polygamma must be of integer type"):
        special.polygamma(1.0, 2.0)
    with pytest.raises(ValueError, match="xlogy: Incompatible shapes"):
        special.xlogy(jnp.ones(2), jnp.ones(3))
    with pytest.raises(TypeError, match="betaln requires ndarray or scalar"):
        special.betaln([1.0], 2.0)
    with pytest.raises(NotImplementedError, match="exact=True"):
        special.factorial(3, exact=True)
    with pytest.raises(TypeError, match="multigammaln: d must be an integer"):
        special.multigammaln(3.0, 1.5)
    with pytest.raises(ValueError, match="non-negative"):
        special.bernoulli(-1)


def test_programs_of_multigammaln_are_as_long_for_every_dimension():
    programs = [xtrace.make_jaxpr(lambda a, d=d: special.multigammaln(a, d))(99.0) for d in (3, 40)]
    assert len({len(program.eqns) for program in programs}) == 1


@pytest.mark.parametrize("name", ["ndtr", "log_ndtr", "hyp1f1", "hyp2f1", "expn", "spence"])
def test_lists_are_operands(name):
    operands = {"hyp1f1": ([1.0, 2.0], 3.0, (0.5, 1.0)), "hyp2f1": (1.0, 1.5, [2.0, 3.0], 0.5), "expn": ([1, 2], 0.5)}
    values = operands.get(name, ([1.0, 2.0],))
    # jax 0.12 refuses lists for some of them.
    expected = getattr(jax.scipy.special, name)(*map(np.asarray, values))
    np.testing.assert_allclose(getattr(special, name)(*values), expected, rtol=1e-5)


@pytest.mark.parametrize("call", [
    lambda x: special.comb(x, 2.0), lambda x: special.factorial(x),
    lambda x: special.multigammaln(x, 2),
])
def test_errors_show_the_argument_that_was_given(call):
    with pytest.raises(TypeError, match=r"\[4\.0\]"):
        call([4.0])
