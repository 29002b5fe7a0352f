"""Named windows for segments of signals, named as in ``scipy.signal.get_window``, in double precision.

They are periodic: the next sample after the last would equal the first. The formulas are from Harris, "On the use of
windows for harmonic analysis with the discrete Fourier transform" (1978), and Nuttall, "Some windows with very good
sidelobe behavior" (1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function

_Window = Callable[..., np.ndarray]


def _make_angles(n: int) -> np.ndarray:
    """Return angles from -π to π, both included."""
    return np.linspace(-np.pi, np.pi, n)


def _make_distances(n: int) -> np.ndarray:
    """Return distances from the middle, in samples."""
    return np.arange(n) - (n - 1) / 2


def _sum_cosines(n: int, weights: Sequence[float]) -> np.ndarray:
    return np.asarray(sum(weight * np.cos(k * _make_angles(n)) for k, weight in enumerate(weights)))


def _make_cosine_window(*weights: float) -> _Window:
    return lambda n: _sum_cosines(n, weights)


def _sample_parzen(n: int) -> np.ndarray:
    distances: np.ndarray = np.abs(_make_distances(n))
    x = distances / (n / 2)
    return np.where(distances <= (n - 1) / 4, 1 - 6 * x**2 * (1 - x), 2 * (1 - x) ** 3)


def _sample_bartlett_hann(n: int) -> np.ndarray:
    x = np.arange(n) / (n - 1) - 0.5
    return 0.62 - 0.48 * np.abs(x) + 0.38 * np.cos(2 * np.pi * x)


def _sample_bohman(n: int) -> np.ndarray:
    x = np.abs(np.linspace(-1, 1, n))
    samples = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    samples[[0, -1]] = 0
    return samples


def _sample_exponential(n: int, center: float | None = None, tau: float = 1.0) -> np.ndarray:
    if center is not None:
        raise ValueError(f"get_window: the exponential window of a spectrum has its center in the middle, got {center}")
    return np.asarray(np.exp(-np.abs(_make_distances(n)) / tau))


def _sample_tukey(n: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(n)
    rise = np.minimum(np.arange(n), np.arange(n)[::-1]) * 2 / (min(alpha, 1.0) * (n - 1))
    return np.where(rise < 1, (1 - np.cos(np.pi * rise)) / 2, 1)


def _sample_chebyshev(n: int, at: float) -> np.ndarray:
    # Dolph's window: all side lobes of its spectrum are `at` decibels below the main lobe.
    order = n - 1
    x = math.cosh(math.acosh(10 ** (abs(at) / 20)) / order) * np.cos(np.pi * np.arange(n) / n)
    large = np.cosh(order * np.arccosh(np.maximum(np.abs(x), 1))) * np.where(x < 0, (-1.0) ** order, 1.0)
    spectrum = np.where(np.abs(x) > 1, large, np.cos(order * np.arccos(np.clip(x, -1, 1))))
    if n % 2:
        half = np.real(np.fft.fft(spectrum))[: (n + 1) // 2]
        samples = np.concatenate([half[:0:-1], half])
    else:
        half = np.real(np.fft.fft(spectrum * np.exp(1j * np.pi / n * np.arange(n))))[: n // 2 + 1]
        samples = np.concatenate([half[:0:-1], half[1:]])
    samples /= np.max(samples)
    return samples


# By names: the function of the number of samples and of the parameters in the tuple.
_WINDOWS: dict[tuple[str, ...], _Window] = {
    ("boxcar", "box", "ones", "rect", "rectangular"): np.ones,
    ("hann", "han"): _make_cosine_window(0.5, 0.5),
    ("hamming", "hamm", "ham"): _make_cosine_window(0.54, 0.46),
    ("blackman", "black", "blk"): _make_cosine_window(0.42, 0.5, 0.08),
    ("blackmanharris", "blackharr", "bkh"): _make_cosine_window(0.35875, 0.48829, 0.14128, 0.01168),
    ("nuttall", "nutl", "nut"): _make_cosine_window(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    ("flattop", "flat", "flt"): _make_cosine_window(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    ("bartlett", "bart", "brt"): lambda n: 1 - np.abs(_make_distances(n)) * 2 / (n - 1),
    ("triangle", "triang", "tri"): lambda n: 1 - np.abs(_make_distances(n)) * 2 / (n + n % 2),
    ("parzen", "parz", "par"): _sample_parzen,
    ("bohman", "bman", "bmn"): _sample_bohman,
    ("barthann", "brthan", "bth"): _sample_bartlett_hann,
    ("cosine", "halfcosine"): lambda n: np.sin(np.pi * (np.arange(n) + 0.5) / n),
    ("lanczos", "sinc"): lambda n: np.sinc(2 * np.arange(n) / (n - 1) - 1),
    ("exponential", "poisson"): _sample_exponential,
    ("tukey", "tuk"): _sample_tukey,
    ("gaussian", "gauss", "gss"): lambda n, std: np.exp(-((_make_distances(n) / std) ** 2) / 2),
    ("general gaussian", "general_gaussian", "general gauss", "general_gauss", "ggs"): (
        lambda n, p, sig: np.exp(-(np.abs(_make_distances(n) / sig) ** (2 * p)) / 2)
    ),
    ("kaiser", "ksr"): np.kaiser,
    ("general hamming", "general_hamming"): lambda n, alpha: _sum_cosines(n, (alpha, 1 - alpha)),
    ("general cosine", "general_cosine"): _sum_cosines,
    ("chebwin", "cheb"): _sample_chebyshev,
}
_BY_NAME = {name: window for names, window in _WINDOWS.items() for name in names}


def sample_window(window: str | tuple[Any, ...], count: int) -> np.ndarray:
    """Return `count` samples of the window with a name, or with a tuple of a name and parameters.

    ValueError for an unknown name, and for missing or too many parameters.
    """
    name, *parameters = window if isinstance(window, tuple) else (window,)
    if not isinstance(name, str):
        raise ValueError(
            f"{called_function()}: the first entry of the tuple window={abbreviate(window)} must be a name"
        )
    shape = _BY_NAME.get(name)
    if shape is None:
        known = ", ".join(names[0] for names in _WINDOWS)
        raise ValueError(
            f"{called_function()}: Invalid window name {abbreviate(name)}; known are {known}. Others may be "
            "given as arrays."
        )
    if count <= 1:
        return np.ones(count)
    try:
        return shape(count + 1, *parameters)[:-1]
    except TypeError:
        raise ValueError(
            f"{called_function()}: the window {abbreviate(name)} does not take the parameters {tuple(parameters)}"
        ) from None
