"""Products that sum over shared axes: dot, matmul, tensordot and their kin."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.resharding import cast_to_auto, reshard_result
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    check_broadcast,
    convert_to,
    operand_aval,
    reshape,
    transpose,
)
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import multiply, subtract
from xtrace._src.api.operators.promotion import check_mapped_ranks
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.dtypes import DType
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.ops.arrays.concatenation import split
from xtrace._src.ops.arrays.creation import zeros_like
from xtrace._src.ops.arrays.shape import expand_dims, squeeze
from xtrace._src.ops.contractions.contraction import choose_product_sharding, multiply_shards
from xtrace._src.ops.elementwise.complex_numbers import conj
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import diagonal_mask
from xtrace.numpy.manipulation.joins_and_splits import stack
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import only_axis, refuse, select_or_fill
from xtrace.numpy.reductions import reductions

_Axes = tuple[int, ...]


class _Plan:
    """The types of a contraction: its operands, its result, the precision and the sharding."""

    def __init__(
        self, a: ArrayLike, b: ArrayLike, precision: object, preferred: object, out_sharding: object = None
    ) -> None:
        self.precision = precision
        self.sharding = choose_product_sharding(out_sharding)
        self.left, self.right = operand_aval(a, 0), operand_aval(b, 1)
        pairs = tuple((x.dtype, x.weak_type) for x in (self.left, self.right))
        self.preferred = requested_dtype(preferred)
        # A given dtype of the result makes promotion explicit.
        x64, mode, wide = config.promotion_settings()
        self.dtype, self.weak = type_promotion.promote(pairs, x64, mode if preferred is None else "standard", wide)

    def check(self, left_axes: Sequence[int], right_axes: Sequence[int]) -> None:
        """Raise TypeError unless the contracted axes have equal lengths."""
        sizes = [[x.shape[i] for i in axes] for x, axes in ((self.left, left_axes), (self.right, right_axes))]
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"{called_function()} requires contracting dimensions to have the same shape, got {tuple(sizes[0])} "
                f"and {tuple(sizes[1])}: axes {tuple(left_axes)} of {self.left.shape} and {tuple(right_axes)} of "
                f"{self.right.shape}. An array is transposed with .T or .mT"
            )

    def contract(
        self, a: ArrayLike, b: ArrayLike, dimensions: Any, order: Any = None, squeezed: Any = ((), ())
    ) -> Array:
        """Return the dot_general over `dimensions`, its axes permuted by `order`.

        `squeezed` are the size-1 axes of the operands that are dropped first.
        """
        unreduced = self.sharding.spec.unreduced if self.sharding is not None else frozenset()
        if self.sharding is not None and not unreduced:
            a, b = [cast_to_auto(x) if isinstance(x, Array) else x for x in (a, b)]
        product = _contract(
            a, b, dimensions=dimensions, order=order, squeezed=squeezed,
            precision=self.precision, dtype=self.preferred or self.dtype, weak=self.weak and self.preferred is None,
            unreduced=unreduced,
        )
        return reshard_result(product, self.sharding)


@inline_jit
def _contract(
    a: Any, b: Any, *, dimensions: object, order: Sequence[int] | None, squeezed: Any,
    precision: object, dtype: DType, weak: bool, unreduced: frozenset[Any],
) -> Array:
    lhs, rhs = [_drop_axes(to_factor(x, dtype), axes) for x, axes in zip((a, b), squeezed, strict=True)]
    product = multiply_shards(lhs, rhs, dimensions, precision, dtype, unreduced)
    if order is not None:
        product = transpose(product, order)
    return convert_to(product, dtype, weak)


def to_factor(x: ArrayLike, dtype: DType) -> Array:
    """Return an operand of a product; weakly typed ones are converted to a narrower dtype of the product.

    Floating operands stay, since dot_general rounds their sums; it takes no narrower dtype for other kinds.
    """
    aval = operand_aval(x, 0)
    narrower = dtypes.bit_width(dtype) < dtypes.bit_width(aval.dtype)
    if aval.weak_type and narrower and (dtypes.is_integer(dtype) or dtypes.is_complex(dtype)):
        return convert_to(x, dtype, True)
    return x if isinstance(x, Array) else to_array_operand(x)


def _drop_axes(x: Array, axes: _Axes) -> Array:
    return reshape(x, [n for i, n in enumerate(x.shape) if i not in axes]) if axes else x


@inline_jit(static=("precision", "out_sharding"), public=True)
def dot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Array:
    """Return the product of two arrays: scalars, vectors, matrices, or sums over axes of larger arrays.

    Args:
        a, b: arrays or scalars. The sum goes over the last axis of `a` and the second last, or only, axis of `b`;
            a scalar multiplies.
        precision: a `lax.Precision` or its name, or a pair of them, one for each operand; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the remaining axes of `a`, then of `b`.

    Raises:
        TypeError: the summed axes have different lengths, or an operand is neither an array nor a scalar.

    Example:
        >>> jnp.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    plan = _Plan(a, b, precision, preferred_element_type, out_sharding)
    rank, other = plan.left.ndim, plan.right.ndim
    if rank == 0 or other == 0:
        return plan.contract(a, b, (((), ()), ((), ())))
    over = (rank - 1,), (other - 2 if other > 1 else 0,)
    plan.check(*over)
    return plan.contract(a, b, (over, ((), ())))


