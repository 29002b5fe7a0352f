"""Power spectra, cross power spectra and short-time Fourier transforms: spectra of overlapping segments.

Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967); Griffin and Lim, "Signal
estimation from modified short-time Fourier transform" (1984).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Union

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, check_broadcast, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import broadcast_to_shape, select_where
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.ops.elementwise.complex_numbers import complex as of_parts
from xtrace.numpy import fft as fourier
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.elementwise.complex_parts import conj, real
from xtrace.numpy.elementwise.ufuncs import abs, square
from xtrace.numpy.manipulation.padding import pad
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import cast_to
from xtrace.numpy.reductions.quantiles import median
from xtrace.numpy.reductions.reductions import sum
from xtrace.numpy.reductions.statistics import mean
from xtrace.scipy.signal.tapers import sample_window
from xtrace.scipy.signal.trends import detrend as without_trend

# A window is a name, a tuple of a name and parameters, or an array. A trend is a kind, or a function that removes it.
_WindowLike = Union[str, tuple[Any, ...], list[float], ArrayLike]  # noqa: UP007
_TrendLike = Union[str, Literal[False], Callable[[Any], Any]]  # noqa: UP007


class _Plan(NamedTuple):
    """The segments' size and step, the length of the transform, and whether the spectrum is one-sided."""

    size: int
    step: int
    length: int
    one_sided: bool


def _to_complex_dtype(part: np.dtype[Any]) -> np.dtype[Any]:
    return dtypes.complex128 if part == dtypes.float64 else dtypes.complex64


# Segments


def _resize_last_axis(x: Array, count: int) -> Array:
    """Append `count` zeros to the last axis of `x`, or drop -`count` elements."""
    if count <= 0:
        return x[..., : x.shape[-1] + count]
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count)])


def _cut_segments(x: Array, size: int, step: int) -> Array:
    """Return (..., count, size), the segments of `x` that begin at multiples of `step`.

    This needs no gather. The signal, in rows of `step` samples, is copied once for each row of a segment. Reshaping the
    copies to rows that are one longer shifts copy k by k rows.
    """
    count, rows = (x.shape[-1] - size) // step + 1, -(-size // step)
    whole = _resize_last_axis(x, (count + rows - 1) * step - x.shape[-1])
    copies = broadcast_to_shape(whole[..., None, :], (*x.shape[:-1], rows, whole.shape[-1]))
    flat = copies.reshape((*x.shape[:-1], rows * whole.shape[-1]))
    shifted = _resize_last_axis(flat, rows * step).reshape((*x.shape[:-1], rows, count + rows, step))[..., :count, :]
    return moveaxis(shifted, -3, -2).reshape((*x.shape[:-1], count, rows * step))[..., :size]


