"""Arrays of another shape or order of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import cast_to_auto, reshard_result
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    list_shape_entries,
    operand_aval,
)
from xtrace._src.algebra.vector_space import reshape as set_shape
from xtrace._src.algebra.vector_space import transpose as permute
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core.annotations import ArrayLike, Axes, Shape, ShapeLike
from xtrace._src.core.array_protocol import convert_array_objects
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings.jax_version import pack_results
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.sizes import to_size
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays import shape as shapes
from xtrace.numpy.arrays.conversion import array, check_memory_order, to_array_operand
from xtrace.numpy.operands import (
    axes_of,
    axis_as_index,
    is_sequence_of_axes,
    refuse,
    store_axes,
)


def _is_unknown(entry: Any) -> bool:
    """Whether an entry of a shape is -1."""
    if isinstance(entry, Tracer):
        return False
    try:
        return bool(to_size(entry) == -1)
    except TypeError:
        return False


def _find_target_shape(own: tuple[int, ...], size: int, wanted: object) -> tuple[int, ...]:
    """Return the shape `wanted` for an array of `size` elements, with -1 replaced by the missing length."""
    if type(wanted) is not tuple or any(type(n) is not int or n < 0 for n in wanted):
        entries = list_shape_entries(wanted)
        unknown = [i for i, n in enumerate(entries) if _is_unknown(n)]
        if len(unknown) > 1:
            raise TypeError(
                f"{called_function()}: can only specify one unknown axis size with a -1 value, got {entries}"
            )
        known = canonical_shape([n for i, n in enumerate(entries) if i not in unknown])
        if unknown:
            product = math.prod(known)
            if product == 0 or size % product:
                raise TypeError(
                    f"{called_function()}: cannot reshape array of shape {own} (size {size}) into shape "
                    f"{entries}: the product of the other sizes, {product}, does not divide {size}"
                )
            wanted = (*known[: unknown[0]], size // product, *known[unknown[0] :])
        else:
            wanted = known
    if math.prod(wanted) != size:
        raise TypeError(
            f"{called_function()}: cannot reshape array of shape {own} (size {size}) into shape {wanted} "
            f"(size {math.prod(wanted)}); one size may be -1, which is then worked out"
        )
    return wanted


@inline_jit
def _reshape_column_major(a: Array, *, shape: tuple[int, ...]) -> Array:
    rank = a.ndim
    return permute(set_shape(permute(a, range(rank)[::-1]), shape[::-1]), range(len(shape))[::-1])


def _reshape(a: ArrayLike, shape: ShapeLike, order: object, unsupported_orders: tuple[str, ...]) -> Array:
    a = to_array_operand(a)
    target = _find_target_shape(a.shape, a.size, shape)
    if order in unsupported_orders:
        raise NotImplementedError(
            f"{called_function()}: order must be 'C' or 'F', got {abbreviate(order)}; arrays have no memory order"
        )
    if order not in ("C", "F"):
        raise ValueError(f"{called_function()}: order must be 'C' or 'F', got {abbreviate(order)}")
    if target == a.shape:
        return a
    return set_shape(a, target) if order == "C" else _reshape_column_major(a, shape=target)


def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """Return the elements of `a` in a new shape.

    Args:
        a: an array or a scalar.
        shape: the lengths of the axes, integers, or one integer; one length may be -1, to be computed from the
            others.
        order: ``"C"`` for row by row, ``"F"`` for column by column.
        copy: whether a copy is made; False raises an error where one is needed.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the dtype of `a`; a NumPy array of a NumPy array.

    Raises:
        TypeError: the number of elements differs, `a` is not an array, or a length is traced or no integer.

    Example:
        >>> jnp.reshape(jnp.arange(4), (2, -1))
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    try:
        if out_sharding is not None:
            sharding = requested_out_sharding(out_sharding)
            return reshard_result(_reshape(cast_to_auto(a), shape, order, ("A",)), sharding)
        if type(a) is np.ndarray or isinstance(a, np.generic):
            return a.reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]
        return _reshape(a, shape, order, ("A",))
    except BaseException as error:
        hide_frames(error)
        ready = convert_array_objects(error, (a, shape), {})
        if ready is None:
            raise
    return reshape(ready[0][0], ready[0][1], order)


