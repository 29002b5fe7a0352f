"""Discrete Fourier transforms along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.sizes import smallest
from xtrace._src.ops.arrays.slicing import pad, slice_in_dim
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.fft import FftType
from xtrace._src.ops.fft import fft as transform
from xtrace._src.ops.linalg.matrices import conj_if_complex
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import axes_of, scalar_of
from xtrace.numpy.signals.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

_Axes = tuple[int, ...]


# XLA transforms at most this many axes in one operation.
_MAX_AXES = 3
_COMPLEX_KIND = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}


def _resize(x: Array, axis: int, size: int) -> Array:
    """Return `x` cut or padded with zeros to `size` along an axis."""
    aval = aval_of(x)
    own = aval.shape[axis]
    kept = smallest(size, own)
    if kept != own:
        x = slice_in_dim(x, 0, kept, 1, axis)
    if kept == size:
        return x
    padding = [(0, size - kept if i == axis else 0, 0) for i in range(aval.ndim)]
    return pad(x, scalar_of(0, aval.dtype), padding)


def _transform_group(x: Array, kind: FftType, axes: _Axes, sizes: _Axes) -> Array:
    last = tuple(range(-len(axes), 0))
    return moveaxis(transform(moveaxis(x, axes, last), kind, sizes), last, axes)


@inline_jit
def _transform(
    x: Any, *, kind: FftType, axes: _Axes, sizes: _Axes, scale: float, conjugates: tuple[bool, bool]
) -> Array:
    """Transform along `axes`, real numbers along the last; `conjugates`: of the operand, and of the result."""
    x = convert_to(x, aval_of(x).dtype)
    if conjugates[0]:
        x = conj_if_complex(x)
    for axis, size in zip(axes, sizes, strict=True):
        given = size // 2 + (size > 0) if kind is FftType.IRFFT and axis == axes[-1] else size
        x = _resize(x, axis, given)
    # The last group has the real numbers: RFFT transforms it first, IRFFT last.
    starts = list(range(max(len(axes) - _MAX_AXES, 0), -1, -_MAX_AXES)) or [0]
    if starts[-1] > 0:
        starts.append(0)
    groups = [slice(start, stop) for start, stop in zip(starts, [len(axes), *starts[:-1]], strict=True)]
    steps = [(kind if i == 0 else _COMPLEX_KIND.get(kind, kind), group) for i, group in enumerate(groups)]
    for step, group in reversed(steps) if kind is FftType.IRFFT else steps:
        x = _transform_group(x, step, axes[group], sizes[group])
    if conjugates[1]:
        x = conj_if_complex(x)
    return x if scale == 1 else lax.mul(x, scalar_of(scale, aval_of(x).dtype))


def _convert_untransformed(x: Array, kind: FftType) -> Array:
    """Return the result of a transform along no axis: complex numbers, for RFFT floats."""
    dtype = aval_of(x).dtype
    if kind is FftType.RFFT:
        dtype = as_inexact(dtype, False)[0]
    if kind is FftType.RFFT or dtypes.is_complex(dtype):
        return convert_to(x, dtype)
    wide = dtypes.bit_width(dtype) == 64
    return convert_to(x, dtypes.complex128 if wide else dtypes.complex64)


def _compute_scale(norm: object, size: int, divided: bool) -> float:
    """Return the factor of the result; `divided`: the transform itself divides by `size`."""
    powers = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
    if norm not in powers:
        raise ValueError(
            f'{called_function()}: Invalid norm value {abbreviate(norm)}; should be "backward", "ortho" or "forward".'
        )
    power = powers[norm] if divided else -powers[norm]
    return float(size) ** power if size else 1.0


def _to_length(size: int) -> int:
    length = to_integer("a length", size)
    if length <= 0:
        raise ValueError(f"{called_function()}: Shape should be positive; got the length {length}")
    return length


def _transform_axes(kind: FftType, a: Any, s: Any, axes: Any, norm: object, *, hermitian: bool = False) -> Array:
    """Check the arguments and transform; `hermitian`: the operand or result is half of a conjugate-symmetric signal."""
    aval = operand_aval(a, 0)
    lengths = None if s is None else [_to_length(n) for n in s]
    if axes is None:
        axes = range(aval.ndim) if lengths is None else range(-len(lengths), 0)
    numbers = [axes_of(i, aval.ndim)[0] for i in axes]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{called_function()} does not support repeated axes. Got axes {tuple(axes)}.")
    if lengths is None:
        lengths = [aval.shape[i] for i in numbers]
        if kind is FftType.IRFFT and lengths:
            lengths[-1] = max(0, 2 * (lengths[-1] - 1))
    elif len(lengths) != len(numbers):
        raise ValueError(
            f"{called_function()}: s and axes have different lengths, {tuple(lengths)} and {tuple(axes)}"
        )
    divided = (kind in (FftType.IFFT, FftType.IRFFT)) is not hermitian
    scale = _compute_scale(norm, math.prod(lengths), divided)
    if not numbers and kind is FftType.RFFT and dtypes.is_complex(aval.dtype):
        raise ValueError(
            f"{called_function()} needs real numbers, got {aval.dtype.name}; take x.real, or the transform fftn"
        )
    if not numbers:
        return _convert_untransformed(a, kind)
    if hermitian:
        # hfft runs IRFFT, which divides by the size, and ihfft runs RFFT without a division. The scale corrects both.
        size = float(math.prod(lengths)) or 1.0
        scale = scale * size if kind is FftType.IRFFT else scale / size
    conjugates = (hermitian and kind is FftType.IRFFT, hermitian and kind is FftType.RFFT)
    return _transform(a, kind=kind, axes=tuple(numbers), sizes=tuple(lengths), scale=scale, conjugates=conjugates)


def _transform_axis(
    kind: FftType, a: ArrayLike, n: int | None, axis: int, norm: object, *, hermitian: bool = False
) -> Array:
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"{called_function()} does not support multiple axes, got axis={abbreviate(axis)}; use fftn and its kin"
        )
    lengths = None if n is None else (n,)
    axes = (-1 if axis is None else axis,) if axis is not None or hermitian else None
    return _transform_axes(kind, a, lengths, axes, norm, hermitian=hermitian)


def _transform_two_axes(kind: FftType, a: ArrayLike, s: object, axes: Sequence[int], norm: object) -> Array:
    if axes is None or len(axes) != 2:
        function = called_function()
        raise ValueError(
            f"{function} only supports 2 axes, got axes={abbreviate(axes)}; use {function[:-1]}n for others"
        )
    return _transform_axes(kind, a, s, axes, norm)


@inline_jit(static=("n", "axis", "norm"), public=True)
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the discrete Fourier transform along an axis.

    Args:
        a: an array of numbers.
        n: the length to cut or zero-pad `a` to; None for its own length.
        axis: the axis of the transform.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array, with `n` terms along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis, `n` is below 1, or `norm` has another value.

    Example:
        >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axis(FftType.FFT, a, n, axis, norm)


@inline_jit(static=("n", "axis", "norm"), public=True)
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `fft`.

    Args:
        a: an array of numbers.
        n: the length to cut or zero-pad `a` to; None for its own length.
        axis: the axis of the transform.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array, with `n` terms along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis, `n` is below 1, or `norm` has another value.

    Example:
        >>> jnp.fft.ifft(jnp.array([1.0, 0.0, 0.0, 0.0]))
        Array([0.25+0.j, 0.25+0.j, 0.25+0.j, 0.25+0.j], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axis(FftType.IFFT, a, n, axis, norm)


@inline_jit(static=("n", "axis", "norm"), public=True)
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the Fourier transform of real numbers along an axis.

    Args:
        a: an array of real numbers.
        n: the length to cut or zero-pad `a` to; None for its own length.
        axis: the axis of the transform.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array, with the first ``n // 2 + 1`` terms along the axis; the others are conjugates of these.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis, `n` is below 1, or `norm` has another value, or `a` is complex.

    Example:
        >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axis(FftType.RFFT, a, n, axis, norm)


@inline_jit(static=("n", "axis", "norm"), public=True)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `rfft`.

    Args:
        a: an array of numbers.
        n: the length of the result; None for twice the number of terms after the first.
        axis: the axis of the transform.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A real array of `n` numbers along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis, `n` is below 1, or `norm` has another value.

    Example:
        >>> jnp.fft.irfft(jnp.ones(3))
        Array([1., 0., 0., 0.], dtype=float32)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axis(FftType.IRFFT, a, n, axis, norm)


@inline_jit(static=("n", "axis", "norm"), public=True)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the Fourier transform of a conjugate-symmetric signal from its first half.

    Args:
        a: an array of numbers.
        n: the length of the result; None for twice the number of terms after the first.
        axis: the axis of the transform.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A real array of `n` terms along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis, `n` is below 1, or `norm` has another value.

    Example:
        >>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0, 0.0]))
        Array([1., 1., 1., 1., 1., 1.], dtype=float32)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axis(FftType.IRFFT, a, n, axis, norm, hermitian=True)


@inline_jit(static=("n", "axis", "norm"), public=True)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `hfft`.

    Args:
        a: an array of real numbers.
        n: the length to cut or zero-pad `a` to; None for its own length.
        axis: the axis of the transform.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array, with the first ``n // 2 + 1`` numbers along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis, `n` is below 1, or `norm` has another value, or `a` is complex.

    Example:
        >>> abs(jnp.fft.ihfft(jnp.array([1.0, 0.0, 0.0, 0.0])))
        Array([0.25, 0.25, 0.25], dtype=float32)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axis(FftType.RFFT, a, n, axis, norm, hermitian=True)


@inline_jit(static=("s", "axes", "norm"), public=True)
def fft2(a: ArrayLike, s: ArrayLike | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """Compute the discrete Fourier transform along two axes.

    Args:
        a: an array of numbers.
        s: the lengths along the axes; `a` is cut or zero-padded to them. None for the lengths of `a`.
        axes: the two axes.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value.

    Example:
        >>> jnp.fft.fft2(jnp.ones((2, 2)))
        Array([[4.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_two_axes(FftType.FFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def ifft2(a: ArrayLike, s: ArrayLike | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """Compute the inverse of `fft2`.

    Args:
        a: an array of numbers.
        s: the lengths along the axes; `a` is cut or zero-padded to them. None for the lengths of `a`.
        axes: the two axes.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value.

    Example:
        >>> jnp.fft.ifft2(jnp.ones((2, 2)))
        Array([[1.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_two_axes(FftType.IFFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def rfft2(a: ArrayLike, s: ArrayLike | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """Compute the Fourier transform of real numbers along two axes.

    Args:
        a: an array of real numbers.
        s: the lengths along the axes; `a` is cut or zero-padded to them. None for the lengths of `a`.
        axes: the two axes.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array, with the first half of the terms along the last of `axes`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value, or `a` is complex.

    Example:
        >>> jnp.fft.rfft2(jnp.ones((2, 2)))
        Array([[4.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_two_axes(FftType.RFFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def irfft2(a: ArrayLike, s: ArrayLike | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """Compute the inverse of `rfft2`.

    Args:
        a: an array of numbers.
        s: the lengths of the result along the axes. None for the lengths of `a`, for the last axis twice the number of
            terms after the first.
        axes: the two axes.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A real array.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value.

    Example:
        >>> jnp.fft.irfft2(jnp.ones((2, 2)))
        Array([[1., 0.],
               [0., 0.]], dtype=float32)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_two_axes(FftType.IRFFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Compute the discrete Fourier transform along axes.

    Args:
        a: an array of numbers.
        s: the lengths along the axes; `a` is cut or zero-padded to them. None for the lengths of `a`.
        axes: the axes of the transform; None for the last ``len(s)`` axes, or all without `s`.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value.

    Example:
        >>> jnp.fft.fftn(jnp.ones((2, 2)))
        Array([[4.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axes(FftType.FFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def ifftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """Compute the inverse of `fftn`.

    Args:
        a: an array of numbers.
        s: the lengths along the axes; `a` is cut or zero-padded to them. None for the lengths of `a`.
        axes: the axes of the transform; None for the last ``len(s)`` axes, or all without `s`.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value.

    Example:
        >>> jnp.fft.ifftn(jnp.ones((2, 2)))
        Array([[1.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axes(FftType.IFFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def rfftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """Compute the Fourier transform of real numbers along axes.

    Args:
        a: an array of real numbers.
        s: the lengths along the axes; `a` is cut or zero-padded to them. None for the lengths of `a`.
        axes: the axes of the transform; None for the last ``len(s)`` axes, or all without `s`.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A complex array, with the first half of the terms along the last of `axes`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value, or `a` is complex.

    Example:
        >>> jnp.fft.rfftn(jnp.ones((2, 2)))
        Array([[4.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]], dtype=complex64)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axes(FftType.RFFT, a, s, axes, norm)


@inline_jit(static=("s", "axes", "norm"), public=True)
def irfftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """Compute the inverse of `rfftn`.

    Args:
        a: an array of numbers.
        s: the lengths of the result along the axes. None for the lengths of `a`, for the last axis twice the number of
            terms after the first.
        axes: the axes of the transform; None for the last ``len(s)`` axes, or all without `s`.
        norm: ``"backward"``, the default, divides the inverse transform by the length; ``"forward"`` divides the
            forward transform; ``"ortho"`` divides both by its square root.

    Returns:
        A real array.

    Raises:
        TypeError: `a` is not an array.
        ValueError: axes are missing or repeated, a length is below 1, the numbers of lengths and axes differ, or
            `norm` has another value.

    Example:
        >>> jnp.fft.irfftn(jnp.ones((2, 2)))
        Array([[1., 0.],
               [0., 0.]], dtype=float32)

    Reference:
        J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series, Math.
        Comp. 19 (1965); lengths and scales as in ``numpy.fft``.
    """
    return _transform_axes(FftType.IRFFT, a, s, axes, norm)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]

_make_public(globals(), __all__)
