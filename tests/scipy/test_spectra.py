"""Spectra of segments of signals, and signals of spectra, against jax.scipy.signal; windows by name against SciPy."""

import warnings

import jax
import jax.scipy.signal
import numpy as np
import pytest
import scipy.signal

import xtrace
from tests.support.operands import assert_same_type, epsilon, finite_values, ours, theirs
from xtrace.scipy.signal import csd, istft, stft, welch
from xtrace.scipy.signal.tapers import sample_window

F32 = np.float32
X, Y = finite_values(F32, (2, 40), 3), finite_values(F32, (2, 40), 4)
Z = finite_values(np.complex64, (2, 5, 6), 5)
FUNCTIONS = {"csd": csd, "istft": istft, "stft": stft, "welch": welch}
POWERS = [
    {"nperseg": 8}, {"nperseg": 8, "noverlap": 3, "nfft": 12, "fs": 2}, {"nperseg": 9, "detrend": "linear"},
    {"nperseg": 8, "return_onesided": False, "detrend": False}, {"nperseg": 8, "scaling": "spectrum"},
    {"nperseg": 8, "average": "median"}, {"window": [1.0, 2, 3]}, {"window": ("kaiser", 3.0), "nperseg": 7},
    {"nperseg": 8, "noverlap": -3}, {"nperseg": 2, "axis": 0}, {},
]
CASES = [
    *[("welch", (X,), keywords) for keywords in POWERS], *[("csd", (X, Y), keywords) for keywords in POWERS],
    ("csd", (X, Y[:, :30]), {"nperseg": 8}), ("csd", (X[:1], Y), {"nperseg": 8}), ("csd", (X, None), {"nperseg": 8}),
    ("csd", (X, Y), {"nperseg": 8, "detrend": lambda x: x * 2}), ("welch", (np.ones((3, 0), F32),), {}),
    ("welch", (X.astype(np.int32),), {"nperseg": 8}), ("welch", (finite_values(F32, (300,), 6),), {"fs": 300}),
    ("welch", (Z[0, 0],), {"nperseg": 4, "return_onesided": False}),
    *[("stft", (X,), {"nperseg": 8, "boundary": boundary}) for boundary in ("zeros", "even", "odd", "constant", None)],
    *[("stft", (X,), {"nperseg": 8, "noverlap": noverlap}) for noverlap in (0, 3, 7)],
    ("stft", (X,), {"nperseg": 7, "padded": False, "fs": 3.0}), ("stft", (X[0],), {"nperseg": 1}),
    ("stft", (X,), {"nperseg": 2, "axis": 0, "detrend": "constant", "nfft": 3}),
    ("stft", (np.ones(0, F32),), {"nperseg": None}),
    ("stft", (X,), {"nperseg": 8, "return_onesided": False, "window": "boxcar"}),
    *[("istft", (Z,), keywords) for keywords in (
        {}, {"noverlap": 6}, {"nfft": 12, "fs": 2.0}, {"nperseg": 6}, {"boundary": False}, {"input_onesided": False},
        {"time_axis": 0}, {"time_axis": 1, "freq_axis": 2}, {"window": "boxcar"})],
]


def results(functions, convert):
    return [functions[name](*convert(arrays), **keywords) for name, arrays, keywords in CASES]


def assert_near(got, expected, where):
    """Assert equal types, and values that differ by sums of at most 40 products below 60, rounded."""
    for one, other in zip(got, expected, strict=True):
        assert_same_type(one, other, where)
        values = np.asarray(other)
        scale = max(1, np.abs(values).max(initial=0))
        np.testing.assert_allclose(one, values, atol=40 * epsilon(other.dtype) * scale, rtol=0, err_msg=where)


def test_values():
    expected = jax.jit(lambda: results({n: getattr(jax.scipy.signal, n) for n in FUNCTIONS}, theirs))()
    got = xtrace.jit(lambda: results(FUNCTIONS, ours))()
    for (name, _, keywords), one, other in zip(CASES, got, expected, strict=True):
        if keywords.get("noverlap") == 0:
            # jax takes 0 for the default.
            continue
        assert_near(one, other, f"{name}{keywords}")


def test_outside_of_jit():
    under_jit = xtrace.jit(lambda x: (*welch(x, nperseg=8), *stft(x, nperseg=8)))(X)
    assert_near((*welch(ours(X), nperseg=8), *stft(ours(X), nperseg=8)), under_jit, "eager")
    assert_near(csd(X, Y, nperseg=8, detrend=lambda x: x), csd(X, Y, nperseg=8, detrend=False), "detrend")
    np.testing.assert_allclose(istft(stft(X, nperseg=8)[2])[1][:, :40], X, atol=1e-5)


def test_there_and_back():
    # Of an odd length jax restores one sample less than a segment has, and refuses.
    for size, overlap, one_sided in ((7, 5, True), (8, 6, True), (7, 4, False), (8, 0, True)):
        window = "boxcar" if not overlap else "hann"
        spectra = stft(X, window=window, nperseg=size, noverlap=overlap, return_onesided=one_sided)[2]
        back = istft(spectra, window=window, nperseg=size, noverlap=overlap, input_onesided=one_sided)[1]
        np.testing.assert_allclose(np.asarray(back)[:, :40], X, atol=64 * epsilon(F32))


