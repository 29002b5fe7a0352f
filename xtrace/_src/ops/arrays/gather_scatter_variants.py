"""Forms of `gather` and `scatter` for indices along axes, and for updates by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis, operand_aval
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import DebugInfo, Literal, scalar_literal
from xtrace._src.ops.arrays import index_vectors
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import full
from xtrace._src.ops.arrays.gather_scatter import gather, scatter
from xtrace._src.ops.arrays.shape import expand_dims
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.transforms.stage import stage


def index_take(src: ArrayLike, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Take the subarrays at indices along some axes of an array.

    Args:
        src: an array.
        idxs: vectors of one length, one for each of `axes`; indices wrap around the sizes.
        axes: the axes to index.

    Returns:
        An array with a leading axis for the indices, without `axes`.

    Raises:
        TypeError: the indices are no integers.
        ValueError: there is no such axis, or the numbers of indices and axes differ.

    Example:
        >>> lax.index_take(jnp.arange(6).reshape(2, 3), [jnp.array([0, 1]), jnp.array([2, 0])], (0, 1))
        Array([2, 3], dtype=int32)
    """
    shape = operand_aval(src, "src").shape
    chosen = [canonical_axis(a, len(shape)) for a in integer_tuple("axes", axes)]
    vectors = [expand_dims(_wrap_index(i, shape[a]), (1,)) for i, a in zip(idxs, chosen, strict=True)]
    numbers = index_vectors.GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape) - len(chosen) + 1)), collapsed_slice_dims=tuple(sorted(chosen)),
        start_index_map=tuple(chosen),
    )
    sizes = [1 if a in chosen else n for a, n in enumerate(shape)]
    return gather(src, concatenate(vectors, 1), numbers, sizes)


def _wrap_index(index: Array, size: int) -> Array:
    """Return an index vector modulo `size`, in 0 to size - 1."""
    aval = operand_aval(index, "idxs")
    number = scalar_literal(size, aval.dtype)
    rest = elementwise.rem(index, number)
    negative = lt(rest, Literal(0, number.aval))
    return select_n(negative, rest, elementwise.add(rest, number))


def scatter_apply(
    operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Any], Any],
    dimension_numbers: index_vectors.ScatterDimensionNumbers, *, update_shape: tuple[int, ...] = (),
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: object = None,
) -> Array:
    """Apply a function to the elements of windows of an array.

    Args:
        operand: an array.
        scatter_indices: the index vectors of the windows, as in `scatter`.
        func: a function from a scalar to a scalar of the same dtype; it closes over no traced values.
        dimension_numbers: a `ScatterDimensionNumbers`, as in `scatter`.
        update_shape: the shape that `updates` of `scatter` would have.
        indices_are_sorted: whether the index vectors are in ascending order.
        unique_indices: whether the windows do not overlap; otherwise the number of applications is unspecified.
        mode: the treatment of windows outside of the operand, a `GatherScatterMode` or its name.

    Returns:
        An array like `operand`.

    Raises:
        NotImplementedError: `func` closes over traced values.
        TypeError: the indices are no integers, or `func` returns another type.
        ValueError: the shapes do not agree.

    Example:
        >>> axes = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_apply(jnp.arange(3.0), jnp.array([[1]]), lambda x: x + 5.0, axes, update_shape=(1,))
        Array([0., 6., 2.], dtype=float32)
    """
    aval = operand_aval(operand)
    scalar = ShapedArray((), aval.dtype)
    info = DebugInfo("scatter_apply", getattr(func, "__name__", "func"), None, None)
    jaxpr, constants = stage(lambda x: [func(x)], [scalar], info)
    if constants:
        raise NotImplementedError("scatter_apply: func closes over arrays; close over scalars only")
    (result,) = jaxpr.out_avals
    if result.shape or result.dtype != aval.dtype:
        raise TypeError(
            f"scatter_apply: func must map {scalar.str_short(True)} to the same type, it returned "
            f"{result.str_short(True)}"
        )
    updates = full(update_shape, 0, aval.dtype)
    numbers = index_vectors.canonical_numbers(index_vectors.ScatterDimensionNumbers, dimension_numbers)
    flags = bool(indices_are_sorted), bool(unique_indices)
    canonical = index_vectors.canonical_mode(mode, index_vectors.GatherScatterMode.FILL_OR_DROP)
    parameters = (numbers, *flags, canonical, jaxpr, ())
    return scatter.bind_positional((operand, scatter_indices, updates), parameters)
