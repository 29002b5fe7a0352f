"""Products of arrays in narrow floating-point types, with a scale for each block of elements.

The formats are MXFP8, of the OCP Microscaling Formats specification 1.0, and NVFP4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval, reshape, transpose
from xtrace._src.api.custom_rules.custom_vjp import custom_vjp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.contractions.contraction import Precision, dot_general
from xtrace._src.ops.elementwise.reinterpretation import bitcast_convert_type, optimization_barrier
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.arrays.creation import ones
from xtrace.numpy.elementwise.ufuncs import abs as absolute
from xtrace.numpy.elementwise.ufuncs import clip
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.rearrangement import repeat
from xtrace.numpy.reductions.reductions import max as largest

_RESULTS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


class _Format(NamedTuple):
    """A block format: the block size, the dtypes of elements and scales, and their largest values."""

    block_size: int
    data_type: Any
    scale_type: Any
    largest: float
    largest_scale: float


_FORMATS = {
    "nvfp4": _Format(16, dtypes.float4_e2m1fn, dtypes.float8_e4m3fn, 6.0, 448.0),
    "mxfp8": _Format(32, dtypes.float8_e4m3fn, dtypes.float8_e8m0fnu, 448.0, 2.0**127),
}


@dataclass
class BlockScaleConfig:
    """The quantization of an operand of `scaled_dot_general`; made by `get_scaled_dot_general_config`."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """Return the quantization of an operand by name.

    Args:
        mode: ``"nvfp4"``: blocks of 16 elements of float4_e2m1fn with scales in float8_e4m3fn; ``"mxfp8"``: blocks of
            32 elements of float8_e4m3fn with powers of two as scales.
        global_scale: for ``"nvfp4"``, a number, or an array of one number, that first divides the elements; None for 1.

    Returns:
        A configuration for `scaled_dot_general`.

    Raises:
        ValueError: there is no such mode, or `global_scale` is given for ``"mxfp8"``.

    Example:
        >>> nn.get_scaled_dot_general_config("mxfp8").block_size
        32
    """
    form = _FORMATS.get(mode)
    if form is None:
        raise ValueError(f"get_scaled_dot_general_config: Unsupported mode: {mode}; write 'nvfp4' or 'mxfp8'")
    scale = None
    if mode == "nvfp4":
        scale = ones(1, dtypes.float32) if global_scale is None else global_scale
        aval = operand_aval(scale, 1)
        if aval.size != 1:
            raise ValueError(
                f"get_scaled_dot_general_config: global_scale must be one number, got an array of shape {aval.shape}"
            )
    return BlockScaleConfig(mode, form.block_size, form.data_type, form.scale_type, scale)


# Products


def _check_operands(lhs: ShapedArray, rhs: ShapedArray, lhs_scales: ShapedArray, rhs_scales: ShapedArray) -> None:
    shapes = [x.shape for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(len(s) != 3 for s in shapes):
        raise ValueError(
            "scaled_matmul requires all inputs to be 3-dimensional arrays, (B, M, K), (B, N, K), (B, M, K_a) and "
            f"(B, N, K_b), but got shapes {', '.join(map(str, shapes))}"
        )
    a, b, own_a, own_b = shapes
    if (a[0], a[2]) != (b[0], b[2]):
        raise ValueError(
            "scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) dimensions, but got "
            f"shapes {a} and {b}"
        )
    if (own_a[0], own_a[2]) != (own_b[0], own_b[2]):
        raise ValueError(
            "scaled_matmul requires scales to have matching batch (B) and contract (K) dimensions, but got shapes "
            f"{own_a} and {own_b}"
        )
    if own_a[:2] != a[:2] or own_b[:2] != b[:2]:
        raise ValueError(
            "scaled_matmul requires scales to match non-contract dimensions of inputs, but got shapes "
            f"a: {a}, b: {b}, a_scales: {own_a}, b_scales: {own_b}"
        )
    if own_a[2] == 0 or a[2] % own_a[2]:
        raise ValueError(
            f"scaled_matmul requires the number of scales to divide the number of elements, but got {own_a[2]} scales "
            f"in shape {own_a} for {a[2]} elements in shape {a}"
        )


def _dequantize(x: Any, scales: Any) -> Array:
    """Return the values of quantized elements, in float32."""
    wide = repeat(convert_to(to_array(scales), dtypes.float32), x.shape[-1] // scales.shape[-1], axis=-1)
    return convert_to(to_array(x), dtypes.float32) * wide


@inline_jit(static=("preferred_element_type",), public=True)
def scaled_matmul(
    lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike | None = dtypes.float32,
) -> Array:
    """Multiply batches of matrices whose elements have a scale for each block.

    Args:
        lhs, rhs: arrays (B, M, K) and (B, N, K).
        lhs_scales, rhs_scales: arrays (B, M, S) and (B, N, S), for blocks of K / S elements.
        preferred_element_type: the dtype of the result; products and sums are float32.

    Returns:
        An array (B, M, N).

    Raises:
        TypeError: `preferred_element_type` is another dtype than float32, bfloat16 and float16.
        ValueError: the shapes do not agree.

    Example:
        >>> x, scales = jnp.ones((1, 2, 32)), jnp.full((1, 2, 1), 2.0)
        >>> nn.scaled_matmul(x, x, scales, scales)
        Array([[[128., 128.],
                [128., 128.]]], dtype=float32)
    """
    _check_operands(*[operand_aval(x, i) for i, x in enumerate((lhs, rhs, lhs_scales, rhs_scales))])
    a, b = _dequantize(lhs, lhs_scales), _dequantize(rhs, rhs_scales)
    product = dot_general(a, b, (((2,), (2,)), ((0,), (0,))), Precision.HIGHEST)
    return convert_to(product, requested_dtype(preferred_element_type))


# Quantization


def _round_up_to_power_of_two(x: Array) -> tuple[Any, Any]:
    """Round float32 numbers up to powers of two, at least 2⁻¹²⁷; return the powers and their inverses.

    Both come from the exponent bits, because quotients and logarithms round. The byte n is 2ⁿ⁻¹²⁷ in float8_e8m0fnu.
    """
    bits = bitcast_convert_type(x, dtypes.uint32)
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    # Subnormal numbers up to 2⁻¹²⁷ have the exponent 0, which stands for 2⁻¹²⁷.
    rounds_up = (fraction > where(exponent == 0, 0x400000, 0)) & (exponent < 254)
    exponent = where(rounds_up, exponent + 1, exponent)
    scales = bitcast_convert_type(convert_to(exponent, dtypes.uint8), dtypes.float8_e8m0fnu)
    return scales, bitcast_convert_type((254 - exponent) << 23, dtypes.float32)


def _quantize(x: Array, mode: str, global_scale: Array | None) -> tuple[Any, Any]:
    """Quantize an array (B, M, K) in the format `mode`; return the elements and the scales of their blocks."""
    form = _FORMATS[mode]
    batch, rows, size = x.shape
    if size % form.block_size:
        raise ValueError(
            f"scaled_dot_general: the number of contracted elements must be a multiple of {form.block_size}, the block "
            f"size of {mode}, but is {size}. Gradients also contract the free axes"
        )
    x = reshape(convert_to(x, dtypes.float32), (batch, rows, size // form.block_size, form.block_size))
    if global_scale is not None:
        x = x / global_scale
    needed = largest(absolute(x), axis=-1, keepdims=True) / form.largest
    if mode == "mxfp8":
        scales, inverse = _round_up_to_power_of_two(needed)
        x = x * inverse
    else:
        # The barrier keeps XLA from dividing by the scales before they are rounded.
        scales = optimization_barrier(convert_to(clip(needed, 0, form.largest_scale), form.scale_type))
        rounded = convert_to(scales, dtypes.float32)
        x = where(rounded == 0, 0, x / where(rounded == 0, 1, rounded))
    elements = convert_to(clip(x, -form.largest, form.largest), form.data_type)
    return reshape(elements, (batch, rows, size)), reshape(scales, (batch, rows, size // form.block_size))


class _Plan(NamedTuple):
    """The modes of both operands and the cotangent, and the type of the result."""

    lhs: str
    rhs: str
    cotangent: str
    dtype: Any


def _quantize_and_multiply(
    lhs: Array, rhs: Array, modes: tuple[str, str], scales: Sequence[Any], dtype: np.dtype[Any]
) -> Array:
    (a, a_scales), (b, b_scales) = [
        _quantize(x, mode, scale) for x, mode, scale in zip((lhs, rhs), modes, scales, strict=True)
    ]
    product = scaled_matmul(a, b, a_scales, b_scales, dtype)
    for scale in scales:
        product = product if scale is None else product * convert_to(scale, dtype)
    return product


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _multiply_matrices(plan: _Plan, lhs: Array, rhs: Array, scales: Sequence[Array]) -> Array:
    return _quantize_and_multiply(lhs, rhs, (plan.lhs, plan.rhs), scales[:2], plan.dtype)


def _multiply_and_save(plan: _Plan, lhs: Array, rhs: Array, scales: tuple[Array, ...]) -> tuple[Any, Any]:
    return _multiply_matrices(plan, lhs, rhs, scales), (lhs, rhs, scales)


def _swap_axes(x: Array) -> Array:
    return transpose(x, (0, 2, 1))


def _zero_where_clipped(cotangent: Array, x: Array, mode: str, global_scale: Array) -> Array:
    form = _FORMATS[mode]
    return where(absolute(x) <= global_scale * form.largest * form.largest_scale, cotangent, 0)


def _compute_cotangents(plan: _Plan, saved: Any, cotangent: Array) -> Any:
    """Return the cotangents of the operands, as if quantization were the identity.

    These products are quantized as well, except for nvfp4: its 16 values are too few for gradients.
    """
    lhs, rhs, scales = saved
    if plan.lhs == "nvfp4" or plan.rhs == "nvfp4":
        wide = convert_to(cotangent, dtypes.float32)
        lhs_cotangent = dot_general(wide, convert_to(rhs, dtypes.float32), (((2,), (1,)), ((0,), (0,))))
        rhs_cotangent = dot_general(wide, convert_to(lhs, dtypes.float32), (((1,), (1,)), ((0,), (0,))))
        rows = ((lhs_cotangent, lhs, plan.lhs, scales[0]), (rhs_cotangent, rhs, plan.rhs, scales[1]))
        cotangents = [
            ct if scale is None else _zero_where_clipped(ct, x, mode, scale) for ct, x, mode, scale in rows
        ]
    else:
        lhs_modes, rhs_modes = (plan.cotangent, plan.rhs), (plan.cotangent, plan.lhs)
        cotangents = [
            _quantize_and_multiply(cotangent, _swap_axes(rhs), lhs_modes, (scales[2], scales[1]), plan.dtype),
            _quantize_and_multiply(
                _swap_axes(cotangent), _swap_axes(lhs), rhs_modes, (scales[2], scales[0]), plan.dtype
            ),
        ]
    return convert_to(cotangents[0], lhs.dtype), convert_to(cotangents[1], rhs.dtype), None


_multiply_matrices.defvjp(_multiply_and_save, _compute_cotangents)


class _Axes(NamedTuple):
    """The axis numbers of an operand, by role."""

    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracted: tuple[int, ...]


def _classify_axes(contracted: Sequence[int], batch: Sequence[int], ndim: int) -> _Axes:
    contracted, batch = [tuple([canonical_axis(i, ndim) for i in x]) for x in (contracted, batch)]
    return _Axes(batch, tuple([i for i in range(ndim) if i not in contracted + batch]), contracted)


def _as_matrices(x: Array, axes: _Axes) -> Array:
    """Reshape `x` to three axes: batch, free and contracted."""
    shape = [math.prod([x.shape[i] for i in part]) for part in axes]
    return reshape(transpose(x, (*axes.batch, *axes.free, *axes.contracted)), shape)


@inline_jit
def _contract_axes(lhs: Any, rhs: Any, scales: Any, *, dimension_numbers: Any, plan: _Plan) -> Array:
    (left, right), (left_batch, right_batch) = dimension_numbers
    a, b = _classify_axes(left, left_batch, lhs.ndim), _classify_axes(right, right_batch, rhs.ndim)
    scales = tuple([None if s is None else reshape(convert_to(to_array(s), dtypes.float32), ()) for s in scales])
    product = _multiply_matrices(plan, _as_matrices(lhs, a), _as_matrices(rhs, b), scales)
    kept = [lhs.shape[i] for i in a.batch + a.free] + [rhs.shape[i] for i in b.free]
    return reshape(product, kept)


def scaled_dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any, preferred_element_type: DTypeLike | None = dtypes.float32,
    configs: list[BlockScaleConfig] | None = None, implementation: str | None = None,
) -> Array:
    """Multiply operands, quantized in blocks, along contracted axes.

    Derivatives treat quantization as the identity; with mxfp8 they quantize their own products, too.

    Args:
        lhs, rhs: floating arrays.
        dimension_numbers: the axes, as in `lax.dot_general`.
        preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
        configs: three results of `get_scaled_dot_general_config`, for lhs, rhs and the cotangent of the result; None
            for no quantization.
        implementation: without effect.

    Returns:
        An array.

    Raises:
        TypeError: `preferred_element_type` is another dtype.
        ValueError: the contracted axes hold no whole number of blocks.

    Example:
        >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
        >>> x = jnp.ones((1, 2, 32))
        >>> nn.scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,))), configs=configs)
        Array([[[32., 32.],
                [32., 32.]]], dtype=float32)
    """
    avals = [operand_aval(x, i) for i, x in enumerate((lhs, rhs))]
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    dtype = dtypes.resolve(preferred_element_type)
    if dtype not in _RESULTS:
        raise TypeError(
            "scaled_dot_general: Only support preferred_element_type in (float32, bfloat16, float16), but got "
            f"{dtype.name}"
        )
    if len(configs) != 3:
        raise ValueError(
            "scaled_dot_general: configs must be three: for the left operand, the right operand and the cotangent; got "
            f"{len(configs)}"
        )
    (left, right), (left_batch, right_batch) = dimension_numbers
    pairs = [*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)]
    if any(avals[0].shape[i] != avals[1].shape[j] for i, j in pairs):
        raise TypeError(
            "scaled_dot_general requires contracting and batch dimensions to have the same shape, got "
            f"{avals[0].str_short(True)} and {avals[1].str_short(True)} with {dimension_numbers}"
        )
    plan = _Plan(configs[0].mode, configs[1].mode, configs[2].mode, dtype)
    numbers = ((tuple(left), tuple(right)), (tuple(left_batch), tuple(right_batch)))
    scales = tuple([c.global_scale for c in configs])
    return _contract_axes(lhs, rhs, scales, dimension_numbers=numbers, plan=plan)