def _broadcast_contract(plan: _Plan, a: ArrayLike, b: ArrayLike, cores: tuple[int, int]) -> Array:
    """Contract the last axis of `a` with the first core axis of `b`; axes before the `cores` broadcast.

    An axis of size 1 that broadcasts is dropped, and the other operand's axis becomes a free one: no elements are
    repeated in memory.
    """
    shapes = [plan.left.shape, plan.right.shape]
    plan.check((len(shapes[0]) - 1,), (len(shapes[1]) - cores[1],))
    # Axes with one label belong together: 0, 1 … for broadcast axes, then the free axes of each matrix; -1 for the sum.
    rank = max(len(shape) - core for shape, core in zip(shapes, cores, strict=True))
    labels = [
        [*range(rank - len(shapes[0]) + cores[0], rank), *([rank] if cores[0] == 2 else []), -1],
        [*range(rank - len(shapes[1]) + cores[1], rank), -1, *([rank + 1] if cores[1] == 2 else [])],
    ]
    sizes = [dict(zip(own, shape, strict=True)) for own, shape in zip(labels, shapes, strict=True)]
    for label in range(rank):
        met = {own[label] for own in sizes if label in own}
        if len(met - {1}) > 1:
            raise ValueError(
                f"Incompatible types for {called_function()} arguments: {plan.left.str_short(short_dtypes=False)} and "
                f"{plan.right.str_short(short_dtypes=False)}; their leading axes do not broadcast"
            )
        if len(met) > 1:
            del sizes[0 if sizes[0][label] == 1 else 1][label]
    squeezed = [
        tuple([i for i, label in enumerate(own) if label not in left]) for own, left in zip(labels, sizes, strict=True)
    ]
    kept = [list(own) for own in sizes]
    shared = [label for label in kept[0] if label in sizes[1] and label != -1]
    free = [[label for label in own if label != -1 and label not in shared] for own in kept]
    over = tuple([(own.index(-1),) for own in kept])
    batch = tuple([tuple([own.index(label) for label in shared]) for own in kept])
    # The axes of dot_general's result: the shared axes, then the free axes of each operand.
    axes_of_product = [*shared, *free[0], *free[1]]
    order = tuple(sorted(range(len(axes_of_product)), key=axes_of_product.__getitem__))
    return plan.contract(
        a, b, (over, batch), None if order == tuple(range(len(order))) else order, (squeezed[0], squeezed[1])
    )


@inline_jit(static=("precision", "out_sharding"), public=True)
def matmul(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Array:
    """Return the matrix product.

    Args:
        a, b: arrays of at least one axis. The last two axes are matrices, the axes before broadcast; operands of
            rank 1 are vectors, and give the result no axis.
        precision: a `lax.Precision` or its name, or a pair of them, one for each operand; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the leading axes, the rows of `a` and the columns of `b`.

    Raises:
        TypeError: the summed axes have different lengths, or an operand is not an array.
        ValueError: an operand is a scalar, or leading axes do not broadcast.

    Example:
        >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [10]]))
        Array([[21],
               [43]], dtype=int32)
    """
    plan = _Plan(a, b, precision, preferred_element_type, out_sharding)
    for i, aval in enumerate((plan.left, plan.right)):
        if aval.ndim == 0:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0; multiply by a scalar with *"
            )
    rank, other = plan.left.ndim, plan.right.ndim
    if rank <= 2 and other <= 2:
        over = (rank - 1,), (other - 2 if other > 1 else 0,)
        plan.check(*over)
        return plan.contract(a, b, (over, ((), ())))
    return _broadcast_contract(plan, a, b, (min(rank, 2), min(other, 2)))


