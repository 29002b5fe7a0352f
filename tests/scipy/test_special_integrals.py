"""Error functions, integrals, Bessel functions and spherical harmonics against jax and, in double precision, scipy."""

import jax
import jax.scipy.special
import numpy as np
import pytest
import scipy.special

import xtrace
import xtrace.numpy as jnp
import xtrace.scipy.special as special
from tests.support.operands import assert_close, assert_same, ours, theirs
from tests.support.rules import check_rules
from xtrace._src.core import dtypes

pytestmark = pytest.mark.thorough

AROUND = np.array([-30.0, -5.5, -4.2, -3.0, -1.7, -1.0, -0.3, 0.1, 0.37, 0.49, 0.51, 1.0, 1.55, 2.5, 3.9, 4.1, 6.0, 7.5,
                   13.0, 39.0, 41.0, 80.0])
ABOVE = AROUND[AROUND > 0]
FRESNEL = AROUND[abs(AROUND) < 14]
UNARY = {
    "dawsn": AROUND, "erfcx": AROUND[AROUND > -9], "exp1": ABOVE, "expi": AROUND, "fresnel": FRESNEL, "sici": AROUND,
    "spence": ABOVE,
}
# The derivatives, of the argument and the value.
SLOPES = {
    "dawsn": lambda x, y: 1 - 2 * x * y, "erfcx": lambda x, y: 2 * x * y - 2 / np.sqrt(np.pi),
    "exp1": lambda x, y: -np.exp(-x) / x, "expi": lambda x, y: np.exp(x) / x,
    "fresnel": lambda x, y: (np.sin(np.pi * x**2 / 2), np.cos(np.pi * x**2 / 2)),
    "sici": lambda x, y: (np.sin(x) / x, np.cos(x) / x),
    "spence": lambda x, y: np.log(x) / (1 - x),
}
EDGES = np.array([-np.inf, -1e30, -0.0, 0.0, 1e-30, 1e30, np.inf, np.nan])
COMPLEX = np.array([0.3 + 0.4j, -2 + 1e-3j, 1 - 2j, -1.5 - 0.5j, 6 + 0.1j, 20 + 5j, 4.5, -3.25 + 2j, 0.1j, 1.9 + 0.01j])
# Functions of size 1 with zeros: their errors are relative to 1 close to these.
CANCELLED = {"fresnel": 8.0, "dawsn": 1.0, "erfcx": 1.0}
FLOOR = {"sici": 1.0, "expi": 0.1, "spence": 0.1}


def test_values_are_those_of_jax():
    points = {n: x[abs(x) < 50].astype(np.float32) for n, x in UNARY.items()}

    def every(library, given):
        return {n: getattr(library, n)(x) for n, x in given.items()}

    expected = jax.jit(lambda given: every(jax.scipy.special, given))({n: theirs(x) for n, x in points.items()})
    found = xtrace.jit(lambda given: every(special, given))({n: ours(x) for n, x in points.items()})
    # jax's Fresnel integrals and its E1 are exact to 1e-6 only.
    assert_same(found, expected, 64, floor=0.25)


@pytest.mark.parametrize("dtype", [np.float16, dtypes.bfloat16])
def test_narrow_dtypes_are_computed_in_float32(dtype):
    points = {n: x[abs(x) < 3].astype(dtype) for n, x in UNARY.items() if n != "spence"}
    found = xtrace.jit(lambda given: {n: getattr(special, n)(x) for n, x in given.items()})(
        {n: ours(x) for n, x in points.items()}
    )
    for name, x in points.items():
        wanted = np.asarray(getattr(scipy.special, name)(x.astype(np.float32))).astype(dtype)
        assert_close(np.asarray(found[name]), wanted, 1, name)


