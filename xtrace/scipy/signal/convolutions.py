"""Convolution and correlation along several axes, directly and by Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.sizes import largest, smallest
from xtrace._src.ops.arrays.shape import rev
from xtrace._src.ops.contractions.contraction import PrecisionLike
from xtrace._src.ops.contractions.convolution import conv_general_dilated
from xtrace.numpy import fft as fourier
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.elementwise.complex_parts import conj
from xtrace.numpy.operands import axes_of, cast_to

_MODES = ("full", "same", "valid")


def _promote_operands(in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[list[Array], list[Shape]]:
    """Return arrays of a common floating or complex dtype, and their shapes."""
    avals, dtype, _ = common_dtype((in1, in2), as_inexact)
    shapes = [x.shape for x in avals]
    if len(shapes[0]) != len(shapes[1]):
        raise ValueError(
            f"{called_function()}: in1 and in2 must have the same number of dimensions, got shapes {shapes[0]} and "
            f"{shapes[1]}"
        )
    if mode not in _MODES:
        raise ValueError(f"{called_function()}: mode must be one of {list(_MODES)}, got {abbreviate(mode)}")
    return [cast_to(x, aval, dtype) for x, aval in zip((in1, in2), avals, strict=True)], shapes


def _check_sizes(shapes: Sequence[Sequence[int]]) -> None:
    """Raise ValueError unless one shape is no larger than the other in every dimension."""
    pairs = list(zip(*shapes, strict=True))
    if not (all(m >= n for m, n in pairs) or all(m <= n for m, n in pairs)):
        raise ValueError(
            f"{called_function()}: one input must be smaller than the other in every dimension, got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )


@inline_jit
def _slide(x: Array, kernel: Array, *, mode: str, flipped: bool, late: bool, precision: PrecisionLike) -> Array:
    rank = x.ndim
    if not rank:
        return x * kernel
    if not flipped:
        kernel = rev(conj(kernel), tuple(range(rank)))
    sizes = list(zip(x.shape, kernel.shape, strict=True))
    pads = []
    # The smaller operand slides over the larger one. Of two equal shapes the first operand slides, except in
    # correlate2d.
    exchanged = all(m <= n for m, n in sizes) and not (late and x.shape == kernel.shape)
    for m, n in sizes:
        start = {"full": 0, "same": (n - 1 + late) // 2, "valid": smallest(m, n) - 1}[mode]
        size = {"full": m + n - 1, "same": m, "valid": largest(m, n) - smallest(m, n) + 1}[mode]
        beyond = (m if exchanged else n) - 1
        pads.append((beyond - start, start + size - largest(m, n)))
    if exchanged:
        x, kernel = kernel, x
    convolved = conv_general_dilated(
        x[None, None], rev(kernel, tuple(range(rank)))[None, None], (1,) * rank, pads, precision=precision
    )
    return convolved[0, 0]


def _convolve_directly(
    in1: ArrayLike, in2: ArrayLike, mode: str, precision: PrecisionLike, flipped: bool, rank: int | None = None
) -> Array:
    (x, y), shapes = _promote_operands(in1, in2, mode)
    if rank is not None and len(shapes[0]) != rank:
        raise ValueError(
            f"{called_function()}: inputs must have {rank} dimensions, got shapes {shapes[0]} and {shapes[1]}"
        )
    if 0 in shapes[0] or 0 in shapes[1]:
        raise ValueError(f"{called_function()}: inputs cannot be empty, got shapes {shapes[0]} and {shapes[1]}")
    _check_sizes(shapes)
    # If the excess is odd, correlate2d drops the extra element at the front.
    return _slide(x, y, mode=mode, flipped=flipped, late=rank == 2 and not flipped, precision=precision)


def _convolve_with_method(
    in1: ArrayLike, in2: ArrayLike, mode: str, method: str, precision: PrecisionLike, flipped: bool
) -> Array:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{called_function()}: method must be 'auto', 'direct' or 'fft', got {abbreviate(method)}")
    if method != "fft":
        return _convolve_directly(in1, in2, mode, precision, flipped)
    if not flipped:
        (in1, in2), shapes = _promote_operands(in1, in2, mode)
        in2 = conj(rev(in2, tuple(range(len(shapes[1])))))
    return fftconvolve(in1, in2, mode)


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """Compute the convolution of two arrays.

    Args:
        in1, in2: arrays of one rank; integers become floats.
        mode: ``"full"``, ``"same"`` for the middle part of the size of `in1`, or ``"valid"`` without zeros beyond the
            edges.
        method: ``"fft"`` for Fourier transforms; ``"direct"`` and ``"auto"`` for sums of products.
        precision: a `Precision` of products, its name, a pair, or None.

    Returns:
        An array of the promoted floating or complex dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: there is no such mode or method, an array is empty, the ranks differ, or neither is
            smaller in every dimension.

    Example:
        >>> scipy.signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
        Array([1., 3., 2.], dtype=float32)

    Reference:
        A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing, 3rd ed. (2010), section 2.3.
    """
    return _convolve_with_method(in1, in2, mode, method, precision, True)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """Compute the correlation of two arrays, the second one conjugated.

    Args:
        in1, in2: arrays of one rank; integers become floats.
        mode: ``"full"``, ``"same"`` for the middle part of the size of `in1`, or ``"valid"`` without zeros beyond the
            edges.
        method: ``"fft"`` for Fourier transforms; ``"direct"`` and ``"auto"`` for sums of products.
        precision: a `Precision` of products, its name, a pair, or None.

    Returns:
        An array of the promoted floating or complex dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: there is no such mode or method, an array is empty, the ranks differ, or neither is
            smaller in every dimension.

    Example:
        >>> scipy.signal.correlate(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
        Array([1., 3., 2.], dtype=float32)

    Reference:
        A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing, 3rd ed. (2010), section 2.3.
    """
    return _convolve_with_method(in1, in2, mode, method, precision, False)


def _check_boundary(boundary: str, fillvalue: float) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{called_function()}: only boundary='fill' with fillvalue=0 is implemented, got {abbreviate(boundary)} "
            f"and {abbreviate(fillvalue)}"
        )


def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Compute the convolution of two matrices.

    Args:
        in1, in2: matrices; integers become floats.
        mode: ``"full"``, ``"same"`` for the middle part of the size of `in1`, or ``"valid"`` without zeros beyond the
            edges.
        boundary: ``"fill"``, the only kind.
        fillvalue: 0, the only value.
        precision: a `Precision` of products, its name, a pair, or None.

    Returns:
        A matrix.

    Raises:
        NotImplementedError: another boundary or value is given.
        TypeError: an operand is not an array.
        ValueError: there is no such mode, a matrix is empty, or neither is smaller in every dimension.

    Example:
        >>> scipy.signal.convolve2d(jnp.ones((1, 2)), jnp.ones((1, 2)))
        Array([[1., 2., 1.]], dtype=float32)

    Reference:
        A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing, 3rd ed. (2010), section 2.3.
    """
    _check_boundary(boundary, fillvalue)
    return _convolve_directly(in1, in2, mode, precision, True, 2)


def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Compute the correlation of two matrices, the second one conjugated.

    Args:
        in1, in2: matrices; integers become floats.
        mode: ``"full"``, ``"same"`` for the middle part of the size of `in1`, or ``"valid"`` without zeros beyond the
            edges.
        boundary: ``"fill"``, the only kind.
        fillvalue: 0, the only value.
        precision: a `Precision` of products, its name, a pair, or None.

    Returns:
        A matrix.

    Raises:
        NotImplementedError: another boundary or value is given.
        TypeError: an operand is not an array.
        ValueError: there is no such mode, a matrix is empty, or neither is smaller in every dimension.

    Example:
        >>> scipy.signal.correlate2d(jnp.ones((1, 2)), jnp.ones((1, 2)))
        Array([[1., 2., 1.]], dtype=float32)

    Reference:
        A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing, 3rd ed. (2010), section 2.3.
    """
    _check_boundary(boundary, fillvalue)
    return _convolve_directly(in1, in2, mode, precision, False, 2)


@inline_jit
def _convolve_by_spectra(x: Array, y: Array, *, axes: tuple[int, ...], mode: str) -> Array:
    sizes = [x.shape[i] + y.shape[i] - 1 for i in axes]
    shape = [max(m, n) for m, n in zip(x.shape, y.shape, strict=True)]
    for i, n in zip(axes, sizes, strict=True):
        shape[i] = n
    if 0 in x.shape or 0 in y.shape:
        return zeros([max(n, 0) for n in shape], x.dtype)
    if dtypes.is_complex(x.dtype):
        convolved = fourier.ifftn(fourier.fftn(x, sizes, axes) * fourier.fftn(y, sizes, axes), sizes, axes)
    else:
        convolved = fourier.irfftn(fourier.rfftn(x, sizes, axes) * fourier.rfftn(y, sizes, axes), sizes, axes)
    if mode == "full":
        return convolved
    wanted = list(shape)
    for i in axes:
        wanted[i] = x.shape[i] if mode == "same" else abs(x.shape[i] - y.shape[i]) + 1
    starts = [(n - w) // 2 for n, w in zip(shape, wanted, strict=True)]
    return convolved[tuple([slice(start, start + w) for start, w in zip(starts, wanted, strict=True)])]


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axes = None) -> Array:
    """Compute the convolution of two arrays by Fourier transforms.

    Args:
        in1, in2: arrays of one rank; integers become floats.
        mode: ``"full"``, ``"same"`` for the middle part of the size of `in1`, or ``"valid"`` without zeros beyond the
            edges.
        axes: the axes to convolve; None for all. The others have equal sizes.

    Returns:
        An array; 0 for empty arrays.

    Raises:
        TypeError: an operand is not an array.
        ValueError: there is no such mode or axis, or the shapes do not agree.

    Example:
        >>> scipy.signal.fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round()
        Array([1., 3., 2.], dtype=float32)

    Reference:
        A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing, 3rd ed. (2010), section 8.7.
    """
    (x, y), shapes = _promote_operands(in1, in2, mode)
    chosen = axes_of(axes, len(shapes[0]))
    kept = [[n for i, n in enumerate(shape) if i not in chosen] for shape in shapes]
    if kept[0] != kept[1]:
        raise ValueError(
            f"fftconvolve: axes that are not convolved must have equal sizes, got shapes {shapes[0]} and {shapes[1]} "
            f"and axes {chosen}"
        )
    if not chosen:
        return x * y
    if mode == "valid":
        _check_sizes([[shape[i] for i in chosen] for shape in shapes])
    return _convolve_by_spectra(x, y, axes=chosen, mode=mode)