@inline_jit(static=("order", "out_sharding"), public=True)
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: object = None) -> Array:
    """Return the elements of `a` as a vector.

    Args:
        a: an array or a scalar.
        order: ``"C"`` for row by row, ``"F"`` for column by column.
        out_sharding: not supported; leave it at None.

    Returns:
        A vector of the dtype of `a`.

    Raises:
        NotImplementedError: `order` is ``"A"`` or ``"K"``, or `out_sharding` is given.
        TypeError: `a` is neither an array nor a scalar.

    Example:
        >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
        Array([1, 2, 3, 4], dtype=int32)
    """
    refuse(out_sharding=out_sharding)
    return _reshape(a, (operand_aval(a, 0).size,), order, ("A", "K"))


def _permute(a: Array, permutation: Sequence[int]) -> Array:
    return a if tuple(permutation) == tuple(range(len(permutation))) else permute(a, permutation)


def transpose(a: ArrayLike, axes: Any = None) -> Array:
    """Return `a` with its axes in another order.

    Args:
        a: an array or a scalar.
        axes: the axes of `a` in the new order; None for the reverse order.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `axes` is not a permutation of the axes, or `a` is not an array.

    Example:
        >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    a = to_array_operand(a)
    if axes is None:
        return _permute(a, range(a.ndim)[::-1])
    if not isinstance(axes, Iterable):
        raise TypeError(f"transpose: axes must be a sequence of integers, got {abbreviate(axes)}")
    order = [canonical_axis(i, a.ndim) for i in axes]
    if sorted(order) != list(range(a.ndim)):
        raise TypeError(
            f"transpose: axes {tuple(order)} are no permutation of the axes of an array of shape {a.shape}; swapaxes "
            "exchanges two of them"
        )
    return _permute(a, order)


def permute_dims(a: ArrayLike, /, axes: ShapeLike) -> Array:
    """Return `a` with its axes in another order.

    Args:
        a: an array or a scalar.
        axes: the axes of `a` in the new order.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `axes` is not a permutation of the axes, or `a` is not an array.

    Example:
        >>> jnp.permute_dims(jnp.array([[1, 2], [3, 4]]), (1, 0))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return `x` with its last two axes exchanged.

    Args:
        x: an array of at least two axes.

    Returns:
        An array of the dtype of `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has fewer than two axes.

    Example:
        >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    x = to_array_operand(x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must be at least two-dimensional; got ndim={x.ndim}")
    return permute(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@inline_jit(static=("axis1", "axis2"), public=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Return `a` with two axes exchanged.

    Args:
        a: an array or a scalar.
        axis1, axis2: the axes, integers; negative ones count from the end.

    Returns:
        An array of the dtype of `a`.

    Raises:
        IndexError: `a` has no such axis, as NumPy's AxisError, or an axis is not an integer.
        TypeError: `a` is not an array.

    Example:
        >>> jnp.swapaxes(jnp.ones((2, 3)), 0, 1).shape
        (3, 2)
    """
    a = to_array_operand(a)
    order = list(range(a.ndim))
    first, second = (axis_as_index(i, a.ndim) for i in (axis1, axis2))
    order[first], order[second] = second, first
    return _permute(a, order)


@inline_jit(static=("source", "destination"), public=True)
def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Return `a` with axes moved to other places; the remaining axes keep their order.

    Args:
        a: an array or a scalar.
        source: an axis or several.
        destination: the places of these axes in the result, one for each.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `source` and `destination` differ in number, or name a repeated or missing axis.

    Example:
        >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    a = to_array_operand(a)
    listed = [x if is_sequence_of_axes(x) else (x,) for x in map(store_axes, (source, destination))]
    if len(listed[0]) != len(listed[1]):
        raise ValueError(f"moveaxis: Inconsistent number of elements: {len(listed[0])} vs {len(listed[1])}")
    sources, targets = (axes_of(x, a.ndim) for x in listed)
    order = [i for i in range(a.ndim) if i not in sources]
    for target, moved in sorted(zip(targets, sources, strict=True)):
        order.insert(target, moved)
    return _permute(a, order)


@inline_jit(static=("axis", "start"), public=True)
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Return `a` with `axis` moved in front of the axis `start`; `moveaxis` is clearer.

    Args:
        a: an array or a scalar.
        axis: the axis to move.
        start: the axis in front of which it is placed.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    a = to_array_operand(a)
    number, place = canonical_axis(axis, a.ndim), to_integer("start", start)
    if not -a.ndim <= place <= a.ndim:
        raise ValueError(f"rollaxis: start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    place += a.ndim if place < 0 else 0
    return moveaxis(a, number, place - 1 if number < place else place)


def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """Return `a` with further axes of size 1.

    Args:
        a: an array or a scalar.
        axis: the place of the new axis in the result, or several places.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is neither an array nor a scalar.
        ValueError: a place is out of range or repeated.

    Example:
        >>> jnp.expand_dims(jnp.ones(2), 0).shape
        (1, 2)
    """
    a = to_array_operand(a)
    axis = store_axes(axis)
    count = len(axis) if is_sequence_of_axes(axis) else 1
    rank = a.ndim + count
    axes = axes_of(axis, rank)
    kept = [i for i in range(rank) if i not in axes]
    sizes = iter(a.shape)
    return broadcast_in_dim(a, [1 if i in axes else next(sizes) for i in range(rank)], kept)


def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """Return `a` without axes of size 1.

    Args:
        a: an array or a scalar.
        axis: the axis to remove, or several; None for all of size 1.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: `a` is neither an array nor a scalar.
        ValueError: an axis is missing or has another size.

    Example:
        >>> jnp.squeeze(jnp.ones((1, 2, 1))).shape
        (2,)
    """
    a = to_array_operand(a)
    axes = tuple([i for i, n in enumerate(a.shape) if n == 1]) if axis is None else axes_of(axis, a.ndim)
    for i in axes:
        if a.shape[i] != 1:
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not equal to one: "
                f"axis {i} of shape {a.shape}; an index such as x[0] takes one element of an axis"
            )
    return shapes.squeeze(a, axes) if axes else a


# The positions of new axes, by the number of axes that there are.
NEW_AXES_1D = ((0,),)
NEW_AXES_2D = ((0, 1), (0,))
NEW_AXES_3D = ((0, 1, 2), (0, 2), (2,))
NEW_AXES_OF_COLUMNS = ((0, 1), (1,))


def raise_rank(x: Array, new_axes: Sequence[Shape], start: int = 0) -> Array:
    """Return `x` with new axes of size 1 at positions that are an entry of `new_axes`; axes before `start` stay."""
    rank = x.ndim - start
    return shapes.expand_dims(x, [start + i for i in new_axes[rank]]) if rank < len(new_axes) else x


def _raise_ranks(arys: tuple[Any, ...], new_axes: Sequence[Shape]) -> Any:
    raised = [raise_rank(to_array_operand(x, i), new_axes) for i, x in enumerate(arys)]
    return raised[0] if len(raised) == 1 else pack_results(raised)


@inline_jit(public=True)
def atleast_1d(*arys: ArrayLike) -> Any:
    """Return arrays with at least one axis, scalars as vectors.

    Args:
        arys: arrays or scalars.

    Returns:
        An array for one operand, otherwise a list of arrays; a tuple where ``xtrace_jax_version`` is 0.12.

    Raises:
        TypeError: an operand is neither an array nor a scalar.

    Example:
        >>> jnp.atleast_1d(1.0).shape
        (1,)
    """
    return _raise_ranks(arys, NEW_AXES_1D)


@inline_jit(public=True)
def atleast_2d(*arys: ArrayLike) -> Any:
    """Return arrays with at least two axes, vectors as rows.

    Args:
        arys: arrays or scalars.

    Returns:
        An array for one operand, otherwise a list of arrays; a tuple where ``xtrace_jax_version`` is 0.12.

    Raises:
        TypeError: an operand is neither an array nor a scalar.

    Example:
        >>> jnp.atleast_2d(1.0).shape
        (1, 1)
    """
    return _raise_ranks(arys, NEW_AXES_2D)


@inline_jit(public=True)
def atleast_3d(*arys: ArrayLike) -> Any:
    """Return arrays with at least three axes, vectors along the second.

    Args:
        arys: arrays or scalars.

    Returns:
        An array for one operand, otherwise a list of arrays; a tuple where ``xtrace_jax_version`` is 0.12.

    Raises:
        TypeError: an operand is neither an array nor a scalar.

    Example:
        >>> jnp.atleast_3d(1.0).shape
        (1, 1, 1)
    """
    return _raise_ranks(arys, NEW_AXES_3D)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of `a` in memory of its own.

    Args:
        a: an array, a scalar, or nested lists of numbers.
        order: the order in memory, ``"K"`` or None, since arrays have none of their own.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `order` is not None, ``"K"``, ``"C"`` or ``"A"``.
        TypeError: `a` does not convert to an array.

    Example:
        >>> jnp.copy(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    check_memory_order(order)
    operand_aval(a, 0)
    return array(a, copy=True)
