"""Fourier transforms, their derivatives and batched forms, against jax."""

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from tests.support.operations import check_error, check_types, check_values
from tests.support.rules import check_rules
from xtrace import lax

# Rounding of a transform is relative to its largest term, that of a small one is more: values below are such that
# no term nearly cancels.
TRANSFORMS = [
    ("FFT", np.complex64, (2, 6), (6,)), ("FFT", np.complex64, (3, 4), (3, 4)),
    ("FFT", np.complex64, (2, 3, 2), (2, 3, 2)),
    ("IFFT", np.complex64, (2, 5), (5,)), ("IFFT", np.complex64, (2, 2, 3), (2, 3)),
    ("RFFT", np.float32, (2, 6), (6,)), ("RFFT", np.float32, (2, 5), (5,)), ("RFFT", np.float32, (2, 3, 4), (3, 4)),
    ("RFFT", np.float32, (3, 1), (1,)), ("RFFT", np.float32, (3, 2), (2,)),
    ("IRFFT", np.complex64, (2, 4), (6,)), ("IRFFT", np.complex64, (2, 3), (5,)),
    ("IRFFT", np.complex64, (3, 3), (3, 4)),
    ("IRFFT", np.complex64, (3, 1), (1,)), ("IRFFT", np.complex64, (3, 2), (2,)),
]
IDS = [f"{kind} {shape} {lengths}" for kind, _, shape, lengths in TRANSFORMS]


def transform(kind, lengths):
    return lambda module, x: module.fft(x, kind, lengths)


def close(got, expected):
    """Assert that transforms agree to a few roundings of their largest term."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    one, other = np.asarray(got), np.asarray(expected)
    assert np.abs(one - other).max(initial=0) <= 16 * np.finfo(one.dtype).eps * np.abs(other).max(initial=1)


@pytest.mark.parametrize(("kind", "dtype", "shape", "lengths"), TRANSFORMS, ids=IDS)
def test_values(kind, dtype, shape, lengths):
    x = finite_values(dtype, shape, 1)
    check_values(transform(kind, lengths), x, rounding=64)
    reference = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind]
    axes = range(x.ndim - len(lengths), x.ndim)
    close(lax.fft(x, kind, lengths), reference(x, lengths, axes).astype(lax.fft(x, kind, lengths).dtype))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("kind", "dtype", "shape", "lengths"), TRANSFORMS, ids=IDS)
def test_rules(kind, dtype, shape, lengths):
    x = np.random.default_rng(2).uniform(0.5, 1.5, shape).astype(dtype)
    check_rules(transform(kind, lengths), x, rounding=512)


@pytest.mark.parametrize("kind", ["FFT", "RFFT", "IRFFT"])
def test_dtypes_are_converted(kind):
    for dtype in (bool, np.int8, np.uint32, np.float32, *([np.float16, ml_dtypes.bfloat16] if kind != "RFFT" else [])):
        check_types(transform(kind, (2,)), ((2,), dtype))


@pytest.mark.parametrize("kind", ["FFT", "RFFT"])
def test_dtypes_are_converted_with_64_bits(kind):
    for dtype in (np.int8, np.int16, np.int32, np.uint32, np.int64, np.float32, np.float64):
        x = np.ones(2, dtype)
        with xtrace.enable_x64(True), jax.enable_x64(True):
            assert lax.fft(ours(x), kind, (2,)).dtype == jax.lax.fft(theirs(x), kind, (2,)).dtype


def test_double_precision():
    x = finite_values(np.float64, (2, 6), 3)
    with xtrace.enable_x64(True), jax.enable_x64(True):
        assert_same(lax.fft(ours(x), "RFFT", (6,)), jax.lax.fft(theirs(x), "RFFT", (6,)), 64)
        pulled = [m.grad(lambda x, lax=lax: lax.reduce_sum(lax.real(lax.fft(x, "RFFT", (6,))) ** 2, (0, 1)))(a)
                  for m, lax, a in ((xtrace, lax, ours(x)), (jax, jax.lax, theirs(x)))]
    assert_same(*pulled, 512)


def test_the_jaxpr():
    text = str(xtrace.make_jaxpr(lambda x: lax.fft(x, "RFFT", (6,)))(np.ones(6, np.float32)))
    assert text == "{ lambda ; a:f32[6]. let b:c64[4] = fft[fft_lengths=(6,) fft_type=2] a in (b,) }"


def test_types_and_names():
    assert [(k.name, k.value, repr(k)) for k in lax.FftType] == [(k.name, k.value, repr(k)) for k in jax.lax.FftType]
    x = np.ones(2, np.complex64)
    assert_same(lax.fft(x, lax.FftType.IFFT, [2]), lax.fft(x, "ifft", (2,)))


def test_nothing():
    check_values(transform("FFT", (0,)), np.ones((2, 0), np.complex64))
    check_values(transform("FFT", (3,)), np.ones((0, 3), np.complex64))
    check_values(transform("FFT", ()), np.ones((2, 3), np.float32))
    assert lax.fft(np.ones((2, 0), np.float32), "RFFT", (0,)).shape == (2, 0)
    total = xtrace.grad(lambda x: lax.reduce_sum(lax.real(lax.fft(x, "RFFT", (3,))), (0, 1)))
    assert total(np.ones((0, 3), np.float32)).shape == (0, 3)


ERRORS = {
    "unknown name": ("foo", (6,), np.complex64, ValueError, "foo"),
    "a number": (0, (6,), np.complex64, TypeError, "0"),
    "lengths": ("FFT", (5,), np.complex64, ValueError, "(2, 6)"),
    "real lengths": ("RFFT", (5,), np.float32, ValueError, "fft_lengths (5,)"),
    "too many axes": ("FFT", (2, 2, 6), np.complex64, ValueError, "(2, 2, 6)"),
    "complex": ("RFFT", (6,), np.complex64, ValueError, "real"),
    "half": ("RFFT", (6,), np.float16, ValueError, "float16"),
    "other axes": ("IRFFT", (3, 10), np.complex64, ValueError, "fft_lengths=(3, 10)"),
    "no sequence": ("FFT", 6, np.complex64, TypeError, "fft_lengths"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    kind, lengths, dtype, error, words = ERRORS[name]
    check_error(transform(kind, lengths), error, [words], np.ones((2, 6), dtype))


def test_errors_that_jax_leaves_to_the_compiler():
    with pytest.raises(ValueError, match=r"fft_lengths\[-1\] // 2 \+ 1 = 4"):
        lax.fft(np.ones((2, 6), np.complex64), "IRFFT", (6,))
    with pytest.raises(ValueError, match="at most 3 axes"):
        lax.fft(np.ones((2, 2, 2, 2), np.complex64), "FFT", (2, 2, 2, 2))
