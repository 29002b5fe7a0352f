"""Hypergeometric functions against jax and, in double precision, scipy and closed forms."""

import jax
import jax.scipy.special
import numpy as np
import pytest
import scipy.special

import xtrace
import xtrace.numpy as jnp
import xtrace.scipy.special as special
from tests.support.operands import assert_close, assert_same, ours, theirs

A = np.array([0.5, 1.0, 2.5, 4.0, 0.0, 3.0])
B = np.array([1.5, 2.0, 0.5, 3.0, 0.75, 1.0])
C = np.array([2.5, 3.0, 1.25, 4.5, 2.0, 3.5])
INSIDE = np.array([0.1, 0.45, 0.7, 0.3, 0.5, 0.6])


@pytest.mark.slow
def test_values_and_slopes_are_those_of_jax():
    """In one program; jax's 2F1 is exact to some hundred spacings."""
    given = [x.astype(np.float32) for x in (A, B, C, INSIDE)]

    def case(library, api, a, b, c, x):
        one, other = library.hyp1f1(a, b, 4 * x), library.hyp2f1(a, b, c, x)
        smooth = [v[:4] for v in (a, b, c, x)]
        slopes = api.grad(lambda *p: library.hyp1f1(p[0], p[1], p[3]).sum(), (0, 1, 3))(*smooth)
        return one, other, slopes, api.grad(lambda *p: library.hyp2f1(*p).sum(), (0, 1, 2, 3))(*smooth)

    expected = jax.jit(lambda *a: case(jax.scipy.special, jax, *a))(*map(theirs, given))
    assert_same(xtrace.jit(lambda *a: case(special, xtrace, *a))(*map(ours, given)), expected, 256)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(dtype):
    a, b, c = (np.repeat(x, 6).astype(dtype) for x in (A, B, C))
    with xtrace.enable_x64(dtype is np.float64):
        x = np.tile([-30.0, -1.5, 0.0, 0.25, 6.0, 40.0], 6).astype(dtype)
        found = np.asarray(special.hyp1f1(ours(a), ours(b), ours(x)))
        # exp(x) loses what x is, and terms cancel a little for negative b - a.
        assert_close(found, scipy.special.hyp1f1(*(v.astype(float) for v in (a, b, x))).astype(dtype), 256, "hyp1f1")
        x = np.tile([-30.0, -0.7, 0.4, 0.75, 0.9375, 0.984375], 6).astype(dtype)
        found = np.asarray(special.hyp2f1(ours(a), ours(b), ours(c), ours(x)))
        wanted = scipy.special.hyp2f1(*(v.astype(float) for v in (a, b, c, x))).astype(dtype)
        assert_close(found, wanted, 256, "hyp2f1")


def test_special_cases():
    with xtrace.enable_x64(True):
        x = 1 - 2.0 ** -np.arange(2.0, 40.0, 6)
        assert_close(np.asarray(special.hyp2f1(1.0, 1.0, 2.0, ours(x))), -np.log1p(-x) / x, 64, "a logarithm")
        assert_close(np.asarray(special.hyp2f1(-2.5, 1.0, 1.0, ours(x))), (1 - x) ** 2.5, 64, "a power", 1.0)
        assert_close(np.asarray(special.hyp1f1(2.0, 2.0, ours(-30 * x))), np.exp(-30 * x), 64, "an exponential")
        cases = np.array(
            [
                (1, 2, 4.5, 1),
                (1, 2, 3, 1),
                (0, 0, 0, 0.5),
                (-2, 1.5, 0.5, 0.75),
                (1, 2, 3, 1.5),
                (0.45, 0.7, 0.45, 1.5),
                (1, 3, 1, 3),
            ],
            float,
        )
        wanted = np.array([7 / 3, np.inf, 1, 1 - 6 * 0.75 + 5 * 0.75**2, np.inf, np.inf, -0.125])
        assert_close(np.asarray(special.hyp2f1(*map(ours, cases.T))), wanted, 64, "ends of the domain")
        assert float(special.hyp1f1(0.0, 0.0, 2.0)) == 1
        # The derivative with respect to a parameter for which the series ends.
        wanted = (scipy.special.hyp1f1(-2 + 1e-6, 1.5, 3.0) - scipy.special.hyp1f1(-2 - 1e-6, 1.5, 3.0)) / 2e-6
        assert float(xtrace.grad(special.hyp1f1)(-2.0, 1.5, 3.0)) == pytest.approx(wanted, rel=1e-7)
    second = float(xtrace.grad(xtrace.grad(special.hyp1f1, 2), 2)(1.0, 2.0, 0.5))
    assert second == pytest.approx(float(scipy.special.hyp1f1(3, 4, 0.5)) / 3, rel=1e-6)
    mapped = xtrace.vmap(special.hyp1f1, (0, None, None))(jnp.arange(3.0), 1.5, 0.5)
    assert_close(np.asarray(mapped), scipy.special.hyp1f1(np.arange(3), 1.5, 0.5).astype(np.float32), 8, "vmap")
    assert special.hyp1f1(1, np.float16(0.5), np.float16(0.25)).dtype == np.float16