def _add_overlapping(segments: Array, step: int) -> Array:
    """Add segments (..., count, size) that begin at multiples of `step`, the transpose of `_cut_segments`."""
    *batch, count, size = segments.shape
    rows = -(-size // step)
    cut = _resize_last_axis(segments, rows * step - size).reshape((*batch, count, rows, step))
    rowwise = moveaxis(cut, -2, -3).reshape((*batch, rows, count * step))
    shifted = _resize_last_axis(rowwise, rows * step).reshape((*batch, rows * (count + rows) * step))
    summed = sum(_resize_last_axis(shifted, -rows * step).reshape((*batch, rows, (count + rows - 1) * step)), -2)
    return summed[..., : (count - 1) * step + size]


# Arguments


def _check_lengths(
    size: int, noverlap: int | None, nfft: int | None, default_length: int | None = None
) -> tuple[int, int]:
    """Return the step from one segment to the next and the transformed length."""
    overlap = size // 2 if noverlap is None else int(noverlap)
    length = (size if default_length is None else default_length) if nfft is None else int(nfft)
    if length < size:
        raise ValueError(f"{called_function()}: nfft must be greater than or equal to nperseg, got {length} and {size}")
    if overlap >= size:
        raise ValueError(f"{called_function()}: noverlap must be less than nperseg, got {overlap} and {size}")
    return size - overlap, length


def _sample_window(window: _WindowLike, size: int | None) -> tuple[ArrayLike, int]:
    """Return a window and its size; a window by name has the given `size`."""
    if isinstance(window, (str, tuple)):
        count = 0 if size is None else size
        return sample_window(window, count), count
    window = np.asarray(window) if isinstance(window, list) else window
    shape = operand_aval(window, 2).shape
    if len(shape) != 1:
        raise ValueError(f"{called_function()}: window must be 1-D, got shape {shape}")
    if size not in (None, shape[0]):
        raise ValueError(
            f"{called_function()}: nperseg={size} is different from the length {shape[0]} of the window"
        )
    return window, int(shape[0])


def _check_positive(nperseg: int | None) -> int | None:
    """Return `nperseg` as an integer, or None; ValueError if it is not positive."""
    size = None if nperseg is None else int(nperseg)
    if size is not None and size < 1:
        raise ValueError(f"{called_function()}: nperseg must be a positive integer, got {nperseg}")
    return size


def _sample_segment_window(window: _WindowLike, nperseg: int | None, count: int) -> tuple[ArrayLike, int]:
    """Return the window and its size, for segments of a signal of `count` samples."""
    size = _check_positive(nperseg)
    if isinstance(window, (str, tuple)):
        if size is not None and size > count:
            warn_user(
                f"{called_function()}: nperseg={size} is greater than the {count} samples of the signal, "
                f"using nperseg={count}"
            )
        size = count if size is None else min(size, count)
    samples, own = _sample_window(window, size)
    if own > count:
        raise ValueError(f"{called_function()}: window is longer than input signal, {own} and {count} samples")
    return samples, own


def _make_trend_remover(detrend: _TrendLike, axis: int) -> Callable[..., Any]:
    """Return a function that removes trends along the last axis; the user's function works along `axis`."""
    if not detrend:
        return lambda x: x
    if callable(detrend):
        return detrend if axis == -1 else lambda x: moveaxis(detrend(moveaxis(x, -1, axis)), axis, -1)
    return lambda x: without_trend(x, axis=-1, type=detrend)


def _check_trend(detrend: _TrendLike) -> None:
    if detrend and not callable(detrend) and detrend not in ("constant", "linear"):
        raise ValueError(
            f"{called_function()}: detrend must be 'constant', 'linear', False or a function; got "
            f"{abbreviate(detrend)}"
        )


def _choose_one_sided(wanted: bool, dtype: np.dtype[Any]) -> bool:
    if wanted and dtypes.is_complex(dtype):
        warn_user(
            f"{called_function()}: the signal is complex, so its spectrum has two sides; give "
            "return_onesided=False"
        )
        return False
    return bool(wanted)


# Spectra


def _compute_spectra(x: Array, window: ArrayLike, plan: _Plan, detrend: _TrendLike, axis: int) -> Array:
    """Return the spectra of the segments of the last axis of `x`, (..., segments, frequencies)."""
    segments = _make_trend_remover(detrend, axis)(_cut_segments(x, plan.size, plan.step))
    transform = fourier.rfft if plan.one_sided else fourier.fft
    return transform(segments * broadcast_to_shape(convert_to(window, segments.dtype), segments.shape), plan.length, -1)


def _compute_frequencies(plan: _Plan, fs: ArrayLike, dtype: np.dtype[Any]) -> Array:
    frequencies = fourier.rfftfreq if plan.one_sided else fourier.fftfreq
    return frequencies(plan.length, 1 / fs, dtype=dtypes.real_part_dtype(dtype))


def _compute_median(products: Array) -> Array:
    if dtypes.is_complex(products.dtype):
        return of_parts(median(products.real, -2), median(products.imag, -2))
    return median(products, -2)


def _compute_median_bias(count: int) -> float:
    """Return the median of `count` powers over their mean (Allen et al., gr-qc/0509116, appendix B)."""
    even = 2 * np.arange(1, (count - 1) // 2 + 1)
    return float(1 + np.sum(1 / (even + 1) - 1 / even))


def _average_products(
    fs: ArrayLike, window: ArrayLike, *signals: Array, plan: _Plan, detrend: _TrendLike, axis: int, density: bool,
    average: str,
) -> tuple[Array, Array]:
    """Return frequencies and averaged products of the spectra of one or two signals."""
    dtype = signals[0].dtype
    part = dtypes.real_part_dtype(dtype)
    window = convert_to(window, part)
    longest = max([x.shape[axis] for x in signals])
    moved = [moveaxis(x, axis, -1) for x in signals]
    resized = [_resize_last_axis(x, longest - x.shape[-1]) for x in moved]
    spectra = [_compute_spectra(x, window, plan, detrend, axis) for x in resized]
    products = conj(spectra[0]) * spectra[-1]
    if len(signals) == 1:
        products = real(products)
    scale = 1 / (convert_to(fs, part) * sum(square(window)) if density else square(sum(window)))
    # A one-sided spectrum counts twice, except at frequency 0 and, for even lengths, at the Nyquist frequency.
    factors = np.full(products.shape[-1], 2 if plan.one_sided else 1, part)
    factors[[0] if plan.length % 2 else [0, -1]] = 1
    products = products * broadcast_to_shape(convert_to(scale * factors, products.dtype), products.shape)
    if average == "mean":
        powers = mean(products, -2)
    else:
        powers = _compute_median(products) / _compute_median_bias(products.shape[-2])
    return _compute_frequencies(plan, fs, dtype), moveaxis(powers, -1, axis)


_average_products_program = inline_jit(_average_products)


def _compute_power_spectra(
    function: str, signals: Sequence[ArrayLike], fs: ArrayLike, window: _WindowLike, nperseg: int | None,
    noverlap: int | None, nfft: int | None, detrend: _TrendLike, return_onesided: bool, scaling: str, axis: int,
    average: str,
) -> tuple[Array, Array]:
    avals, dtype, _ = common_dtype(signals, as_inexact)
    if len({aval.ndim for aval in avals}) > 1:
        raise ValueError(f"{function}: x and y must have the same rank, got {avals[0]} and {avals[1]}")
    along = canonical_axis(axis, avals[0].ndim)
    counts = [aval.shape[along] for aval in avals]
    outer = check_broadcast([(*a.shape[:along], *a.shape[along + 1 :]) for a in avals])
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{function}: Unknown scaling {abbreviate(scaling)}; it must be 'density' or 'spectrum'")
    if average not in ("mean", "median"):
        raise ValueError(f"{function}: average must be 'median' or 'mean', got {abbreviate(average)}")
    _check_trend(detrend)
    if 0 in counts or 0 in outer:
        shape = (*outer[:along], min(counts), *outer[along:])
        part = dtypes.real_part_dtype(dtype)
        return zeros(shape, part), zeros(shape, part if function == "welch" else _to_complex_dtype(part))
    one_sided = _choose_one_sided(return_onesided, dtype)
    samples, size = _sample_segment_window(window, nperseg, max(counts))
    plan = _Plan(size, *_check_lengths(size, noverlap, nfft), one_sided)
    program = _average_products if callable(detrend) else _average_products_program
    ready = [cast_to(x, aval, dtype) for x, aval in zip(signals, avals, strict=True)]
    return program(
        fs, samples, *ready, plan=plan, detrend=detrend or False, axis=axis, density=scaling == "density",
        average=average,
    )


def csd(
    x: ArrayLike, y: ArrayLike | None, fs: ArrayLike = 1.0, window: _WindowLike = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: _TrendLike = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:
    """Compute an estimate of the cross power spectral density of two signals.

    Args:
        x, y: arrays; the shorter signal is padded with zeros, other axes broadcast. None as `y` stands for `x`.
        fs: the number of samples in a unit of time.
        window: an array, a name, or a tuple (name, *parameters), as in SciPy's ``get_window``.
        nperseg: the length of a segment; None for the length of the window, or for a named window of the signal.
        noverlap: the number of samples that neighbouring segments share; None for half of a segment.
        nfft: the length of a transform; None for the length of a segment.
        detrend: ``"constant"``, ``"linear"``, False, or a function of the segments.
        return_onesided: whether the spectra of real signals have one side.
        scaling: ``"density"`` or ``"spectrum"``.
        axis: the axis of time.
        average: ``"mean"`` or ``"median"`` of the segments.

    Returns:
        A pair of the frequencies and the powers; real for one signal, else complex.

    Raises:
        TypeError: an operand is not an array.
        ValueError: an argument does not fit the signal, or has no such value.

    Example:
        >>> scipy.signal.csd(jnp.ones(8), jnp.ones(8), nperseg=4)[0]
        Array([0.  , 0.25, 0.5 ], dtype=float32)

    Reference:
        P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).
    """
    signals = (x,) if y is None else (x, y)
    return _compute_power_spectra(
        "csd", signals, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )


def welch(
    x: ArrayLike, fs: ArrayLike = 1.0, window: _WindowLike = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: _TrendLike = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:
    """Compute an estimate of the power spectral density of a signal.

    Args:
        x: an array.
        fs: the number of samples in a unit of time.
        window: an array, a name, or a tuple (name, *parameters), as in SciPy's ``get_window``.
        nperseg: the length of a segment; None for the length of the window, or for a named window of the signal.
        noverlap: the number of samples that neighbouring segments share; None for half of a segment.
        nfft: the length of a transform; None for the length of a segment.
        detrend: ``"constant"``, ``"linear"``, False, or a function of the segments.
        return_onesided: whether the spectra of real signals have one side.
        scaling: ``"density"`` or ``"spectrum"``.
        axis: the axis of time.
        average: ``"mean"`` or ``"median"`` of the segments.

    Returns:
        A pair of the frequencies and the powers.

    Raises:
        TypeError: `x` is not an array.
        ValueError: an argument does not fit the signal, or has no such value.

    Example:
        >>> scipy.signal.welch(jnp.ones(8), nperseg=4)[1]
        Array([0., 0., 0.], dtype=float32)

    Reference:
        P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).
    """
    return _compute_power_spectra(
        "welch", (x,), fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )


_EXTENSIONS: dict[str, dict[str, str]] = {
    "even": {"mode": "reflect"}, "odd": {"mode": "reflect", "reflect_type": "odd"}, "constant": {"mode": "edge"},
    "zeros": {"mode": "constant"},
}


def _compute_short_time_spectra(
    fs: ArrayLike, window: ArrayLike, x: Array, *, plan: _Plan, detrend: _TrendLike, axis: int, boundary: str | None,
    padded: bool,
) -> tuple[Array, Array, Array]:
    """Return frequencies, times and spectra."""
    part, half = dtypes.real_part_dtype(x.dtype), plan.size // 2
    window = convert_to(window, part)
    x = moveaxis(x, axis, -1)
    rank = x.ndim
    if boundary is not None:
        x = pad(x, [(0, 0)] * (rank - 1) + [(half, half)], **_EXTENSIONS[boundary])
    if padded:
        x = _resize_last_axis(x, -(x.shape[-1] - plan.size) % plan.step % plan.size)
    spectra = _compute_spectra(x, window, plan, detrend, axis)
    spectra = spectra / convert_to(abs(sum(window)), spectra.dtype)
    starts: Any = plan.step * np.arange(spectra.shape[-2]) + (0 if boundary is not None else plan.size / 2)
    times = starts.astype(part) / convert_to(fs, part)
    return _compute_frequencies(plan, fs, x.dtype), times, moveaxis(spectra, -1, axis % rank)


_short_time_spectra_program = inline_jit(_compute_short_time_spectra)


def stft(
    x: ArrayLike, fs: ArrayLike = 1.0, window: _WindowLike = "hann", nperseg: int | None = 256,
    noverlap: int | None = None, nfft: int | None = None, detrend: _TrendLike = False, return_onesided: bool = True,
    boundary: str | None = "zeros", padded: bool = True, axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute the short-time Fourier transform: the spectra of overlapping segments of a signal.

    Args:
        x: an array.
        fs: the number of samples in a unit of time.
        window: an array, a name, or a tuple (name, *parameters), as in SciPy's ``get_window``.
        nperseg: the length of a segment; None for the length of the window, or for a named window of the signal.
        noverlap: the number of samples that neighbouring segments share; None for half of a segment.
        nfft: the length of a transform; None for the length of a segment.
        detrend: ``"constant"``, ``"linear"``, False, or a function of the segments.
        return_onesided: whether the spectra of real signals have one side.
        boundary: the padding by half a segment at both ends: ``"zeros"``, ``"even"``, ``"odd"``, ``"constant"``,
            or None.
        padded: whether zeros fill the last segment.
        axis: the axis of time.

    Returns:
        A triple of frequencies, times and spectra, with the frequencies along `axis` and the times along the last axis.

    Raises:
        TypeError: `x` is not an array.
        ValueError: an argument does not fit the signal, or has no such value.

    Example:
        >>> scipy.signal.stft(jnp.ones(8), nperseg=4)[2].shape
        (3, 5)

    Reference:
        A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing, 3rd ed. (2010), section 10.3.
    """
    (aval,), dtype, _ = common_dtype((x,), as_inexact)
    along = canonical_axis(axis, aval.ndim)
    if boundary is not None and boundary not in _EXTENSIONS:
        raise ValueError(
            f"stft: Unknown boundary option {abbreviate(boundary)}, must be one of {[*_EXTENSIONS, None]}"
        )
    _check_trend(detrend)
    part = dtypes.real_part_dtype(dtype)
    if not aval.size:
        return zeros(aval.shape, part), zeros(aval.shape, part), zeros(aval.shape, _to_complex_dtype(part))
    one_sided = _choose_one_sided(return_onesided, dtype)
    samples, size = _sample_segment_window(window, nperseg, aval.shape[along])
    plan = _Plan(size, *_check_lengths(size, noverlap, nfft), one_sided)
    program = _compute_short_time_spectra if callable(detrend) else _short_time_spectra_program
    return program(
        fs, samples, cast_to(x, aval, dtype), plan=plan, detrend=detrend or False, axis=axis, boundary=boundary,
        padded=bool(padded),
    )


@inline_jit
def _restore_signal(
    fs: ArrayLike, window: ArrayLike, spectra: Array, *, plan: _Plan, frequency_axis: int, time_axis: int, trimmed: bool
) -> tuple[Array, Array]:
    """Return times and the signal, whose samples lie along the former axis of segments."""
    spectra = moveaxis(spectra, (time_axis, frequency_axis), (-2, -1))
    part = dtypes.real_part_dtype(spectra.dtype)
    window = convert_to(window, part)
    inverse = fourier.irfft if plan.one_sided else fourier.ifft
    segments = inverse(spectra, plan.length, -1)[..., : plan.size]
    weighted = segments * convert_to(sum(window), segments.dtype)
    # The least-squares solution: the signal whose segments are closest to these.
    x = _add_overlapping(weighted * broadcast_to_shape(convert_to(window, weighted.dtype), weighted.shape), plan.step)
    weights = _add_overlapping(broadcast_to_shape(square(window), (spectra.shape[-2], plan.size)), plan.step)
    if trimmed and plan.size > 1:
        half = plan.size // 2
        x, weights = x[..., half:-half], weights[half:-half]
    x = x / broadcast_to_shape(convert_to(select_where(weights > 1e-10, weights, 1.0), x.dtype), x.shape)
    x = moveaxis(x, -1, time_axis - (frequency_axis < time_axis))
    positions: Any = np.arange(x.shape[0]).astype(part)
    return positions / convert_to(fs, part), x


def istft(
    Zxx: ArrayLike, fs: ArrayLike = 1.0, window: _WindowLike = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True, boundary: bool = True,
    time_axis: int = -1, freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Compute the signal from spectra of its segments, the inverse of `stft`.

    Args:
        Zxx: an array of spectra, as `stft` gives them.
        fs: the number of samples in a unit of time.
        window: an array, a name, or a tuple (name, *parameters), as in SciPy's ``get_window``.
        nperseg: the length of a segment; None to infer it from the number of frequencies.
        noverlap: the number of samples that neighbouring segments share; None for half of a segment.
        nfft: the length of a transform; None for the length of a segment.
        input_onesided: whether the spectra have one side.
        boundary: whether half a segment is cut at both ends.
        time_axis, freq_axis: the axes of times and of frequencies.

    Returns:
        A pair of times and the signal.

    Raises:
        TypeError: `Zxx` is not an array.
        ValueError: an argument does not fit the signal, or has no such value.

    Example:
        >>> spectra = scipy.signal.stft(jnp.arange(8.0), nperseg=4)[2]
        >>> scipy.signal.istft(spectra, nperseg=4)[1].round(3)
        Array([0.       , 1.       , 2.       , 3.0000002, 4.       , 5.       ,
               6.0000005, 7.0000005], dtype=float32)

    Reference:
        D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier transform" (1984).
    """
    aval = operand_aval(Zxx, 0)
    if aval.ndim < 2:
        raise ValueError(f"istft: Input stft must be at least 2d, got shape {aval.shape}")
    axes = [canonical_axis(i, aval.ndim) for i in (freq_axis, time_axis)]
    if axes[0] == axes[1]:
        raise ValueError(f"istft: Must specify differing time and frequency axes, got {freq_axis} and {time_axis}")
    if not aval.shape[axes[1]]:
        raise ValueError(f"istft: there must be a segment, got shape {aval.shape} with time_axis={time_axis}")
    frequencies = aval.shape[axes[0]]
    even = 2 * (frequencies - 1) if input_onesided else frequencies
    samples, size = _sample_window(window, _check_positive(even if nperseg is None else nperseg))
    # One-sided spectra of lengths 2 k and 2 k + 1 have the same number of frequencies.
    length = even + 1 if input_onesided and size == even + 1 else even
    plan = _Plan(size, *_check_lengths(size, noverlap, nfft, length), bool(input_onesided))
    _, dtype, _ = common_dtype((Zxx,), as_inexact)
    wide = _to_complex_dtype(dtypes.real_part_dtype(dtype))
    return _restore_signal(
        fs, samples, cast_to(Zxx, aval, wide), plan=plan, frequency_axis=axes[0], time_axis=axes[1],
        trimmed=bool(boundary),
    )