@pytest.mark.parametrize("name", UNARY)
def test_values_and_slopes_in_double_precision(name):
    x = UNARY[name][UNARY[name] != 1]
    with xtrace.enable_x64(True):
        found, moved = xtrace.jvp(getattr(special, name), (ours(x),), (jnp.ones(len(x)),))
    wanted = np.asarray(getattr(scipy.special, name)(x))
    # scipy itself is off by a hundred spacings in Ei.
    assert_close(np.asarray(found), wanted, 160 if name == "expi" else 16, name, FLOOR.get(name, 0.0))
    slopes = np.asarray(SLOPES[name](x, wanted))
    # Differences, and arguments up to 300 of the sine, lose what they are.
    assert_close(np.asarray(moved), slopes, 64, f"slope of {name}", CANCELLED.get(name, 0.0))


@pytest.mark.parametrize("name", UNARY)
def test_ends_of_the_domain(name):
    """Infinities, zeros and NaN; scipy has NaN where Spence's function is -inf."""
    x = EDGES[:-2] if name == "spence" else EDGES
    with xtrace.enable_x64(True):
        found = np.asarray(getattr(special, name)(ours(x)))
    with np.errstate(all="ignore"):
        assert_close(found, np.asarray(getattr(scipy.special, name)(x)), 16, name)


def test_exponential_integrals_of_any_order():
    n, x = np.meshgrid([0, 1, 2, 3, 7, 50, 6000], [0.0, 1e-10, 0.2, 0.5, 0.55, 1.0, 3.0, 40.0, np.inf, np.nan])
    with xtrace.enable_x64(True):
        found = np.asarray(special.expn(ours(n.astype(np.int32)), ours(x)))
        assert_close(found, scipy.special.expn(n, x), 32, "expn")
        assert np.isnan(np.asarray(special.expn(np.array([-1, 2]), np.array([1.0, -1.0])))).all()
        slopes = xtrace.vmap(xtrace.grad(special.expn, 1), (0, None))(jnp.arange(4.0), 0.75)
        below = np.append(-np.exp(-0.75) * (1 / 0.75 + 1 / 0.75**2), -scipy.special.expn(np.arange(3), 0.75))
        assert_close(np.asarray(slopes), below, 32, "slope of expn")
    assert float(xtrace.grad(special.expn)(2.0, 0.5)) == 0
    found = special.expn(np.int32([2, 3]), np.float32([[1.0], [0.25]]))
    assert_close(np.asarray(found), scipy.special.expn([2, 3], [[1.0], [0.25]]).astype(np.float32), 32, "float32")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_complex_numbers(dtype):
    complex_dtype = np.result_type(dtype, np.complex64)
    z = COMPLEX.astype(complex_dtype)
    wide = z.astype(np.complex128)
    with xtrace.enable_x64(dtype is np.float64):
        for name in ("wofz", "erfcx", "loggamma", "gamma"):
            found = np.asarray(getattr(special, name)(ours(z)))
            # exp(-z²) loses what |z|² is.
            assert_close(found, getattr(scipy.special, name)(wide).astype(complex_dtype), 64, name)
        slope = np.asarray(xtrace.vmap(xtrace.grad(special.loggamma, holomorphic=True))(ours(z)))
        assert_close(slope, scipy.special.digamma(wide).astype(complex_dtype), 256, "digamma")
        real = np.array([-3.0, 0.0, 0.5, 20.0], dtype)
        assert_close(np.asarray(special.wofz(ours(real))), scipy.special.wofz(real.astype(float)).astype(complex_dtype),
                     16, "wofz of real numbers")
        assert np.isnan(np.asarray(special.loggamma(np.array([0, -1, -2], complex_dtype))).real).all()