def test_traced_rates_and_windows():
    def both(package, x, rate, window):
        signal = package.scipy.signal
        return (*signal.welch(x, rate, window), *signal.istft(signal.stft(x, rate, window, 6)[2], rate, window))

    arguments = (X, F32(2), np.arange(1, 7, dtype=F32))
    got, expected = [p.jit(lambda *a, p=p: both(p, *a))(*arguments) for p in (xtrace, jax)]
    assert_near(got, expected, "traced")


def test_derivatives_and_batches():
    def case(package, x):
        signal = package.scipy.signal
        return [
            package.grad(lambda v: (signal.welch(v, nperseg=8)[1] ** 2).sum())(x),
            package.grad(lambda v: (signal.istft(signal.stft(v, nperseg=8, noverlap=5)[2])[1] ** 2).sum())(x),
            package.vmap(lambda v: signal.stft(v, nperseg=8)[2])(x),
        ]

    assert_near(xtrace.jit(lambda x: case(xtrace, x))(X), jax.jit(lambda x: case(jax, x))(X), "derivatives")


def test_warnings():
    with pytest.warns(UserWarning, match="nperseg=50 is greater than the 40 samples"):
        short = welch(X, nperseg=50)
    assert_near(short, welch(X, nperseg=40), "short")
    with pytest.warns(UserWarning, match="two sides; give return_onesided=False"):
        assert stft(Z[0], nperseg=4)[2].shape == (5, 4, 4)


WINDOWS = [
    "boxcar", "hann", "hamming", "blackman", "blackmanharris", "nuttall", "flattop", "bartlett", "triangle", "parzen",
    "bohman", "barthann", "cosine", "lanczos", "exponential", "tukey", ("exponential", None, 2.0), ("tukey", 0.3),
    ("tukey", 0.0), ("gaussian", 2.0), ("general gaussian", 1.5, 2.0), ("kaiser", 3.0), ("general hamming", 0.6),
    ("general cosine", [0.4, 0.5, 0.1]), ("chebwin", 60.0),
]


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_windows_are_those_of_scipy(count):
    for window in WINDOWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = scipy.signal.get_window(window, count)
        sampled = sample_window(window, count)
        np.testing.assert_allclose(sampled, expected, atol=1e-13, err_msg=str(window))


MISTAKES = [
    ("welch", (X,), {"nperseg": 0}, ValueError, "nperseg must be a positive integer, got 0"),
    ("welch", (X,), {"nperseg": 8, "noverlap": 8}, ValueError, "noverlap must be less than nperseg, got 8 and 8"),
    ("welch", (X,), {"nperseg": 8, "nfft": 4}, ValueError, "nfft must be greater than or equal to nperseg"),
    ("welch", (X,), {"nperseg": 8, "detrend": "x"}, ValueError, "detrend must be 'constant', 'linear', .* got 'x'"),
    ("welch", (X,), {"nperseg": 8, "detrend": True}, ValueError, "got True"),
    ("welch", (X,), {"nperseg": 8, "scaling": "x"}, ValueError, "Unknown scaling 'x'"),
    ("csd", (X, Y), {"nperseg": 8, "average": "x"}, ValueError, "average must be 'median' or 'mean'"),
    ("welch", (X,), {"axis": 2}, ValueError, "welch: axis 2"),
    ("welch", (X,), {"window": np.ones((2, 2), F32)}, ValueError, r"window must be 1-D, got shape \(2, 2\)"),
    ("welch", (X,), {"window": np.ones(8, F32), "nperseg": 4}, ValueError, "different from the length 8"),
    ("welch", (X,), {"window": np.ones(41, F32)}, ValueError, "longer than input signal, 41 and 40"),
    ("welch", (X,), {"window": "x"}, ValueError, "Invalid window name 'x'; known are boxcar, hann"),
    ("welch", (X,), {"window": "kaiser"}, ValueError, "does not take the parameters"),
    ("welch", (X,), {"window": (1.0, 2.0)}, ValueError, "first entry of the tuple"),
    ("csd", (X, Y[0]), {}, ValueError, "same rank"), ("csd", (X, np.ones((3, 40), F32)), {}, ValueError, "csd"),
    ("welch", (X.astype(np.float16),), {"nperseg": 8}, ValueError, "float16"),
    ("stft", (X,), {"nperseg": 8, "boundary": "x"}, ValueError, "Unknown boundary option 'x', must be one of"),
    ("stft", (F32(1),), {"nperseg": 8}, ValueError, "stft: axis -1"),
    ("istft", (X[0],), {}, ValueError, r"at least 2d, got shape \(40,\)"),
    ("istft", (Z,), {"time_axis": 1}, ValueError, "differing time and frequency axes"),
    ("istft", (Z,), {"nfft": 4}, ValueError, "nfft must be greater"),
    ("istft", (Z,), {"window": np.ones(6, F32)}, ValueError, "different from the length 6"),
    ("istft", (Z[:, :1],), {}, ValueError, "positive integer"), ("istft", (Z,), {"time_axis": 1.5}, TypeError, "axis"),
]


@pytest.mark.parametrize(("name", "arrays", "keywords", "error", "words"), MISTAKES)
def test_mistakes(name, arrays, keywords, error, words):
    with pytest.raises(error, match=words):
        FUNCTIONS[name](*arrays, **keywords)


@pytest.mark.slow
def test_mistakes_are_those_of_jax():
    for name, arrays, keywords, error, _ in MISTAKES:
        with pytest.raises(error):
            getattr(jax.scipy.signal, name)(*arrays, **keywords)


def test_nothing_to_restore():
    with pytest.raises(ValueError, match=r"there must be a segment, got shape \(3, 0\)"):
        istft(np.ones((3, 0), np.complex64))
