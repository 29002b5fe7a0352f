"""Convolution and correlation of sequences."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.arrays.shape import rev, squeeze
from xtrace._src.ops.contractions.convolution import conv_general_dilated
from xtrace._src.ops.elementwise.complex_numbers import conj
from xtrace.numpy.operands import cast_to

_MODES = ("full", "same", "valid")


@inline_jit
def _slide_kernel(x: Array, y: Array, *, flipped: bool, mode: str, precision: Any, types: Any, preferred: Any) -> Array:
    dtype, weak = types
    x, y = convert_to(x, dtype, weak), convert_to(y, dtype, weak)
    if not flipped and dtypes.is_complex(dtype):
        y = conj(y)
    # The shorter one is the kernel: convolution is symmetric, and the result of a correlation is reversed.
    exchanged = x.shape[0] < y.shape[0]
    if exchanged:
        x, y = y, x
    count = y.shape[0]
    pads = {"full": (count - 1, count - 1), "same": (count // 2, count - count // 2 - 1), "valid": (0, 0)}[mode]
    kernel = rev(y, (0,)) if flipped else y
    signal, window = [broadcast_in_dim(v, (1, 1, v.shape[0]), (2,)) for v in (x, kernel)]
    products = conv_general_dilated(
        signal, window, (1,), (pads,), precision=precision, preferred_element_type=preferred
    )
    if exchanged and not flipped:
        products = rev(products, (2,))
    return squeeze(products, (0, 1))


def _slide(
    a: ArrayLike, v: ArrayLike, mode: str, precision: object, preferred: object, flipped: bool
) -> Array:
    preferred = requested_dtype(preferred)
    avals, dtype, weak = common_dtype((a, v), as_inexact if preferred is None else None)
    if any(x.ndim != 1 for x in avals):
        raise ValueError(
            f"{called_function()}() only support 1-dimensional inputs; got shapes {avals[0].shape} and "
            f"{avals[1].shape}."
        )
    if not avals[0].size or not avals[1].size:
        raise ValueError(
            f"{called_function()}: inputs cannot be empty, got shapes {avals[0].shape} and {avals[1].shape}."
        )
    if mode not in _MODES:
        raise ValueError(f"{called_function()}: mode must be one of {list(_MODES)}, got {abbreviate(mode)}")
    operands = [cast_to(x, aval, dtype) for x, aval in zip((a, v), avals, strict=True)]
    return _slide_kernel(
        *operands, flipped=flipped, mode=mode, precision=precision, types=(dtype, weak), preferred=preferred
    )


@inline_jit(static=("mode", "precision", "preferred_element_type"), public=True)
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: object = None, preferred_element_type: object = None
) -> Array:
    """Compute the convolution of two vectors.

    Args:
        a, v: vectors, not empty.
        mode: ``"full"`` for every overlap, ``"same"`` for the length of the longer one, ``"valid"`` for whole
            overlaps.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype as a floating one.

    Returns:
        A vector.

    Raises:
        TypeError: an operand is not an array.
        ValueError: an operand is not a vector or is empty, or `mode` has another value.

    Example:
        >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 10.0]))
        Array([ 1., 12., 20.], dtype=float32)
    """
    return _slide(a, v, mode, precision, preferred_element_type, flipped=True)


@inline_jit(static=("mode", "precision", "preferred_element_type"), public=True)
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: object = None, preferred_element_type: object = None
) -> Array:
    """Compute the correlation of two vectors, the second one conjugated.

    Args:
        a, v: vectors, not empty.
        mode: ``"full"`` for every overlap, ``"same"`` for the length of the longer one, ``"valid"`` for whole
            overlaps.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype as a floating one.

    Returns:
        A vector.

    Raises:
        TypeError: an operand is not an array.
        ValueError: an operand is not a vector or is empty, or `mode` has another value.

    Example:
        >>> jnp.correlate(jnp.array([1.0, 2.0]), jnp.array([1.0, 10.0]))
        Array([21.], dtype=float32)
    """
    return _slide(a, v, mode, precision, preferred_element_type, flipped=False)
