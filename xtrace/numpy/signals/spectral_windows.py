"""Window functions: weights of a signal's samples that fall off towards both ends."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import absolute, add, multiply, subtract, true_divide
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.trace import Tracer
from xtrace.numpy.arrays.creation import ones
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.elementwise.special_functions import i0
from xtrace.numpy.elementwise.ufuncs import cos, maximum, sqrt


def _to_length(M: Any) -> int:
    if isinstance(M, Tracer):
        raise explain.concretization(M, f"numpy.{called_function()} as the length M, which must be known while tracing")
    count = int(M)
    if count < 0:
        raise TypeError(f"{called_function()}: the length M must not be negative, got {count}")
    return count


def _count_samples(count: int) -> Array:
    return arange(count, dtype=dtypes.default_float(config.enable_x64.value))


@inline_jit
def _sample_cosine_window(*, count: int, weights: tuple[float, ...]) -> Array:
    """Return the sum of `weights` times the cosines of multiples of an angle from 0 to 2π."""
    def term(i: int) -> Array:
        angle = true_divide(multiply(_count_samples(count), 2 * math.pi * i), count - 1)
        return multiply(cos(angle), weights[i])

    total = add(weights[0], term(1))
    for i in range(2, len(weights)):
        total = add(total, term(i))
    return total


def _make_cosine_window(M: object, weights: tuple[float, ...]) -> Array:
    count = _to_length(M)
    return ones(count) if count <= 1 else _sample_cosine_window(count=count, weights=weights)


def blackman(M: ArrayLike) -> Array:
    """Return the samples of Blackman's window, 0.42 - 0.5 cos(t) + 0.08 cos(2t) for t from 0 to 2π.

    Args:
        M: the number of samples; fractions are rounded down.

    Returns:
        A vector of the default floating dtype.

    Raises:
        ConcretizationTypeError: `M` is traced.
        TypeError: `M` is negative.

    Example:
        >>> jnp.blackman(3)[1].round(3)
        Array(1., dtype=float32)

    Reference:
        F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc. IEEE 66
        (1978).
    """
    return _make_cosine_window(M, (0.42, -0.5, 0.08))


def hamming(M: ArrayLike) -> Array:
    """Return the samples of Hamming's window, 0.54 - 0.46 cos(t) for t from 0 to 2π.

    Args:
        M: the number of samples; fractions are rounded down.

    Returns:
        A vector of the default floating dtype.

    Raises:
        ConcretizationTypeError: `M` is traced.
        TypeError: `M` is negative.

    Example:
        >>> jnp.hamming(3)[1].round(3)
        Array(1., dtype=float32)

    Reference:
        F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc. IEEE 66
        (1978).
    """
    return _make_cosine_window(M, (0.54, -0.46))


def hanning(M: ArrayLike) -> Array:
    """Return the samples of Hann's window, 0.5 - 0.5 cos(t) for t from 0 to 2π.

    Args:
        M: the number of samples; fractions are rounded down.

    Returns:
        A vector of the default floating dtype.

    Raises:
        ConcretizationTypeError: `M` is traced.
        TypeError: `M` is negative.

    Example:
        >>> jnp.hanning(3).round(3)
        Array([0., 1., 0.], dtype=float32)

    Reference:
        F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc. IEEE 66
        (1978).
    """
    return _make_cosine_window(M, (0.5, -0.5))


def bartlett(M: ArrayLike) -> Array:
    """Return the samples of Bartlett's window, which rises from 0 to 1 and falls again.

    Args:
        M: the number of samples; fractions are rounded down.

    Returns:
        A vector of the default floating dtype.

    Raises:
        ConcretizationTypeError: `M` is traced.
        TypeError: `M` is negative.

    Example:
        >>> jnp.bartlett(3).round(3)
        Array([0., 1., 0.], dtype=float32)

    Reference:
        F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc. IEEE 66
        (1978).
    """
    count = _to_length(M)
    return ones(count) if count <= 1 else _sample_triangle(count=count)


@inline_jit
def _sample_triangle(*, count: int) -> Array:
    return subtract(1.0, absolute(subtract(true_divide(multiply(_count_samples(count), 2.0), count - 1), 1.0)))


def kaiser(M: ArrayLike, beta: ArrayLike) -> Array:
    """Return the samples of Kaiser's window, I₀(β sqrt(1 - t²)) / I₀(β) for t from -1 to 1.

    Args:
        M: the number of samples; fractions are rounded down.
        beta: the shape β, a number.

    Returns:
        A vector of the default floating dtype.

    Raises:
        ConcretizationTypeError: `M` is traced.
        TypeError: `M` is negative.

    Example:
        >>> jnp.kaiser(3, 0.0).round(3)
        Array([1., 1., 1.], dtype=float32)

    Reference:
        F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc. IEEE 66
        (1978).
    """
    count = _to_length(M)
    return ones(count) if count <= 1 else _sample_bessel_window(beta, count=count)


@inline_jit
def _sample_bessel_window(beta: Any, *, count: int) -> Array:
    middle = 0.5 * (count - 1)
    place = true_divide(subtract(_count_samples(count), middle), middle)
    inside = maximum(subtract(1.0, multiply(place, place)), 0.0)
    return true_divide(i0(multiply(beta, sqrt(inside))), i0(beta))