# Parameters of both signs and large arguments, where series cancel, with values to 40 digits by mpmath.
HARD = {
    "hyp1f1": [
        (-30.5, 1, 50, -7362509536.648131), (-30.5, 0.3, -50, 3.465825265986848e25),
        (-10, 2.5, 5, 0.1008668320874668), (-10, -30.5, 0.9, 1.3392082807285175),
        (-30.5, -30.5, -5, 0.006737946999085467), (2.5, -30.5, 0.5, 0.9602007996108722),
        (40, -30.5, 5, -66574398153724.73), (40, 0.3, -5, -0.23523330116254995), (-3, -10, 5, 3.5069444444444446),
        (40, 2.5, 50, 2.028169536265057e47), (0.5, 1.5, -1000, 0.028024956081989644),
        (2.5, 1, -300, 2.772190855581267e-07), (1, -2, 3, np.inf), (-3, 0, 0, 1), (1, 2, np.nan, np.nan),
    ],
    "hyp2f1": [
        (-30.5, 2.5, 1, 0.9, 0.00011704250391845186), (-30.5, -30.5, 0.3, 0.99, 4.069202489243085e18),
        (-10, 0.3, 0.3, 0.9, 9.999999999999978e-11), (-3, -30.5, -30.5, 0.99, 1.0000000000000027e-06),
        (10, 2.5, -0.5, 0.5, -5016576.0), (40, 0.3, 1, -5, 0.1580272732109807),
        (-0.5, 40, 2.5, -50, 29.647213352782703), (2.5, 1, 40, 0.99, 1.0677414530611584),
        (1, 2, 3, -1e6, 1.999972368976884e-06), (10, 1, 2.5, 0.99, 5219326327130290.0),
        (1, 10, -30.5, 0.9, -3.508722627639854e50), (-30.5, 1, 2.5, 0.5, 0.09221126317472138),
        (1, 2, -2, 0.5, np.inf), (2, 40, 0.5, 1, np.inf), (2, 3, -0.5, 1, -np.inf), (1, 1, 1, 2, -1),
        (1, 1, 2, np.nan, np.nan),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_parameters_for_which_terms_cancel(name):
    *given, wanted = np.array(HARD[name], float).T
    with xtrace.enable_x64(True):
        found = np.asarray(xtrace.jit(getattr(special, name))(*map(ours, given)))
    # Values near a zero, or that Taylor steps of growing solutions lead to, lose up to three digits.
    assert_close(found, wanted, 1024, name)


@pytest.mark.slow
def test_second_derivatives_by_parameters():
    """In reverse mode, which jax does not have; values by mpmath."""
    with xtrace.enable_x64(True):
        mixed = xtrace.jit(xtrace.grad(xtrace.grad(special.hyp1f1, 0), 1))(-2.0, 2.5, 3.0)
        assert float(mixed) == pytest.approx(0.3272853880234259, rel=1e-13)


def test_errors():
    for name, count in (("hyp1f1", 3), ("hyp2f1", 4)):
        function = getattr(special, name)
        with pytest.raises(ValueError, match=f"{name} does not support complex-valued inputs; argument 1"):
            function(1.0, 1j, *[1.0] * (count - 2))
        with pytest.raises(ValueError, match=f"{name}: Incompatible shapes"):
            function(jnp.ones(2), jnp.ones(3), *[1.0] * (count - 2))
        with pytest.raises(TypeError, match=f"{name} requires ndarray or scalar"):
            function(*[1.0] * (count - 1), {})