@inline_jit(public=True)
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of matrices with vectors.

    Args:
        x1: an array of matrices, of shape (..., m, n).
        x2: an array of vectors, of shape (..., n); the leading axes broadcast.

    Returns:
        An array of the leading axes and the rows of `x1`.

    Raises:
        TypeError: the summed axes have different lengths, or an operand is not an array.
        ValueError: an operand has too few axes, or leading axes do not broadcast.

    Example:
        >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    plan = _Plan(x1, x2, None, None)
    _check_rank(plan, 2, 1)
    return _broadcast_contract(plan, x1, x2, (2, 1))


@inline_jit(public=True)
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of conjugated vectors with matrices.

    Args:
        x1: an array of vectors, of shape (..., m); they are conjugated.
        x2: an array of matrices, of shape (..., m, n); the leading axes broadcast.

    Returns:
        An array of the leading axes and the columns of `x2`.

    Raises:
        TypeError: the summed axes have different lengths, or an operand is not an array.
        ValueError: an operand has too few axes, or leading axes do not broadcast.

    Example:
        >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
        Array([31, 42], dtype=int32)
    """
    plan = _Plan(x1, x2, None, None)
    _check_rank(plan, 1, 2)
    return _broadcast_contract(plan, _conjugate(x1, plan.left), x2, (1, 2))


def _check_rank(plan: _Plan, left: int, right: int) -> None:
    """Raise ValueError for operands with too few axes; check the rank promotion of the batch dimensions."""
    for i, (aval, least) in enumerate(((plan.left, left), (plan.right, right))):
        if aval.ndim < least:
            raise ValueError(
                f"{called_function()}: argument {i} must have ndim at least {least}, got shape {aval.shape}"
            )
    check_mapped_ranks((plan.left.shape, plan.right.shape), (left, right))


def _conjugate(x: ArrayLike, aval: ShapedArray) -> Any:
    return conj(x) if dtypes.is_complex(aval.dtype) else x


@inline_jit(static=("axis", "precision"), public=True)
def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Return the sums of conjugated `x1` times `x2` along an axis of both.

    Args:
        x1, x2: arrays of at least one axis, whose other axes broadcast.
        axis: the axis to sum over.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.

    Returns:
        An array of the other axes.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the lengths along `axis` differ, an operand is a scalar, or the other axes do not broadcast.

    Example:
        >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    plan = _Plan(x1, x2, precision, preferred_element_type)
    _check_rank(plan, 1, 1)
    axes = [canonical_axis(axis, aval.ndim) for aval in (plan.left, plan.right)]
    if plan.left.shape[axes[0]] != plan.right.shape[axes[1]]:
        raise ValueError(
            f"vecdot: axes must match; got shapes {plan.left.shape} and {plan.right.shape} with axis={axis}"
        )
    first, second = moveaxis(_conjugate(x1, plan.left), axes[0], -1), moveaxis(x2, axes[1], -1)
    plan.left, plan.right = operand_aval(first, 0), operand_aval(second, 0)
    return _broadcast_contract(plan, first, second, (1, 1))


@inline_jit(static=("precision",), public=True)
def vdot(a: ArrayLike, b: ArrayLike, *, precision: object = None, preferred_element_type: object = None) -> Array:
    """Return the sum of conjugated `a` times `b`, both flattened.

    Args:
        a, b: arrays or scalars of the same size.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sum and the result; None for the promoted dtype.

    Returns:
        An array of rank 0.

    Raises:
        TypeError: the sizes differ, or an operand is neither an array nor a scalar.

    Example:
        >>> jnp.vdot(jnp.array([1, 1j]), jnp.array([1, 1j]))
        Array(2.+0.j, dtype=complex64)
    """
    first, second = (operand_aval(x, i) for i, x in enumerate((a, b)))
    return dot(
        reshape(_conjugate(a, first), (first.size,)), reshape(b, (second.size,)), precision=precision,
        preferred_element_type=preferred_element_type,
    )


@inline_jit(static=("precision",), public=True)
def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Return the sums over the last axes of both operands.

    Args:
        a, b: arrays or scalars; a scalar multiplies.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.

    Returns:
        An array of the remaining axes of `a`, then of `b`.

    Raises:
        TypeError: the last axes have different lengths, or an operand is neither an array nor a scalar.

    Example:
        >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    plan = _Plan(a, b, precision, preferred_element_type)
    if plan.left.ndim == 0 or plan.right.ndim == 0:
        # As in JAX, the operands are converted, not the product.
        return multiply(*[x if plan.preferred is None else convert_to(x, plan.preferred) for x in (a, b)])
    over = (plan.left.ndim - 1,), (plan.right.ndim - 1,)
    plan.check(*over)
    return plan.contract(a, b, (over, ((), ())))


@inline_jit(static=("out",), public=True)
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Return the products of every element of `a` with every element of `b`, both flattened.

    Args:
        a, b: arrays or scalars.
        out: not supported; leave it at None.

    Returns:
        A matrix of the promoted dtype, with a row for each element of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: an operand is neither an array nor a scalar.

    Example:
        >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    refuse(out=out)
    rows, columns = operand_aval(a, 0).size, operand_aval(b, 1).size
    return multiply(
        broadcast_in_dim(reshape(a, (rows,)), (rows, 1), (0,)),
        broadcast_in_dim(reshape(b, (columns,)), (1, columns), (1,)),
    )


@inline_jit(static=("axes", "precision", "out_sharding"), public=True)
def tensordot(
    a: ArrayLike, b: ArrayLike, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return the sums of products over pairs of axes.

    Args:
        a, b: arrays.
        axes: the number of last axes of `a` and first axes of `b` that are summed, or a pair of axes, or of
            sequences of axes, of `a` and of `b`.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the remaining axes of `a`, then of `b`.

    Raises:
        TypeError: the sequences or the summed axes have different lengths, or an operand is not an array.
        ValueError: an operand has no such axis.

    Example:
        >>> jnp.tensordot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]), axes=1)
        Array([21, 43], dtype=int32)
    """
    plan = _Plan(a, b, precision, preferred_element_type, out_sharding)
    ranks = plan.left.ndim, plan.right.ndim
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise TypeError(f"tensordot: axes must be an integer or a pair, got {abbreviate(axes)}")
        lists = [tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in axes]
        if len(lists[0]) != len(lists[1]):
            raise TypeError(f"tensordot requires axes lists to have equal length, got {lists[0]} and {lists[1]}")
        over = tuple(tuple([canonical_axis(i, rank) for i in x]) for x, rank in zip(lists, ranks, strict=True))
    else:
        try:
            count = operator.index(axes)
        except TypeError:
            raise TypeError(f"tensordot: axes must be an integer or a pair, got {abbreviate(axes)}") from None
        if not 0 <= count <= min(ranks):
            raise TypeError(
                f"tensordot: number of axes ({count}) must be between 0 and the ranks of the arrays, which have shapes "
                f"{plan.left.shape} and {plan.right.shape}"
            )
        over = tuple(range(ranks[0] - count, ranks[0])), tuple(range(count))
    plan.check(*over)
    return plan.contract(a, b, (over, ((), ())))


