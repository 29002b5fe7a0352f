"""Arrays broadcast to a shape, and grids of coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_shape, check_broadcast, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.settings.jax_version import pack_results
from xtrace._src.ops.arrays.concatenation import stack
from xtrace._src.ops.arrays.creation import iota
from xtrace.numpy.arrays.creation import fill_array, python_value, read_shape
from xtrace.numpy.operands import broadcast_operand_to


def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Array:
    """Return an array repeated to fill a shape.

    Args:
        array: an array or a scalar.
        shape: the lengths of the axes, integers, or one integer.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of `shape` and the dtype of `array`.

    Raises:
        TypeError: `array` is neither an array nor a scalar.
        ValueError: the array does not broadcast to `shape`.

    Example:
        >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(broadcast_to, out_sharding, array, shape)
    return broadcast_operand_to(array, operand_aval(array, 0).shape, read_shape(shape))


def broadcast_arrays(*args: ArrayLike) -> Any:
    """Return arrays broadcast to their common shape.

    Args:
        args: arrays or scalars.

    Returns:
        A list of arrays; a tuple where ``xtrace_jax_version`` is 0.12.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones(2), jnp.ones((3, 1)))]
        [(3, 2), (3, 2)]
    """
    own = [operand_aval(x, i).shape for i, x in enumerate(args)]
    shape = check_broadcast(own)
    return pack_results([broadcast_operand_to(x, s, shape) for x, s in zip(args, own, strict=True)])


def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """Return the common shape of arrays that broadcast against each other.

    Args:
        shapes: tuples of integers, or integers.

    Returns:
        A tuple of integers.

    Raises:
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.broadcast_shapes((2,), (3, 1))
        (3, 2)
    """
    return check_broadcast([canonical_shape(s) for s in shapes])


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return a grid of coordinates for each of several vectors.

    Args:
        xi: vectors or scalars.
        copy: must be True.
        sparse: whether the grids have size 1 along the axes of the other vectors.
        indexing: ``"xy"``: the second vector runs along the first axis, as in images; ``"ij"``: the first one does.

    Returns:
        A list of arrays; a tuple where ``xtrace_jax_version`` is 0.12.

    Raises:
        TypeError: an operand is not an array.
        ValueError: an operand has more than one axis, `copy` is False, or `indexing` has another value.

    Example:
        >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))[0]
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: Valid values for indexing are 'xy' and 'ij', got {abbreviate(indexing)}")
    if not copy:
        raise ValueError("meshgrid: only copy=True is supported, since arrays are immutable")
    own = [operand_aval(x, i).shape for i, x in enumerate(xi)]
    if any(len(s) != 1 for s in own):
        raise ValueError(f"meshgrid: arguments must be 1D, got shapes {own}")
    rank = len(own)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    full_shape = [0] * rank
    for i, axis in enumerate(order):
        full_shape[axis] = own[i][0]
    shape = None if sparse else tuple(full_shape)
    return pack_results([_broadcast_along(x, own[i][0], order[i], rank, shape) for i, x in enumerate(xi)])


def _broadcast_along(x: Array, size: int, axis: int, rank: int, shape: tuple[int, ...] | None) -> Array:
    """Return the vector `x` along one of `rank` axes, broadcast to `shape` unless that is None."""
    target = shape if shape is not None else tuple([size if i == axis else 1 for i in range(rank)])
    return broadcast_in_dim.bind_positional((x,), (target, (axis,), None))


def indices(dimensions: ShapeLike, dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """Return the indices of all elements of an array of a shape.

    Args:
        dimensions: the lengths of the axes.
        dtype: the dtype; None for the default integer.
        sparse: whether arrays have size 1 along the other axes.

    Returns:
        An array whose first axis numbers the axes of `dimensions`; if `sparse`, a tuple of one array for each.

    Raises:
        TypeError: a length is not an integer.

    Example:
        >>> jnp.indices((2, 2))[0]
        Array([[0, 0],
               [1, 1]], dtype=int32)
    """
    wanted = requested_dtype(int if dtype is None else dtype)
    shape = canonical_shape(dimensions)
    rank = len(shape)
    if sparse:
        return tuple(_broadcast_along(iota(wanted, n), n, i, rank, None) for i, n in enumerate(shape))
    return _make_indices(shape=shape, dtype=wanted)


@inline_jit
def _make_indices(*, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if not shape:
        return fill_array((0,), python_value(0, dtype), dtype, False, None)
    return stack([_broadcast_along(iota(dtype, n), n, i, len(shape), shape) for i, n in enumerate(shape)])
