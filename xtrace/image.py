"""Resampling of images: each output is a weighted mean of nearby inputs, axis by axis."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, canonical_shape, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.api.operators.promotion import as_inexact, promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Shape, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.contractions.contraction import Precision, PrecisionLike, dot_general
from xtrace._src.ops.reductions.reductions import add_elements
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.rounding import floor
from xtrace.numpy.elementwise.ufuncs import abs, clip, maximum, minimum, sin
from xtrace.numpy.indexing.indexing import take
from xtrace.numpy.manipulation.shapes import moveaxis

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The methods of resampling: the weights of the inputs near an output.

    ``NEAREST`` takes one input. ``AREA`` weighs inputs by their overlap with the output. The others are kernels:
    ``LINEAR`` a triangle, ``LANCZOS3`` and ``LANCZOS5`` windowed sinc functions of radius 3 and 5, ``CUBIC`` and
    ``CUBIC_PYTORCH`` Keys' cubic kernel with the parameters -0.5 and -0.75.

    Example:
        >>> xtrace.image.ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method with the name `s`, such as "bilinear"; ValueError if there is none."""
        method = _NAMES.get(s)
        if method is None:
            raise ValueError(f'Unknown resize method "{s}"; use one of {", ".join(_NAMES)}')
        return method


_NAMES = {
    "nearest": ResizeMethod.NEAREST, "linear": ResizeMethod.LINEAR, "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR, "triangle": ResizeMethod.LINEAR, "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5, "cubic": ResizeMethod.CUBIC, "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC, "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH, "tricubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


# Kernels: functions of the distance x >= 0 between an output and an input, in samples.


def _evaluate_triangle(x: Array) -> Array:
    return maximum(0, 1 - x)


def _make_cubic_kernel(a: float) -> Callable[[Array], Array]:
    """Return the cubic kernel of parameter `a` (Keys, Cubic Convolution Interpolation, 1981)."""

    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (((x - 5) * x + 8) * x - 4)
        return select_where(x >= 2, 0.0, select_where(x >= 1, far, near))

    return kernel


def _make_lanczos_kernel(radius: float) -> Callable[[Array], Array]:
    """Return the product of sinc(x) and sinc(x / radius), within the radius."""

    def kernel(x: Array) -> Array:
        angle = math.pi * x
        product = radius * sin(angle) * sin(angle / radius)
        positive = x > 1e-3
        # Near 0 the quotient is 1 to rounding.
        ratio = select_where(positive, product / select_where(positive, angle * angle, 1), 1)
        return select_where(x > radius, 0.0, ratio)

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _evaluate_triangle,
    ResizeMethod.LANCZOS3: _make_lanczos_kernel(3.0), ResizeMethod.LANCZOS5: _make_lanczos_kernel(5.0),
    ResizeMethod.CUBIC: _make_cubic_kernel(-0.5), ResizeMethod.CUBIC_PYTORCH: _make_cubic_kernel(-0.75),
}


def _choose_kernel(method: ResizeMethod, antialias: bool) -> Callable[[Array], Array]:
    return _KERNELS[ResizeMethod.CUBIC if antialias and method is ResizeMethod.CUBIC_PYTORCH else method]


def _compute_weights(
    count: int, wanted: int, scale: ArrayLike, translation: ArrayLike, method: ResizeMethod, antialias: bool,
    dtype: np.dtype[Any],
) -> Array:
    """Return the weight of each of `count` inputs (axis 0) for each of `wanted` outputs (axis 1)."""
    inverse = 1.0 / scale
    # For outputs farther apart than inputs, a wider kernel reads all inputs between them.
    width = maximum(inverse, 1.0) if antialias else 1.0
    centre = (iota(dtype, wanted) + 0.5) * inverse - translation * inverse - 0.5
    inputs = iota(dtype, count)[:, None]
    if method is ResizeMethod.AREA:
        reach = inverse / 2
        overlap = minimum(centre[None] + reach, inputs + 0.5) - maximum(centre[None] - reach, inputs - 0.5)
        weights = maximum(overlap, 0.0)
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        # Inputs beyond the edges equal the inputs at the edges.
        beyond = iota(dtype, count + 4)[:, None] - 2
        weights = _KERNELS[method](abs(clip(centre, -1, count)[None] - beyond))
        first, last = [add_elements(x, (0,))[None] for x in (weights[:2], weights[-2:])]
        return weights[2:-2] + select_where(inputs == 0, first, 0) + select_where(inputs == count - 1, last, 0)
    else:
        weights = _choose_kernel(method, antialias)(abs(centre[None] - inputs) / width)
    total = broadcast_in_dim(add_elements(weights, (0,)), (1, wanted), (1,))
    positive = abs(total) > 1000 * float(dtypes.finfo(dtypes.float32).eps)
    weights = select_where(positive, weights / select_where(total != 0, total, 1), 0)
    inside = (centre >= -0.5) & (centre <= count - 0.5)
    return select_where(inside[None], weights, 0)