@inline_jit(static=("offset", "axis1", "axis2", "dtype", "out"), public=True)
def trace(
    a: ArrayLike, offset: ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Return the sums of diagonals.

    Args:
        a: an array of at least two axes.
        offset: the diagonal, above the main one if positive.
        axis1, axis2: the axes of the rows and the columns.
        dtype: the dtype of the sums and the result; None for the dtype of `a`, for booleans and
            narrower integers int32.
        out: not supported; leave it at None.

    Returns:
        An array of the other axes.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is not an array.
        ValueError: `a` has no such axes, or they are the same.

    Example:
        >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    refuse(out=out)
    rank = operand_aval(a, 0).ndim
    if not dtypes.is_integer(operand_aval(offset, "offset").dtype):
        raise TypeError(f"trace: offset must be an integer, got {abbreviate(offset)}")
    first, second = (canonical_axis(i, rank) for i in (axis1, axis2))
    if first == second:
        raise ValueError(f"trace: axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    wanted = requested_dtype(dtype)
    moved = moveaxis(a, (first, second), (-2, -1))
    mask = diagonal_mask(offset, rows=moved.shape[-2], columns=moved.shape[-1], below=False)
    return reductions.sum(select_or_fill(mask, moved, 0), (-2, -1), wanted)


def _refuse_booleans(*operands: ArrayLike) -> None:
    if all(dtypes.is_boolean(operand_aval(x, i).dtype) for i, x in enumerate(operands)):
        raise TypeError(f"{called_function()} does not accept two arrays of dtype bool; convert one with x.astype(int)")


@inline_jit(public=True)
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: `b` times every element of `a`, side by side along every axis.

    Args:
        a, b: arrays or scalars; leading axes of size 1 are added to the one of lower rank.

    Returns:
        An array of the promoted dtype; each length is the product of the operands' lengths.

    Raises:
        TypeError: an operand is neither an array nor a scalar, or both have booleans.

    Example:
        >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
        Array([ 1,  2, 10, 20], dtype=int32)
    """
    shapes = [operand_aval(x, i).shape for i, x in enumerate((a, b))]
    _refuse_booleans(a, b)
    rank = max(map(len, shapes))
    left, right = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    rows = expand_dims(expand_dims(a, range(rank - len(shapes[0]))), range(1, 2 * rank, 2))
    columns = expand_dims(expand_dims(b, range(rank - len(shapes[1]))), range(0, 2 * rank, 2))
    product = multiply(rows, columns)
    return reshape(product, [m * n for m, n in zip(left, right, strict=True)]) if rank else product


@inline_jit(static=("axisa", "axisb", "axisc", "axis"), public=True)
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Return the cross products of vectors of 3 elements; the third of vectors of 2 counts as zero.

    Args:
        a, b: arrays whose vectors have 2 or 3 elements; their other axes broadcast.
        axisa, axisb: the axes of the vectors.
        axisc: the axis of the result's vectors.
        axis: given, it replaces `axisa`, `axisb` and `axisc`.

    Returns:
        An array of the promoted dtype. Vectors of 2 elements on both sides give the third element only, without its
        axis.

    Raises:
        TypeError: an operand is not an array, or both have booleans.
        ValueError: the vectors have other lengths, or the other axes do not broadcast; or a vector has 2 elements where
            ``xtrace_jax_version`` is 0.12.

    Example:
        >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    axisa, axisb, axisc = [only_axis(i) for i in (axisa, axisb, axisc)]
    avals = [operand_aval(x, i) for i, x in enumerate((a, b))]
    axes = [canonical_axis(i, aval.ndim) for i, aval in zip((axisa, axisb), avals, strict=True)]
    lengths = [aval.shape[i] for aval, i in zip(avals, axes, strict=True)]
    if is_newer() and lengths != [3, 3]:
        raise ValueError(
            f"cross: vectors must have 3 elements in JAX 0.12, whose behaviour xtrace_jax_version asks for; got the "
            f"lengths {lengths[0]} and {lengths[1]}. Append zeros to vectors of 2"
        )
    if not set(lengths) <= {2, 3}:
        raise ValueError(f"cross: vectors must have 2 or 3 elements, got the lengths {lengths[0]} and {lengths[1]}")
    _refuse_booleans(a, b)
    others = [(*aval.shape[:i], *aval.shape[i + 1 :]) for aval, i in zip(avals, axes, strict=True)]
    rank = len(check_broadcast(others))
    left, right = [
        [squeeze(piece, (i,)) for piece in split(x, (1,) * length, i)]
        for x, i, length in zip((a, b), axes, lengths, strict=True)
    ]

    def minor(i: int, j: int) -> Array:
        return subtract(multiply(left[i], right[j]), multiply(left[j], right[i]))

    if lengths == [2, 2]:
        return minor(0, 1)
    along = canonical_axis(axisc, rank + 1)
    for pieces in (left, right):
        if len(pieces) == 2:
            pieces.append(zeros_like(pieces[0]))
    return stack([convert_to(x, x.dtype, False) for x in (minor(1, 2), minor(2, 0), minor(0, 1))], along)
