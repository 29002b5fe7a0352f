"""Discrete cosine transforms of type 2 and their inverses, by Fourier transforms of the same length.

Makhoul, "A fast cosine transform in one and two dimensions" (1980): put the elements of even index before the
elements of odd index in reverse order, take the Fourier transform, and multiply value k by exp(-iπk / 2n). Twice the
real part is the cosine transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import list_shape_entries
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.sizes import to_count
from xtrace._src.ops.elementwise.complex_numbers import complex as of_parts
from xtrace.numpy import fft as fourier
from xtrace.numpy.elementwise.complex_parts import real
from xtrace.numpy.manipulation.joins_and_splits import concatenate, stack
from xtrace.numpy.manipulation.padding import pad
from xtrace.numpy.manipulation.rearrangement import flip
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import axes_of, cast_to


def _rotate_values(x: Array, weights: np.ndarray, sign: int) -> Array:
    """Multiply value k along the last axis of `x` by ``weights[k] * exp(sign * iπk / 2n)``."""
    n = x.shape[-1]
    wide = dtypes.complex128 if dtypes.real_part_dtype(x.dtype) == dtypes.float64 else dtypes.complex64
    turns: np.ndarray = (weights * np.exp(sign * 0.5j * np.pi * np.arange(n) / n)).astype(wide)
    return x.astype(wide) * turns.reshape((1,) * (x.ndim - 1) + (n,))


def _make_orthogonal_weights(n: int) -> np.ndarray:
    """Return the factors that make the transform of `n` numbers orthogonal."""
    return np.where(np.arange(n) == 0, 1 / math.sqrt(4 * n), 1 / math.sqrt(2 * n))


def _transform_forward(x: Array, ortho: bool) -> Array:
    n = x.shape[-1]
    spectrum = fourier.fft(concatenate([x[..., ::2], flip(x[..., 1::2], -1)], -1))
    weights = 2 * (_make_orthogonal_weights(n) if ortho else np.ones(n))
    return real(_rotate_values(spectrum, weights, -1)).astype(x.dtype)


def _transform_backward(x: Array, ortho: bool) -> Array:
    n = x.shape[-1]
    weights = 2 * n * _make_orthogonal_weights(n) if ortho else np.where(np.arange(n) == 0, 0.5, 1.0)
    signal = real(fourier.ifft(_rotate_values(x, weights, 1))).astype(x.dtype)
    half = (n + 1) // 2
    even, odd = signal[..., :half], flip(signal[..., half:], -1)
    if n % 2:
        odd = concatenate([odd, even[..., :1]], -1)
    return stack([even, odd], -1).reshape((*x.shape[:-1], 2 * half))[..., :n]


@inline_jit
def _transform_axis(x: Array, *, axes: Shape, lengths: Shape, ortho: bool, inverse: bool) -> Array:
    if dtypes.is_complex(x.dtype):
        details: dict[str, Any] = {"axes": axes, "lengths": lengths, "ortho": ortho, "inverse": inverse}
        return of_parts(_transform_axis(x.real, **details), _transform_axis(x.imag, **details))
    step = _transform_backward if inverse else _transform_forward
    for axis, n in zip(axes, lengths, strict=True):
        moved = moveaxis(x, axis, -1)
        if n > moved.shape[-1]:
            moved = pad(moved, [(0, 0)] * (x.ndim - 1) + [(0, n - moved.shape[-1])])
        x = moveaxis(step(moved[..., :n], ortho), -1, axis)
    return x


def _check_and_transform(
    x: ArrayLike, type: int, s: int | Sequence[int] | None, axes: Axes, norm: str | None, inverse: bool
) -> Array:
    if type != 2:
        raise NotImplementedError(
            f"{called_function()}: only transforms of type 2 are implemented, got type={abbreviate(type)}"
        )
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{called_function()}: norm must be None, 'backward' or 'ortho', got {abbreviate(norm)}")
    (aval,), dtype, _ = common_dtype((x,), as_inexact)
    wanted: Shape = () if s is None else tuple([to_integer("s", n) for n in list_shape_entries(s)])
    if len(wanted) > aval.ndim:
        raise ValueError(f"{called_function()}: s has {len(wanted)} lengths, but x has shape {aval.shape}")
    if axes is None and s is not None:
        axes = tuple(range(aval.ndim - len(wanted), aval.ndim))
    transformed = axes_of(axes, aval.ndim)
    # Missing lengths are those of the last axes; SciPy requires a length for each axis.
    lengths = (*wanted[: len(transformed)], *[aval.shape[i] for i in transformed[len(wanted) :]])
    if min(lengths, default=1) < 1:
        raise TypeError(f"{called_function()}: lengths must be positive, got {lengths} for shape {aval.shape}")
    # Fourier transforms need at least 32 bits.
    wide = dtypes.float32 if dtypes.bit_width(dtype) < 32 else dtype
    return _transform_axis(
        cast_to(x, aval, wide), axes=transformed, lengths=lengths, ortho=norm == "ortho", inverse=inverse
    )


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the discrete cosine transform of type 2.

    Args:
        x: an array of real numbers.
        type: 2, the only type.
        n: the length to cut or zero-pad the axis to; None for its own length.
        axis: the axis.
        norm: ``"ortho"`` for an orthogonal transform; None or ``"backward"`` for the unscaled one.

    Returns:
        An array.

    Raises:
        NotImplementedError: another type is given.
        TypeError: a length is not positive, or `x` is not an array.
        ValueError: there is no such norm or axis.

    Example:
        >>> scipy.fft.dct(jnp.array([1.0, 1.0])).round()
        Array([4., 0.], dtype=float32)

    Reference:
        J. Makhoul, "A fast cosine transform in one and two dimensions" (1980).
    """
    return _check_and_transform(x, type, None if n is None else (to_count(n),), (axis,), norm, False)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `dct`.

    Args:
        x: an array of real numbers.
        type: 2, the only type.
        n: the length to cut or zero-pad the axis to; None for its own length.
        axis: the axis.
        norm: ``"ortho"`` for an orthogonal transform; None or ``"backward"`` for the unscaled one.

    Returns:
        An array.

    Raises:
        NotImplementedError: another type is given.
        TypeError: a length is not positive, or `x` is not an array.
        ValueError: there is no such norm or axis.

    Example:
        >>> scipy.fft.idct(jnp.array([4.0, 0.0])).round()
        Array([1., 1.], dtype=float32)

    Reference:
        J. Makhoul, "A fast cosine transform in one and two dimensions" (1980).
    """
    return _check_and_transform(x, type, None if n is None else (to_count(n),), (axis,), norm, True)


def dctn(
    x: ArrayLike, type: int = 2, s: int | Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Compute the discrete cosine transform of type 2 along several axes.

    Args:
        x: an array of real numbers.
        type: 2, the only type.
        s: the lengths to cut or zero-pad the axes to; None for their own lengths.
        axes: the axes; None for the last ones, one for each length in `s`, or all without `s`.
        norm: ``"ortho"`` for an orthogonal transform; None or ``"backward"`` for the unscaled one.

    Returns:
        An array.

    Raises:
        NotImplementedError: another type is given.
        TypeError: a length is not positive, or `x` is not an array.
        ValueError: there is no such norm or axis.

    Example:
        >>> scipy.fft.dctn(jnp.ones((2, 2))).round()
        Array([[16.,  0.],
               [ 0.,  0.]], dtype=float32)

    Reference:
        J. Makhoul, "A fast cosine transform in one and two dimensions" (1980).
    """
    return _check_and_transform(x, type, s, axes, norm, False)


def idctn(
    x: ArrayLike, type: int = 2, s: int | Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Compute the inverse of `dctn`.

    Args:
        x: an array of real numbers.
        type: 2, the only type.
        s: the lengths to cut or zero-pad the axes to; None for their own lengths.
        axes: the axes; None for the last ones, one for each length in `s`, or all without `s`.
        norm: ``"ortho"`` for an orthogonal transform; None or ``"backward"`` for the unscaled one.

    Returns:
        An array.

    Raises:
        NotImplementedError: another type is given.
        TypeError: a length is not positive, or `x` is not an array.
        ValueError: there is no such norm or axis.

    Example:
        >>> scipy.fft.idctn(jnp.ones((1, 1))).round(2)
        Array([[0.25]], dtype=float32)

    Reference:
        J. Makhoul, "A fast cosine transform in one and two dimensions" (1980).
    """
    return _check_and_transform(x, type, s, axes, norm, True)
