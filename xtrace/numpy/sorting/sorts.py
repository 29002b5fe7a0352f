"""Sorting: values and positions in order, also by several keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays import slicing, sorting
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.manipulation.shapes import ravel
from xtrace.numpy.operands import cast_to


def _sort_along(
    a: ArrayLike, axis: Axes, kind: object, order: object, stable: bool, descending: bool, *, positions: bool
) -> Array:
    a = to_array_operand(a)
    if kind is not None or order is not None:
        raise TypeError(
            f"{called_function()}: kind and order are not supported; stable=True keeps equal elements in order"
        )
    if axis is None:
        a, axis = ravel(a), 0
    along = canonical_axis(axis, a.ndim)
    # Sorting the reversed array keeps equal elements in their order when the result is reversed again.
    a = shapes.rev(a, (along,)) if descending else a
    if positions:
        count = broadcasted_iota(dtypes.default_int(config.enable_x64.value), a.shape, along)
        count = shapes.rev(count, (along,)) if descending else count
        ordered = sorting.sort((a, count), along, bool(stable), 1)[1]
    else:
        ordered = sorting.sort(a, along, bool(stable))
    return shapes.rev(ordered, (along,)) if descending else ordered


@inline_jit(static=("axis", "kind", "order", "stable", "descending"), public=True)
def sort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return the elements sorted along an axis, NaN last.

    Args:
        a: an array; complex numbers are sorted by real part first.
        axis: the axis; None for the flattened array.
        kind, order: not supported; leave them at None.
        stable: whether equal elements keep their order.
        descending: whether the largest element comes first.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is not an array, or `kind` or `order` is given.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.sort(jnp.array([3, 1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    return _sort_along(a, axis, kind, order, stable, descending, positions=False)


@inline_jit(static=("axis", "kind", "order", "stable", "descending"), public=True)
def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False, dtype: DTypeLike | None = None,
) -> Array:
    """Return the positions that sort the elements along an axis, NaN last.

    Args:
        a: an array; complex numbers are sorted by real part first.
        axis: the axis; None for the flattened array.
        kind, order: not supported; leave them at None.
        stable: whether equal elements keep their order.
        descending: whether the largest element comes first.
        dtype: the dtype of the positions; None for the default integer.

    Returns:
        An array of the shape of `a` and an integer dtype.

    Raises:
        TypeError: `a` is not an array, or `kind` or `order` is given.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.argsort(jnp.array([3, 1, 2]))
        Array([1, 2, 0], dtype=int32)
    """
    places = _sort_along(a, axis, kind, order, stable, descending, positions=True)
    return places if dtype is None else cast_to(places, places.aval, requested_dtype(dtype))


@inline_jit(static=("axis",), trees=True)
def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the positions that sort by the last key, equal elements by the key before it, and so on.

    Args:
        keys: a sequence of arrays of one shape, or an array of them along the first axis.
        axis: the axis of the positions.

    Returns:
        An array of integers of the shape of a key.

    Raises:
        TypeError: there are no keys.
        ValueError: the shapes differ.

    Example:
        >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([0, 1, 0])))
        Array([2, 0, 1], dtype=int32)
    """
    if isinstance(keys, (Array, np.ndarray)):
        if not keys.ndim:
            raise TypeError(f"lexsort: keys must be a sequence of arrays, got {operand_aval(keys, 0)}")
        keys = [shapes.squeeze(slicing.slice_in_dim(keys, i, i + 1), (0,)) for i in range(keys.shape[0])]
    operands = [to_array_operand(key, i) for i, key in enumerate(keys)]
    if not operands:
        raise TypeError("lexsort: need a sequence of keys with one at least, got an empty one")
    if len({key.shape for key in operands}) > 1:
        raise ValueError(f"lexsort: all keys must have one shape; got {', '.join(str(key.shape) for key in operands)}")
    if not operands[0].ndim:
        return zeros((), dtypes.default_int(config.enable_x64.value))
    along = canonical_axis(axis, operands[0].ndim)
    places = broadcasted_iota(dtypes.default_int(config.enable_x64.value), operands[0].shape, along)
    order: Array = sorting.sort((*operands[::-1], places), along, True, len(operands))[-1]
    return order


@inline_jit(public=True)
def sort_complex(a: ArrayLike) -> Array:
    """Return the elements as complex numbers, sorted along the last axis by real, then imaginary parts.

    Args:
        a: an array of at least one axis.

    Returns:
        A complex array of the shape of `a`.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> jnp.sort_complex(jnp.array([2, 1 + 1j, 1]))
        Array([1.+0.j, 1.+1.j, 2.+0.j], dtype=complex64)
    """
    a = to_array_operand(a)
    canonical_axis(-1, a.ndim)
    wide = dtypes.bit_width(a.dtype) == 64 and not dtypes.is_complex(a.dtype)
    dtype = a.dtype if dtypes.is_complex(a.dtype) else dtypes.complex128 if wide else dtypes.complex64
    return convert_to(sort(a), dtype, False)
