"""First and second derivatives where functions have kinks, guards and limits: as in jax, or right where jax is not."""

import math

import jax
import jax.nn
import jax.scipy.special
import numpy as np
import pytest

import xtrace
import xtrace.lax
import xtrace.nn
import xtrace.numpy
import xtrace.scipy.special
from tests.support.operands import assert_close, epsilon

INF = math.inf
# A function of a scalar, written with a library `j`, and the points to look at.
CASES = {
    "j.numpy.sinc(x)": [0.0, 1.0], "j.nn.softplus(x)": [0.0, 100.0, -100.0], "j.lax.bessel_i0e(x)": [0.0],
    "j.numpy.sqrt(x)": [0.0], "j.numpy.cbrt(x)": [0.0], "j.numpy.abs(x)": [0.0], "j.numpy.sign(x)": [0.0],
    "j.nn.relu(x)": [0.0], "j.nn.elu(x)": [0.0], "j.nn.gelu(x)": [0.0, 50.0], "j.nn.silu(x)": [0.0, -200.0],
    "j.nn.log_sigmoid(x)": [0.0, 100.0], "x**0": [0.0], "x**1": [0.0], "x**2": [0.0], "x**2.0": [0.0, -1.0],
    "x**0.5": [0.0], "0.0**x": [0.0, 1.0], "x**x": [0.0, 1.0], "j.scipy.special.xlogy(x, x)": [0.0, 1.0],
    "j.scipy.special.xlogy(0.0, x)": [0.0, 1.0], "j.scipy.special.xlog1py(0.0, x)": [-1.0],
    "j.scipy.special.entr(x)": [0.0, 1.0], "j.scipy.special.logit(x)": [0.0, 0.5],
    "j.numpy.logaddexp(x, 0.0)": [0.0, -INF, INF], "j.numpy.logaddexp(0.0, x)": [0.0, -INF, INF],
    "j.numpy.logaddexp(x, x)": [0.0, INF], "j.numpy.logaddexp2(x, 0.0)": [0.0, -INF, INF],
    "j.numpy.hypot(x, 0.0)": [0.0, 1.0], "j.numpy.hypot(x, x)": [0.0], "j.numpy.arctan2(x, 0.0)": [0.0, 1.0],
    "j.numpy.arctan2(0.0, x)": [0.0, -1.0], "j.numpy.std(x * j.numpy.ones(3))": [0.0, 1.0],
    "j.numpy.linalg.norm(x * j.numpy.ones(3))": [0.0, 1.0], "j.numpy.linalg.norm(x * j.numpy.ones(3), 1)": [0.0],
    "j.nn.logsumexp(j.numpy.stack([x, x]))": [0.0, -INF], "j.nn.softmax(j.numpy.stack([x, x * 0 + 1]))[0]": [0.0, -INF],
    "j.lax.cumlogsumexp(j.numpy.stack([x, x, x * 2]))[2]": [0.0, -INF],
    "j.numpy.prod(j.numpy.stack([x, x, x + 1]))": [0.0], "j.numpy.cumprod(j.numpy.stack([x, x, x]))[2]": [0.0],
    "j.numpy.maximum(x, 0.0)": [0.0], "j.numpy.max(j.numpy.stack([x, x]))": [0.0],
    "j.numpy.clip(x, 0.0, 1.0)": [0.0, 1.0],
    "j.numpy.mod(x, 1.0)": [0.0, 1.0], "j.numpy.arcsin(x)": [0.0, 1.0], "j.numpy.arccosh(x)": [1.0],
    "j.numpy.log(x)": [0.0], "j.numpy.tanh(x)": [0.0, 100.0], "j.lax.lgamma(x)": [1.0, 0.0],
    "j.lax.erf_inv(x)": [0.0, 1.0],
    "j.numpy.abs(j.lax.complex(x, x))": [0.0, 1.0], "j.numpy.angle(j.lax.complex(x, x * 0))": [0.0, 1.0],
    "j.numpy.real(j.numpy.sqrt(j.lax.complex(x, x * 0)))": [0.0, 1.0], "j.numpy.real(j.lax.complex(x, x) ** 2)": [0.0],
    "j.numpy.where(x > 0, j.numpy.sqrt(x), 0.0)": [0.0], "j.numpy.copysign(x, -1.0)": [0.0], "x / x": [0.0, 1.0],
    "j.numpy.nan_to_num(x)": [1.0, INF], "j.numpy.linalg.det(x * j.numpy.ones((2, 2)))": [0.0, 1.0],
}


def derivatives(library, text):
    """The value, two derivatives in reverse mode, and the second in forward mode, at the points of a case."""

    def function(x):
        return eval(text, {"j": library, "x": x})

    def moved(f):
        return lambda x: library.jvp(f, (x,), (library.numpy.ones_like(x),))[1]

    all_of_them = (function, library.grad(function), library.grad(library.grad(function)), moved(moved(function)))
    return library.jit(lambda xs: [library.vmap(f)(xs) for f in all_of_them])(np.asarray(CASES[text], np.float32))


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", CASES)
def test_derivatives_are_those_of_jax(text):
    found = derivatives(xtrace, text), derivatives(jax, text)
    for which, got, expected in zip(("value", "first", "second", "forward"), *found, strict=True):
        # Second derivatives of quotients are sums of a few terms of the first one's size.
        assert_close(np.asarray(got), np.asarray(expected), 64, f"{text}: {which}")


@pytest.mark.parametrize(
    "function, expected",
    [
        # log(e^x + e^y): the shares are 1/2, and share times (1 - share) is 1/4, with the sign of the other variable.
        (xtrace.numpy.logaddexp, 0.25), (xtrace.numpy.logaddexp2, math.log(2) / 4),
    ],
)
def test_sums_of_exponentials_of_equal_arguments(function, expected):
    hessian = xtrace.hessian(lambda v: function(v[0], v[1]))(np.full(2, 1.5, np.float32))
    np.testing.assert_allclose(hessian, expected * np.array([[1, -1], [-1, 1]]), rtol=4 * epsilon(np.float32))


def test_higher_derivatives_of_sinc_at_0():
    # The coefficients of its power series, times factorials: (-1)^k π^2k / (2k + 1) for the order 2k.
    function, found = xtrace.numpy.sinc, []
    for _ in range(6):
        found.append(float(function(np.float32(0))))
        function = xtrace.grad(function)
    pi = math.pi
    np.testing.assert_allclose(found, [1, 0, -(pi**2) / 3, 0, pi**4 / 5, 0], rtol=4 * epsilon(np.float32))


def test_where_jax_is_wrong():
    # Of the Bessel function I0 the second derivative at 0 is 1/2; jax gives 0.
    assert float(xtrace.grad(xtrace.grad(xtrace.numpy.i0))(0.0)) == pytest.approx(0.5)