def test_types_are_those_of_jax():
    z = COMPLEX[[0, 2, 3]].astype(np.complex64)

    def case(library, z, number):
        of_complex = [library.wofz(z), library.erfcx(z), library.loggamma(z), library.gamma(z)]
        return of_complex, library.dawsn(number), library.wofz(number), library.owens_t(number, 0.5)

    for x in (1, np.float16(0.5)):
        expected = jax.jit(lambda z, x=x: case(jax.scipy.special, z, x))(theirs(z))
        assert_same(xtrace.jit(lambda z, x=x: case(special, z, x))(ours(z)), expected, 256)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_owens_t(dtype):
    h, a = np.meshgrid([0.0, 1e-3, 0.5, 1.0, 3.0, -6.0, np.inf], [0.0, 0.1, 0.9, 1.0, 1.1, 20.0, -2.0, np.inf, np.nan])
    h, a = h.astype(dtype), a.astype(dtype)
    with xtrace.enable_x64(dtype is np.float64):
        found = np.asarray(special.owens_t(ours(h), ours(a)))
    # erfc(x) loses what x² is.
    assert_close(found, scipy.special.owens_t(h.astype(float), a.astype(float)).astype(dtype), 64, "owens_t")


def test_bessel_functions():
    z = np.linspace(-20, 20, 9)
    with xtrace.enable_x64(True):
        found = np.asarray(special.bessel_jn(ours(z), v=4))
        slopes = np.asarray(xtrace.jvp(lambda x: special.bessel_jn(x, v=4), (ours(z),), (jnp.ones(9),))[1])
        pulled = xtrace.vmap(xtrace.grad(lambda x: special.bessel_jn(x, v=2)[0]))(ours(z))
    orders = np.arange(5)[:, None]
    assert_close(found, scipy.special.jv(orders, z), 32, "bessel_jn", 0.25)
    assert_close(slopes, scipy.special.jvp(orders, z), 64, "its derivative", 0.25)
    assert_close(np.asarray(pulled), -scipy.special.j1(z), 64, "J(0)' is -J(1)", 0.25)
    few = np.float32([0.5, 2.0, -3.0])
    # With few iterations the values are as inexact as jax's.
    for count in (5, 6):
        assert_same(special.bessel_jn(ours(few), v=2, n_iter=count),
                    jax.scipy.special.bessel_jn(theirs(few), v=2, n_iter=count), 16)
    assert np.asarray(special.bessel_jn(0.0, v=2)).tolist() == [1, 0, 0]


def test_spherical_harmonics():
    n, m = (np.array(x, np.int32) for x in ([0, 1, 1, 2, 3, 5, 8], [0, 0, 1, -2, 3, -4, 1]))
    theta, phi = np.linspace(0.1, 3, 7, dtype=np.float32), np.linspace(0, 6, 7, dtype=np.float32)

    def case(library, *operands):
        return library.sph_harm_y(*operands, n_max=8)

    expected = jax.jit(lambda *a: case(jax.scipy.special, *a))(*map(theirs, (n, m, theta, phi)))
    assert_same(xtrace.jit(lambda *a: case(special, *a))(*map(ours, (n, m, theta, phi))), expected, 64)
    assert_same(special.sph_harm_y(*map(ours, (n, m, theta, phi))), expected, 64)
    with xtrace.enable_x64(True):
        angles = theta.astype(float), phi.astype(float)
        found = np.asarray(special.sph_harm_y(n[:, None], m[:, None], *angles))
        assert_close(found, scipy.special.sph_harm_y(n[:, None], m[:, None], *angles), 64, "sph_harm_y", 0.25)

        def real_part(theta, phi):
            return special.sph_harm_y(jnp.int32(3), jnp.int32(2), theta, phi).real

        slopes = xtrace.grad(real_part, (0, 1))(0.7, 0.4)
        _, wanted = scipy.special.sph_harm_y(3, 2, 0.7, 0.4, diff_n=1)
        assert_close(np.asarray(slopes), wanted.real, 64, "its derivatives")
    # Beyond the sphere's half circle the sine counts by its size, as in jax and scipy.
    turned = np.array([-4, -1, -0.5, 3.5, 4, 6, 7], np.float32)
    for degree, order in ((1, 1), (2, -1), (3, 3), (4, 2)):
        orders = np.full(7, degree, np.int32), np.full(7, order, np.int32)
        expected = jax.scipy.special.sph_harm_y(*map(theirs, (*orders, turned, phi)))
        assert_same(special.sph_harm_y(*map(ours, (*orders, turned, phi))), expected, 64, floor=1.0)
    one = np.array([2], np.int32)
    assert complex(special.sph_harm_y(one, one + 1, theta[:1], phi[:1])[0]) == 0


