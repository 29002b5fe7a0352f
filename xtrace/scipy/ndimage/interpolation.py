"""Interpolation between the samples of images."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import check_broadcast, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.ops.elementwise.elementwise import round as rounded
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.elementwise.rounding import floor
from xtrace.numpy.elementwise.ufuncs import clip, mod
from xtrace.numpy.indexing.where import where


def _mirror_indices(i: Array, n: int) -> Array:
    """Return indices reflected about the centres of the first and the last sample."""
    distance = n - 1
    return abs(mod(i + distance, max(2 * distance, 1)) - distance)


# By mode: the index of the sample that replaces a sample out of bounds.
_OUTSIDE: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, n: clip(i, 0, n - 1),
    "nearest": lambda i, n: clip(i, 0, n - 1),
    "wrap": mod,
    "mirror": _mirror_indices,
    # Reflection about the edges is "mirror" on a grid twice as fine.
    "reflect": lambda i, n: _mirror_indices(2 * i + 1, 2 * n + 1) // 2,
}


def _round_to_nearest(x: Array) -> Array:
    """Round `x` to whole numbers, halves away from 0."""
    return rounded(x)


def _find_neighbours(x: Array, order: int) -> list[tuple[Any, Any]]:
    """Return the indices of the samples next to coordinates along one axis, and their weights (None for 1)."""
    if not dtypes.is_floating(x.dtype):
        index = convert_to(x, dtypes.int32)
        return [(index, 1), (index + 1, 0)] if order else [(index, None)]
    if not order:
        return [(convert_to(_round_to_nearest(x), dtypes.int32), None)]
    low = floor(x)
    upper = x - low
    index = convert_to(low, dtypes.int32)
    return [(index, 1 - upper), (index + 1, upper)]


@inline_jit
def _interpolate(image: Array, fill: Array, *coordinates: Array, order: int, mode: str) -> Array:
    parts = []
    sides = [_find_neighbours(x, order) for x in coordinates]
    for corner in itertools.product(*sides):
        places = tuple([_OUTSIDE[mode](i, n) for (i, _), n in zip(corner, image.shape, strict=True)])
        value = image[places]
        if mode == "constant":
            inside = [(i >= 0) & (i < n) for (i, _), n in zip(corner, image.shape, strict=True)]
            value = where(functools.reduce(operator.and_, inside), value, fill)
        weights = [weight for _, weight in corner if weight is not None]
        parts.append(functools.reduce(operator.mul, weights, 1) * value if weights else value)
    total = functools.reduce(operator.add, parts)
    if dtypes.is_integer(image.dtype):
        total = _round_to_nearest(total) if dtypes.is_inexact(total.dtype) else total
    return convert_to(total, image.dtype)


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """Interpolate an array of samples at coordinates.

    Args:
        input: an array of samples.
        coordinates: an array, or a list of numbers, for each axis of `input`; they broadcast.
        order: 0 for the nearest sample, 1 for linear interpolation.
        mode: the continuation: ``"constant"`` for `cval`, ``"nearest"`` for the last sample, ``"wrap"`` for a
            periodic continuation, ``"mirror"`` for reflection about the last sample, ``"reflect"`` about its edge.
        cval: the value outside.

    Returns:
        An array of the shape of the coordinates and the dtype of `input`.

    Raises:
        NotImplementedError: `order` is not 0 or 1, or `mode` has another value.
        TypeError: an operand is not an array.
        ValueError: the number of coordinates differs from the rank of `input`.

    Example:
        >>> scipy.ndimage.map_coordinates(jnp.array([0.0, 10.0]), [jnp.array([0.5])], order=1)
        Array([5.], dtype=float32)

    Reference:
        NumPy and SciPy, manual of ``scipy.ndimage.map_coordinates``.
    """
    image = asarray(input)
    given = list(coordinates)
    if len(given) != image.ndim:
        raise ValueError(
            f"map_coordinates: coordinates must be a sequence of length input.ndim = {image.ndim}, got {len(given)}"
        )
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: only orders 0 and 1 are implemented, got {abbreviate(order)}")
    if mode not in _OUTSIDE:
        raise NotImplementedError(
            f"map_coordinates: mode must be one of {', '.join(_OUTSIDE)}, got {abbreviate(mode)}"
        )
    arrays = list(map(asarray, given))
    check_broadcast([x.shape for x in arrays])
    fill = convert_to(to_array_operand(cval), image.dtype)
    return _interpolate(image, fill, *arrays, order=int(order), mode=mode)
