"""Frequencies of Fourier transforms, and shifts of frequency zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.devices import device_put
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.errors import ConcretizationTypeError
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import largest, to_count, to_size
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select
from xtrace.numpy.manipulation.rearrangement import roll
from xtrace.numpy.operands import axes_of, scalar_of

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


@inline_jit
def _compute_frequencies(d: ArrayLike, *, size: int, half: bool, dtype: np.dtype[Any]) -> Array:
    positions = iota(dtypes.int32, largest(size // 2 + 1 if half else size, 0))
    if not half:
        wrapped = lax.sub(positions, scalar_of(size, dtypes.int32))
        positions = select(lt(positions, scalar_of((size + 1) // 2, dtypes.int32)), positions, wrapped)
    own = dtypes.default_float(config.enable_x64.value)
    span = lax.mul(convert_to(d, own), scalar_of(size, own))
    return convert_to(lax.div(convert_to(positions, own), span), own if dtype is None else dtype)


def _make_frequencies(n: int, d: ArrayLike, dtype: object, device: object, half: bool) -> Array:
    if isinstance(n, Tracer):
        raise ConcretizationTypeError(
            f"{called_function()}: the result's length depends on n, which must not be traced"
        )
    try:
        size = to_size(to_count(n))
    except TypeError:
        raise ValueError(f"{called_function()}: n should be an integer, got {abbreviate(n)}") from None
    if isinstance(d, (list, tuple, str)):
        raise ValueError(f"{called_function()}: d must be a single number, got {abbreviate(d)}")
    spacing = operand_aval(d, 1)
    if spacing.ndim or dtypes.is_complex(spacing.dtype):
        raise TypeError(f"{called_function()}: d must be a real scalar, got {spacing.str_short(True)}")
    frequencies = _compute_frequencies(d, size=size, half=half, dtype=requested_dtype(dtype))
    return frequencies if device is None else device_put(frequencies, device)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: object = None) -> Array:
    """Return the frequencies of the terms of `fft`: zero and the positive ones, then the negative ones.

    Args:
        n: the number of samples, a Python integer.
        d: the distance of samples.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.

    Returns:
        A vector.

    Raises:
        ValueError: `n` is not an integer.

    Example:
        >>> jnp.fft.fftfreq(4)
        Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    return _make_frequencies(n, d, dtype, device, half=False)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: object = None) -> Array:
    """Return the frequencies of the terms of `rfft`.

    Args:
        n: the number of samples, a Python integer.
        d: the distance of samples.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.

    Returns:
        A vector.

    Raises:
        ValueError: `n` is not an integer.

    Example:
        >>> jnp.fft.rfftfreq(4)
        Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    return _make_frequencies(n, d, dtype, device, half=True)


def _shift(x: ArrayLike, axes: Axes, sign: int) -> Array:
    aval = operand_aval(x, 0)
    numbers = axes_of(axes, aval.ndim)
    return roll(x, [sign * (aval.shape[i] // 2) for i in numbers], numbers)


@inline_jit(static=("axes",), public=True)
def fftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """Move the term of frequency zero to the middle.

    Args:
        x: an array.
        axes: an axis or several; None for all.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has no such axis.

    Example:
        >>> jnp.fft.fftshift(jnp.array([0, 1, -2, -1]))
        Array([-2, -1,  0,  1], dtype=int32)
    """
    return _shift(x, axes, 1)


@inline_jit(static=("axes",), public=True)
def ifftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """Move the term in the middle to the front; the inverse of `fftshift`.

    Args:
        x: an array.
        axes: an axis or several; None for all.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has no such axis.

    Example:
        >>> jnp.fft.ifftshift(jnp.array([0, 1, -2, -1]))
        Array([-2, -1,  0,  1], dtype=int32)
    """
    return _shift(x, axes, -1)
