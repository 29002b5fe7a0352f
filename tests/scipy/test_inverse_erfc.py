"""`scipy.special.erfcinv`, which newer jax added, compared with SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import xtrace
from tests.support.operands import epsilon, ours
from xtrace.scipy.special import erfcinv


def places(dtype):
    tiny, eps = float(np.finfo(dtype).tiny), float(np.finfo(dtype).eps)
    low, high = np.geomspace(2 * tiny, 1, 200), 2 - np.geomspace(2 * eps, 1, 200)
    return np.concatenate([low, high, np.linspace(0.8, 1.2, 101)]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_those_of_scipy(dtype):
    with xtrace.enable_x64(dtype == np.float64):
        y = places(dtype)
        # Two quotients of polynomials of degree seven, a logarithm and a root.
        np.testing.assert_allclose(erfcinv(ours(y)), scipy.special.erfcinv(y.astype(np.float64)), 16 * epsilon(dtype))


def test_ends_of_the_domain():
    y = np.array([0, 2, 1, -0.5, 2.5, np.nan, np.inf, -np.inf], np.float32)
    nan = np.nan
    np.testing.assert_array_equal(erfcinv(y), [np.inf, -np.inf, 0, nan, nan, nan, nan, nan])
    assert not np.signbit(erfcinv(1.0))
    slopes = xtrace.vmap(xtrace.grad(erfcinv))(y)
    np.testing.assert_allclose(slopes, [-np.inf, -np.inf, -math.sqrt(math.pi) / 2, nan, nan, nan, nan, nan], 1e-6)


def test_types():
    for given, dtype in ((1, "float32"), (0.5, "float32"), (np.float16(0.5), "float16"), (np.int8(1), "float32")):
        assert erfcinv(given).dtype == dtype
    np.testing.assert_allclose(float(erfcinv(np.float16(0.5))), 0.4769, 1e-3)


def test_derivatives():
    y = places(np.float32)
    with xtrace.enable_x64(True):
        wide = y.astype(np.float64)
        size = scipy.special.erfcinv(wide)
        # x is one rounding away in erfcx, whose slope is below 2 there; the tail of y next to 2 is exact.
        expected = -math.sqrt(math.pi) / 2 * np.exp(np.minimum(size**2, 700))
        near = size**2 < 80
    np.testing.assert_allclose(
        np.asarray(xtrace.vmap(xtrace.grad(erfcinv))(y))[near], expected[near], 64 * epsilon(np.float32)
    )
    first = xtrace.grad(lambda y: erfcinv(y) * 2)(0.3)
    second = xtrace.grad(xtrace.grad(erfcinv))(0.3)
    x = scipy.special.erfcinv(0.3)
    slope = -math.sqrt(math.pi) / 2 * math.exp(x * x)
    np.testing.assert_allclose([first, second], [2 * slope, 2 * x * slope**2], 1e-5)


def test_inside_of_programs():
    y = np.array([0.25, 1.5], np.float32)
    np.testing.assert_allclose(xtrace.jit(erfcinv)(y), erfcinv(y), 4 * epsilon(np.float32))
    np.testing.assert_allclose(scipy.special.erfc(np.asarray(erfcinv(y))), y, 16 * epsilon(np.float32))


def test_errors():
    with pytest.raises(ValueError, match="erfcinv does not support complex-valued inputs"):
        erfcinv(1j)
    with pytest.raises(TypeError, match="erfcinv"):
        erfcinv("a")
