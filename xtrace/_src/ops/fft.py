"""Discrete Fourier transforms over the last axes."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from xtrace._src.algebra.families import mul
from xtrace._src.algebra.vector_space import AXIS_FIRST, broadcast_in_dim, convert_to, linear, operand_aval
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.core.shardings.sharding_rules import resize
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.elementwise.complex_numbers import conj
from xtrace._src.ops.elementwise.elementwise import div
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


class FftType(enum.IntEnum):
    """The kinds of Fourier transform: complex, inverse complex, real to complex, and complex to real.

    Example:
        >>> lax.fft(jnp.ones(2), lax.FftType.RFFT, (2,))
        Array([2.+0.j, 0.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_names = {kind.name: kind for kind in FftType} | {kind.name.lower(): kind for kind in FftType}


def _fft_abstract(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    name, count = fft_type.name, len(fft_lengths)
    if count > 3:
        raise ValueError(
            f"fft: at most 3 axes are transformed at once, got fft_lengths {fft_lengths}; transform the other "
            "axes in a second call"
        )
    if x.ndim < count:
        raise ValueError(
            f"{name} input shape {x.shape} must have at least as many input dimensions as fft_lengths {fft_lengths}."
        )
    expected = (dtypes.float32, dtypes.float64) if fft_type is FftType.RFFT else (dtypes.complex64, dtypes.complex128)
    if x.dtype not in expected:
        raise ValueError(f"{name} input must be {expected[0].name} or {expected[1].name}, got {x.dtype.name}")
    leading, last = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    if fft_type is not FftType.IRFFT:
        if last != fft_lengths:
            raise ValueError(
                f"{name} input shape {x.shape} minor dimensions must be equal to fft_lengths {fft_lengths}"
            )
        if fft_type is not FftType.RFFT:
            return ShapedArray(x.shape, x.dtype)
        dtype = dtypes.complex64 if x.dtype == dtypes.float32 else dtypes.complex128
        return ShapedArray((*leading, *fft_lengths[:-1], _count_terms(fft_lengths[-1])), dtype)
    if last[:-1] != fft_lengths[:-1]:
        raise ValueError(
            f"IRFFT input shape {x.shape} minor dimensions must be equal to all except the last fft_length, got "
            f"fft_lengths={fft_lengths}"
        )
    if last[-1] != _count_terms(fft_lengths[-1]):
        raise ValueError(
            f"IRFFT input shape {x.shape}: the last dimension must be fft_lengths[-1] // 2 + 1 = "
            f"{_count_terms(fft_lengths[-1])}, got fft_lengths={fft_lengths}; slice or pad the spectrum first"
        )
    return ShapedArray((*leading, *fft_lengths), dtypes.real_part_dtype(x.dtype))


def _count_terms(length: int) -> int:
    """Return the number of non-redundant terms of a real signal's spectrum."""
    return length // 2 + 1 if length else 0


def _fft_emit(builder: FunctionBuilder, x: Value, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Value:
    aval = builder.results[0]
    if not aval.size:
        return builder.broadcast(builder.literal(0, ShapedArray((), aval.dtype)), aval.shape)
    return builder.line(
        f"stablehlo.fft {x.name}, type = {fft_type.name}, length = {attributes.list_text(fft_lengths)} : "
        f"({x.aval.mlir_type}) -> {aval.mlir_type}",
        aval,
    )


def _scalar(value: float, dtype: np.dtype[Any]) -> Literal:
    return scalar_literal(value, dtype)


def _multiplicity(length: int, like: Array) -> Array:
    """Return the multiplicity, 1 or 2, of each non-redundant term in the full spectrum, in the shape of `like`."""
    aval = aval_of(like)
    count = _count_terms(length)
    inner = count - 1 if length % 2 else count - 2
    parts = [(1, 1.0), (inner, 2.0), (count - 1 - inner, 1.0)]
    terms = concatenate([broadcast_in_dim(_scalar(v, aval.dtype), (n,), ()) for n, v in parts if n > 0], 0)
    return broadcast_in_dim(terms, aval.shape, (aval.ndim - 1,))


def _fft_transpose(cotangent: Array, x: Array, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if fft_type in (FftType.FFT, FftType.IFFT):
        # The matrix of the transform is symmetric.
        return fft.bind_positional((cotangent,), (fft_type, fft_lengths))
    size = math.prod(fft_lengths)
    if fft_type is FftType.RFFT:
        if not aval_of(cotangent).size:
            return None
        # IRFFT counts the terms with dropped conjugates twice and divides by the size; both are undone.
        once = div(conj(cotangent), _multiplicity(fft_lengths[-1], cotangent))
        transformed = fft.bind_positional((once,), (FftType.IRFFT, fft_lengths))
        aval = aval_of(transformed)
        return mul(transformed, broadcast_in_dim(_scalar(size, aval.dtype), aval.shape, ()))
    if not aval_of(cotangent).size:
        return None
    transformed = fft.bind_positional((cotangent,), (FftType.RFFT, fft_lengths))
    aval = aval_of(transformed)
    scale = broadcast_in_dim(_scalar(1 / size, aval.dtype), aval.shape, ())
    return conj(mul(mul(scale, _multiplicity(fft_lengths[-1], transformed)), transformed))


@linear(
    ("fft_type", "fft_lengths"), sharding=resize, abstract=_fft_abstract, emit=_fft_emit,
    transpose=_fft_transpose, batch=AXIS_FIRST, moves_elements=False,
)
def fft(x: ArrayLike, fft_type: object, fft_lengths: ShapeLike) -> Any:
    """Transform the last axes of an array, at most three, by a discrete Fourier transform.

    Args:
        x: an array; it is converted to complex numbers, or to real ones for RFFT.
        fft_type: an `FftType` or its name: FFT, IFFT, RFFT or IRFFT.
        fft_lengths: the sizes of the axes. For IRFFT the last one is the size n of the result, and `x` has the first
            ``n // 2 + 1`` terms.

    Returns:
        An array of complex numbers, or of real ones for IRFFT.

    Raises:
        TypeError: `x` is no array of an accepted dtype.
        ValueError: `fft_type` is unknown, or `fft_lengths` does not agree with the shape of `x`.

    Example:
        >>> lax.fft(jnp.array([1.0, 0.0]), "rfft", (2,))
        Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type not in _names:
            raise ValueError(
                f"Unknown FFT type {abbreviate(fft_type)}; it is one of {', '.join(k.name for k in FftType)}"
            )
        fft_type = _names[fft_type]
    elif not isinstance(fft_type, FftType):
        raise TypeError(f"Unknown FFT type value {abbreviate(fft_type)}; give a lax.FftType or its name")
    lengths = integer_tuple("fft_lengths", fft_lengths)
    aval = operand_aval(x, "x")
    dtype = aval.dtype
    if fft_type is FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft; take x.real, or use FFT")
        if not dtypes.is_inexact(dtype):
            dtype = dtypes.float64 if dtypes.bit_width(dtype) == 64 else dtypes.float32
    elif not dtypes.is_complex(dtype):
        dtype = dtypes.complex128 if dtypes.bit_width(dtype) == 64 else dtypes.complex64
    x = convert_to(x, dtype)
    return fft.bind_positional((x,), (fft_type, lengths)) if lengths else x