def _apply_matrix(x: Array, axis: int, matrix: Array, precision: PrecisionLike) -> Array:
    """Multiply the vectors along `axis` of `x` by a matrix."""
    pairs = ((axis,), (0,)), ((), ())
    result = dot_general(x, matrix, pairs, precision=precision, preferred_element_type=x.dtype)
    return moveaxis(result, -1, axis)


def _take_nearest(image: ArrayLike, shape: Shape, axes: Shape) -> Array:
    result = to_array(promote(image)[0])
    for axis in axes:
        count, wanted = result.shape[axis], shape[axis]
        positions = floor((iota(dtypes.float32, wanted) + 0.5) * (count / max(wanted, 1)))
        result = take(result, convert_to(clip(positions, 0, count - 1), dtypes.int32), axis)
    return result


def _parse_method(method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    try:
        return ResizeMethod(method)
    except Exception:
        # The message of Enum would contain the whole repr.
        raise ValueError(f"{abbreviate(method)} is not a resize method; use one of {', '.join(_NAMES)}") from None


def _check_shape(shape: Shape, own: Shape) -> None:
    if len(shape) != len(own):
        raise ValueError(
            f"{called_function()}: shape must have length equal to the number of dimensions of image; {shape} vs {own}"
        )


@inline_jit(static=("shape", "spatial_dims", "method", "antialias", "precision"), public=True)
def scale_and_translate(
    image: ArrayLike, shape: ShapeLike, spatial_dims: Sequence[int], scale: ArrayLike, translation: ArrayLike,
    method: str | ResizeMethod, antialias: bool = True, precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resize and move an image: the point x, in pixels, goes to ``scale * x + translation``.

    Args:
        image: an array; integers become the default float.
        shape: the shape of the result, of the same rank.
        spatial_dims: the axes to scale.
        scale, translation: vectors with one number for each of these axes.
        method: a `ResizeMethod` or its name, except ``"nearest"``.
        antialias: whether to smooth the image along axes that shrink.
        precision: the precision of the matrix products.

    Returns:
        An array of `shape`, 0 outside of the image.

    Raises:
        TypeError: `image` is not an array.
        ValueError: there is no such method, or the shapes do not agree.

    Example:
        >>> move = jnp.array([1.0])
        >>> xtrace.image.scale_and_translate(jnp.arange(3.0), (3,), (0,), jnp.ones(1), move, "linear")
        Array([0., 0., 1.], dtype=float32)
    """
    chosen = _parse_method(method)
    if chosen is ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate: Nearest neighbor resampling is not supported here; use resize")
    own = operand_aval(image, 0).shape
    shape = canonical_shape(shape)
    _check_shape(shape, own)
    axes = tuple([canonical_axis(d, len(own)) for d in spatial_dims])
    for position, name, value in ((3, "scale", scale), (4, "translation", translation)):
        own_shape = operand_aval(value, position).shape
        if own_shape != (len(axes),):
            raise ValueError(f"scale_and_translate: {name} must have shape ({len(axes)},), got {own_shape}")
    result = to_array(promote(image, adjust=as_inexact)[0])
    scales, shifts = [convert_to(to_array(x), result.dtype) for x in (scale, translation)]
    for i, axis in enumerate(axes):
        matrix = _compute_weights(own[axis], shape[axis], scales[i], shifts[i], chosen, bool(antialias), result.dtype)
        result = _apply_matrix(result, axis, matrix, precision)
    return result


@inline_jit(static=("shape", "method", "antialias", "precision"), public=True)
def resize(
    image: ArrayLike, shape: ShapeLike, method: str | ResizeMethod, antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resize an image by resampling.

    Args:
        image: an array; integers become the default float, except with ``"nearest"``.
        shape: the shape of the result, of the same rank.
        method: a `ResizeMethod` or its name.
        antialias: whether to smooth the image along axes that shrink.
        precision: the precision of the matrix products.

    Returns:
        An array of `shape`.

    Raises:
        TypeError: `image` is not an array.
        ValueError: there is no such method, or the rank differs.

    Example:
        >>> xtrace.image.resize(jnp.array([1.0, 3.0]), (4,), "nearest")
        Array([1., 1., 3., 3.], dtype=float32)
    """
    own = operand_aval(image, 0).shape
    shape = canonical_shape(shape)
    _check_shape(shape, own)
    chosen = _parse_method(method)
    if chosen is ResizeMethod.NEAREST:
        return _take_nearest(image, shape, tuple([i for i, n in enumerate(shape) if n != own[i]]))
    result = to_array(promote(image, adjust=as_inexact)[0])
    for axis, (count, wanted) in enumerate(zip(own, shape, strict=True)):
        if count != wanted:
            ratio = wanted / count if wanted and count else 1.0
            matrix = _compute_weights(count, wanted, ratio, 0.0, chosen, bool(antialias), result.dtype)
            result = _apply_matrix(result, axis, matrix, precision)
    return result


_make_public(globals(), __all__)
