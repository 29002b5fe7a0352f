"""xtrace.numpy.fft against jax.numpy.fft."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.matrices import complex_, real
from tests.support.operands import assert_same_type, epsilon, ours, theirs
from tests.support.rules import check_rules

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]
NORMS = [None, "backward", "ortho", "forward"]


def given_to(name, *shape):
    """Return what the function takes: real numbers for the transforms that keep half of the terms."""
    return complex_(*shape) if name in ("fft", "ifft2", "fftn", "irfft", "hfft", "irfft2", "irfftn") else real(*shape)


def both(name, x, *arguments, jitted=False, **keywords):
    """Assert that both packages agree, eagerly and, if asked, jitted."""
    expected = getattr(jax.numpy.fft, name)(theirs(x), *arguments, **keywords)

    def function(x):
        return getattr(jnp.fft, name)(x, *arguments, **keywords)

    for got in (function(ours(x)), *([xtrace.jit(function)(ours(x))] if jitted else [])):
        assert_same_type(got, expected, name)
        # A term is a sum of all elements, of sizes up to the largest; the algorithms round a few times for each factor.
        size = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(got, expected, rtol=0, atol=32 * epsilon(expected.dtype) * size, err_msg=name)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_along_one_axis(name, norm):
    both(name, given_to(name, 6), norm=norm)
    both(name, given_to(name, 3, 5), 4, 0, norm, jitted=True)
    both(name, given_to(name, 3, 5), n=7, norm=norm)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [*TWO, *MANY])
def test_along_several_axes(name, norm):
    both(name, given_to(name, 3, 4), norm=norm)
    both(name, given_to(name, 2, 3, 4), (5, 2), (2, 0), norm, jitted=True)


@pytest.mark.parametrize("name", MANY)
def test_many_axes(name):
    for axes in (None, (), (3, 0, 4, 2), (-1,), (4, 3, 2, 1, 0)):
        both(name, given_to(name, 2, 3, 2, 2, 3), axes=axes)
    both(name, given_to(name, 2, 3, 4), s=(3, 2))
    both(name, given_to(name, 2, 3, 4), axes=[0, 1])


def test_dtypes():
    for dtype in (bool, np.int8, np.int32, np.uint32, np.float16, np.float32):
        x = np.abs(4 * real(5)).astype(dtype)
        both("fft", x)
        if dtype != np.float16:
            both("rfft", x)
    both("fft", real(0, 3))
    both("fft", real(0))
    both("irfft", complex_(1))
    both("fft", complex_(2, 3), axis=None)
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for dtype in (np.int32, np.int64, np.float64, np.complex128):
            assert jnp.fft.fft(np.ones(3, dtype)).dtype == jax.numpy.fft.fft(np.ones(3, dtype)).dtype


@settings(max_examples=25)
@given(
    name=st.sampled_from(ONE), shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    n=st.none() | st.integers(1, 6), axis=st.integers(-3, 2), norm=st.sampled_from(NORMS),
)
def test_any_transform(name, shape, n, axis, norm):
    axis = max(-len(shape), min(axis, len(shape) - 1))
    both(name, given_to(name, *shape), n, axis, norm)


@pytest.mark.drawn(0.3)
@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONE, "rfftn", "irfftn"])
def test_rules(name):
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = given_to(name, 3, 4)
    check_rules(lambda lax, x: getattr(modules[lax].fft, name)(x, norm="ortho"), x, rounding=128, second=False)


def test_frequencies():
    for name in ("fftfreq", "rfftfreq"):
        for arguments in ((5,), (4,), (2,), (1,), (8, 0.5), (3, 0), (6, np.float32(3))):
            expected = getattr(jax.numpy.fft, name)(*arguments)
            got = getattr(jnp.fft, name)(*arguments)
            assert_same_type(got, expected)
            np.testing.assert_allclose(got, expected, rtol=4 * epsilon(np.float32))
        assert getattr(jnp.fft, name)(4, dtype=np.float16).dtype == np.float16
        assert getattr(jnp.fft, name)(4, device=xtrace.devices()[0]).shape == getattr(np.fft, name)(4).shape


def test_shifts():
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, -1, (0,), (1, 0), [1]):
            both(name, real(4, 5), axes)
        both(name, np.float32(1))


ERRORS = [
    (lambda x: jnp.fft.fft(x, n=0), ValueError, "fft: Shape should be positive; got the length 0"),
    (lambda x: jnp.fft.fft(x, n=2.5), TypeError, "a length must be an integer, got 2.5"),
    (lambda x: jnp.fft.fft(x, norm="x"), ValueError, "Invalid norm value 'x'"),
    (lambda x: jnp.fft.fft(x, axis=2), ValueError, "fft: axis 2 is out of bounds"),
    (lambda x: jnp.fft.fft(x, axis=(0, 1)), ValueError, "multiple axes"),
    (lambda x: jnp.fft.fft([1.0]), TypeError, "fft requires ndarray"),
    (lambda x: jnp.fft.fft(np.float32(1)), ValueError, "axis -1 is out of bounds"),
    (lambda x: jnp.fft.rfft(x + 0j), ValueError, "real"),
    (lambda x: jnp.fft.fft2(x, axes=(0,)), ValueError, "fft2 only supports 2 axes"),
    (lambda x: jnp.fft.fft2(x[0]), ValueError, "fft2: axis -2"),
    (lambda x: jnp.fft.fftn(x, axes=(0, 0)), ValueError, "fftn does not support repeated axes"),
    (lambda x: jnp.fft.fftn(x, s=(3, 4), axes=(0,)), ValueError, "different lengths"),
    (lambda x: jnp.fft.irfftn(x, s=(2, -1)), ValueError, "positive"),
    (lambda x: jnp.fft.fftfreq(2.5), ValueError, "n should be an integer"),
    (lambda x: jnp.fft.rfftfreq(3, x), TypeError, "d must be a real scalar"),
    (lambda x: jnp.fft.fftshift(x, axes=5), ValueError, "fftshift: axis 5"),
    (lambda x: jnp.fft.ifftshift([1]), TypeError, "ifftshift"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    call, error, words = ERRORS[number]
    with pytest.raises(error, match=words):
        call(ours(real(2, 3)))
