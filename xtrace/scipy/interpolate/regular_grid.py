"""Interpolation on a rectangular grid of any spacing."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, promote_dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees.pytree_registration import register_pytree_node
from xtrace._src.core.trace import Tracer
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.scalar_types import can_cast
from xtrace.numpy.elementwise.ufuncs import clip
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.broadcasting import broadcast_arrays
from xtrace.numpy.manipulation.joins_and_splits import stack
from xtrace.numpy.manipulation.shapes import expand_dims, moveaxis, reshape
from xtrace.numpy.sorting.ordering import searchsorted

_METHODS = ("linear", "nearest")


def _check_method(method: object) -> None:
    if method not in _METHODS:
        raise ValueError(
            f"RegularGridInterpolator: method {abbreviate(method)} is not defined; use one of {', '.join(_METHODS)}"
        )


def _to_axis(position: int, points: Any) -> Array:
    """Return the coordinates along one axis of the grid."""
    aval = operand_aval(points, f"points[{position}]")
    if aval.ndim != 1 or not aval.shape[0]:
        raise ValueError(
            f"RegularGridInterpolator: points[{position}] must be a vector of coordinates, got the shape {aval.shape}"
        )
    # Traced values cannot be checked.
    if not isinstance(points, Tracer) and not np.all(np.greater(np.diff(np.asarray(points)), 0)):
        raise ValueError(
            f"RegularGridInterpolator: points[{position}] must increase strictly, got {abbreviate(points)}; sort the "
            "points, and the values along this axis with them"
        )
    return asarray(points)


@inline_jit
def _interpolate(grid: tuple[Array, ...], values: Array, fill_value: Array | None, xi: Array, *, method: str) -> Array:
    """Return the value at each of the points `xi`, which have two axes."""
    places, outside = [], []
    for points, x in zip(grid, moveaxis(xi, 1, 0), strict=True):
        index = clip(searchsorted(points, x) - 1, 0, max(len(points) - 2, 0))
        # The relative position is in [0, 1] inside the grid, and beyond where the outermost cell extrapolates.
        places.append((index, (x - points[index]) / (points[index + 1] - points[index])))
        outside.append((x < points[0]) | (x > points[-1]))
    if method == "nearest":
        result = values[tuple(where(share <= 0.5, index, index + 1) for index, share in places)]
    else:
        trailing = range(1, 1 + values.ndim - len(grid))
        terms = []
        for corner in itertools.product((0, 1), repeat=len(grid)):
            weight = functools.reduce(
                operator.mul, [share if far else 1 - share for far, (_, share) in zip(corner, places, strict=True)]
            )
            at = tuple(index + far for far, (index, _) in zip(corner, places, strict=True))
            terms.append(values[at] * expand_dims(weight, tuple(trailing)))
        result = functools.reduce(operator.add, terms)
    if fill_value is None:
        return result
    missing = functools.reduce(operator.or_, outside)
    return where(reshape(missing, (-1, *[1] * (result.ndim - 1))), fill_value, result)


class RegularGridInterpolator:
    """An interpolator of values on a rectangular grid: a function of points, and a pytree of its arrays.

    Args:
        points: for each axis of the grid, a vector of coordinates that increase strictly.
        values: an array with one axis for each vector in points, and any number of further axes.
        method: ``"linear"`` or ``"nearest"``.
        bounds_error: not supported; compiled programs raise no errors.
        fill_value: the value outside the grid; None to extrapolate.

    Example:
        >>> x, y = jnp.array([1, 2, 4]), jnp.array([0, 1])
        >>> f = scipy.interpolate.RegularGridInterpolator((x, y), jnp.array([[10, 11], [20, 21], [40, 41]]))
        >>> f(jnp.array([[3.0, 0.5], [5.0, 0.0]]))
        Array([30.5,  nan], dtype=float32)
    """

    method: str
    bounds_error: bool
    fill_value: Array | None
    grid: tuple[Array, ...]
    values: Array

    @boundary
    def __init__(
        self, points: Sequence[Any], values: Any, method: str = "linear", bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        _check_method(method)
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: bounds_error=True is not supported, since a compiled program raises no "
                "errors; fill_value marks points outside of the grid"
            )
        aval = operand_aval(values, "values")
        if len(points) > aval.ndim:
            raise ValueError(
                f"RegularGridInterpolator: there are {len(points)} point arrays, but values has {aval.ndim} dimensions"
            )
        self.grid = tuple(_to_axis(i, vector) for i, vector in enumerate(points))
        sizes = tuple(len(vector) for vector in self.grid)
        if sizes != aval.shape[: len(sizes)]:
            raise ValueError(
                f"RegularGridInterpolator: the vectors in points have the lengths {sizes}, and values has the shape "
                f"{aval.shape}"
            )
        self.method, self.bounds_error = method, bounds_error
        self.values = promote_dtypes((asarray(values),), as_inexact)[1][0]
        self.fill_value = None
        if fill_value is not None:
            given = operand_aval(fill_value, "fill_value").dtype
            if not can_cast(given, self.values.dtype, "same_kind"):
                raise ValueError(
                    "RegularGridInterpolator: fill_value must be either None or of a type compatible with values; "
                    f"got {given} for {self.values.dtype}"
                )
            self.fill_value = asarray(fill_value)

    @boundary
    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Return the values at points.

        xi: an array of points, with coordinates along the last axis; or a tuple with an array for each coordinate,
        which are broadcast. method: ``"linear"`` or ``"nearest"``; None for the interpolator's. The result has
        the shape of the points and the further axes of the values.
        """
        method = self.method if method is None else method
        _check_method(method)
        dimension = len(self.grid)
        if isinstance(xi, tuple):
            coordinates = [asarray(x) for x in xi]
            at = stack(broadcast_arrays(*coordinates), axis=-1) if coordinates else None
        else:
            operand_aval(xi, "xi")
            at = asarray(xi)
            # A vector lists the coordinates of the points, point by point.
            at = reshape(at, (-1, dimension)) if at.ndim == 1 and dimension and at.shape[0] % dimension == 0 else at
        if at is None or not at.ndim or at.shape[-1] != dimension:
            size = at.shape[-1] if at is not None and at.ndim else 0
            raise ValueError(
                f"RegularGridInterpolator: the requested sample points xi have dimension {size}, but this "
                f"interpolator has dimension {dimension}; the last axis of xi has the coordinates of a point"
            )
        if not dimension:
            return self.values
        flat = _interpolate(self.grid, self.values, self.fill_value, reshape(at, (-1, dimension)), method=method)
        return reshape(flat, at.shape[:-1] + self.values.shape[dimension:])


def _rebuild(static: tuple[str, bool], children: Any) -> RegularGridInterpolator:
    """Return the interpolator of unchecked leaves of any type."""
    interpolator = object.__new__(RegularGridInterpolator)
    interpolator.method, interpolator.bounds_error = static
    interpolator.grid, interpolator.values, interpolator.fill_value = children
    return interpolator


register_pytree_node(
    RegularGridInterpolator,
    lambda x: ((x.grid, x.values, x.fill_value), (x.method, x.bounds_error)),
    _rebuild,
)