@pytest.mark.slow
def test_rules():
    """One program of all, as each takes seconds to compile; jax's second derivatives of the others fail."""

    def function(lax, x):
        library = special if lax.__name__.startswith("xtrace") else jax.scipy.special
        return library.dawsn(x) * library.spence(x) * library.owens_t(x, 2 * x)

    check_rules(function, np.float32([0.3, 0.8, 2.5]), rounding=128)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fresnel", "sici"])
def test_rules_of_pairs(name):
    def function(lax, x):
        one, other = getattr(special if lax.__name__.startswith("xtrace") else jax.scipy.special, name)(x)
        return one * other

    check_rules(function, np.float32([0.3, 0.8, 2.5]), rounding=128)


def test_slope_of_exp1():
    """jax 0.10 has no second derivative of it, nor one of Spence's function at 1."""
    assert float(xtrace.grad(special.exp1)(0.7)) == pytest.approx(-np.exp(-0.7) / 0.7, rel=1e-6)
    second = float(xtrace.grad(xtrace.grad(special.exp1))(0.7))
    assert second == pytest.approx(np.exp(-0.7) * (1 / 0.7 + 1 / 0.49), rel=1e-6)
    assert float(xtrace.grad(special.spence)(1.0)) == -1
    slope = xtrace.grad(special.wofz, holomorphic=True)(0.3 + 0.4j)
    assert complex(slope) == pytest.approx(complex(jax.grad(jax.scipy.special.wofz, holomorphic=True)(0.3 + 0.4j)))
    assert complex(xtrace.jvp(special.wofz, (0.5,), (1.0,))[1]) == pytest.approx(-0.77880078 + 0.64945399j, rel=1e-6)


def test_errors():
    z = jnp.ones(2, "complex64")
    for name in ("dawsn", "exp1", "expi", "sici"):
        with pytest.raises(ValueError, match=f"{name} does not support complex-valued inputs"):
            getattr(special, name)(z)
        with pytest.raises(TypeError, match=f"{name} requires ndarray or scalar"):
            getattr(special, name)([1.0])
    for name in ("expn", "owens_t"):
        with pytest.raises(ValueError, match=f"{name} does not support complex-valued inputs; argument 1"):
            getattr(special, name)(1.0, z)
        with pytest.raises((TypeError, ValueError), match=f"{name}: Incompatible shapes"):
            getattr(special, name)(jnp.ones(2), jnp.ones(3))
    with pytest.raises(NotImplementedError, match="fresnel does not support complex-valued"):
        special.fresnel(z)
    with pytest.raises(TypeError, match="spence: dtype int32 is not supported"):
        special.spence(jnp.arange(2))
    with pytest.raises(TypeError, match="integer"):
        special.bessel_jn(1.0, v=2.5)
    with pytest.raises(ValueError, match="must not be negative, got v=-1"):
        special.bessel_jn(1.0, v=-1)
    n, angle = jnp.arange(2), jnp.ones(2)
    with pytest.raises(NotImplementedError, match="diff_n"):
        special.sph_harm_y(n, n, angle, angle, diff_n=1)
    with pytest.raises(TypeError, match="sph_harm_y: m must be of integer type, got float32"):
        special.sph_harm_y(n, angle, angle, angle)
    with pytest.raises(TypeError, match="angles must be float32 or float64, got float16"):
        special.sph_harm_y(n, n, angle.astype("float16"), angle.astype("float16"))
    with pytest.raises(xtrace.errors.ConcretizationTypeError, match="give n_max"):
        xtrace.jit(special.sph_harm_y)(n, n, angle, angle)
